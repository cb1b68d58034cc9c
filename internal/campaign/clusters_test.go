package campaign

import (
	"slices"
	"strings"
	"testing"
)

func networkNames(c Campaign) []string {
	var names []string
	for _, n := range c.Networks {
		names = append(names, n.Name)
	}
	return names
}

// TestOnNodes: on hosts of a cluster its network is in place of those of labs, and
// what hosts can be given stays.
func TestOnNodes(t *testing.T) {
	c := Campaign{
		Testbed: Hosts, Networks: []Network{{Name: "bridge"}, {Name: "host"}, {Name: "macvlan"}}, MTU: []int{1500, 9000},
		Profiles: []string{"default_settings", "kernel_optimizations"}, Links: []string{"10-gigabit"}, Services: []int{1}, ServiceProxies: []string{"ebpf"},
	}
	on, notes := c.OnNodes()
	if got := networkNames(on); !slices.Equal(got, []string{"host", Detected}) {
		t.Errorf("networks %v", got)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "in place of bridge, macvlan") {
		t.Errorf("notes %q", notes)
	}
	if len(on.MTU) != 2 || len(on.Profiles) != 2 || len(on.Links) != 1 || on.Services != nil || on.ServiceProxies != nil {
		t.Errorf("%+v", on)
	}
	named := on.Named(Found{Network: "cilium/native", Enforces: true})
	if got := networkNames(named); !slices.Equal(got, []string{"host", "cilium/native"}) || !named.Networks[1].Enforces {
		t.Errorf("named %+v", named.Networks)
	}
	if got := networkNames(on); got[1] != Detected {
		t.Errorf("naming one campaign changed another: %v", got)
	}
	on.Networks = on.Networks[:1]
	if same, notes := on.OnNodes(); len(same.Networks) != 1 || len(notes) > 0 {
		t.Errorf("host alone became %v, %q", networkNames(same), notes)
	}
	c.Networks = []Network{{Name: "host"}, {Name: Detected}}
	if _, notes := c.OnClusters(); strings.Contains(strings.Join(notes, ""), "in place of detected") {
		t.Errorf("notes %q", notes)
	}
}
