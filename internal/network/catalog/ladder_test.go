package catalog

import (
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/network/ladder"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// Every ladder goes from a network of the list down to the host, one thing at a
// time, and every network of ladders alone is a step of some.
func TestLadders(t *testing.T) {
	components := map[string]bool{}
	for _, c := range unit.Components() {
		components[c.Name] = c.Charged
	}
	used := map[string]bool{}
	for _, r := range ladder.Steps() {
		used[r.Below] = true
		n, err := Find(r.Network)
		if err != nil || r.Adds == "" || len(r.Components) == 0 || r.Network == r.Below {
			t.Errorf("step %+v (%v)", r, err)
		}
		for _, c := range r.Components {
			if !components[c] {
				t.Errorf("%s: no component %q", r.Network, c)
			}
		}
		way := ladder.Of(r.Network)
		if way[0].Below != result.HostNetwork || way[len(way)-1].Network != r.Network {
			t.Errorf("%s: the way is %+v", r.Network, way)
		}
		for i := 1; i < len(way); i++ {
			if way[i].Below != way[i-1].Network {
				t.Errorf("%s: %s is not above %s", r.Network, way[i].Network, way[i-1].Network)
			}
		}
		below, err := Find(r.Below)
		if err != nil {
			t.Errorf("%s: %v", r.Network, err)
		}
		if below.Overhead > n.Overhead {
			t.Errorf("%s takes less from the MTU than %s below it", r.Network, r.Below)
		}
	}
	for _, n := range List() {
		if result.IsLadderOnly(n.Name) && (!used[n.Name] || slices.Contains(ladder.Names(), n.Name)) {
			t.Errorf("%s is the step of no ladder, or has one", n.Name)
		}
	}
	if got := ladder.Of("macvlan"); got != nil {
		t.Errorf("macvlan: %v", got)
	}
	want := []string{"calico/direct", "ladder/bridge", "bridge", "ladder/bridge-conntrack", "flannel/host-gw", "flannel/vxlan"}
	var got []string
	for _, r := range ladder.Of("flannel/vxlan") {
		got = append(got, r.Network)
	}
	if !slices.Equal(got, want) {
		t.Errorf("flannel/vxlan: the steps are %v, want %v", got, want)
	}
}
