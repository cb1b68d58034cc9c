package catalog

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/sockmap"
	"github.com/cnibench/cnibench/internal/result"
)

var update = flag.Bool("update", false, "write the golden files anew")

func testNodes() []network.Node {
	var nodes []network.Node
	for _, i := range []int{1, 2} {
		nodes = append(nodes, network.Node{
			Name: "node" + string(rune('0'+i)), Index: i, Device: "eth0", MTU: 9000,
			Address: netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, 0, byte(i)}), 16),
			PodCIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i), 0}), 24),
		})
	}
	return nodes
}

func TestListIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range List() {
		if seen[n.Name] || n.Summary == "" {
			t.Errorf("%s: name not unique, or no summary", n.Name)
		}
		seen[n.Name] = true
		if n.HostNetwork != (n.Conflist == nil) {
			t.Errorf("%s: pods have either a conflist or their node's namespace", n.Name)
		}
		if (n.Model == "") != (n.LeavesOut == "") {
			t.Errorf("%s: a model says what it was modelled on and what it leaves out", n.Name)
		}
		if (n.Encapsulation == "") != (n.Overhead == 0) || n.FixedMTU == 0 && n.PodMTU(1500) != 1500-n.Overhead {
			t.Errorf("%s: encapsulation %q takes %d bytes", n.Name, n.Encapsulation, n.Overhead)
		}
	}
	_, err := Find("flanel/vxlan")
	if err == nil || !strings.Contains(err.Error(), "known: host, bridge, docker/bridge") {
		t.Errorf("error %v does not list the known names", err)
	}
}

// TestEveryNetworkHasAKind: real networks are models of nothing, and a network has
// the kind "own plugin" if and only if a plugin of this program makes its pods' devices.
func TestEveryNetworkHasAKind(t *testing.T) {
	own := map[string]bool{}
	for _, p := range OwnPlugins() {
		own[p.Name] = p.Runs == ""
	}
	nodes := testNodes()
	for _, n := range Choices() {
		if n.Kind != result.KindReal && n.Kind != result.KindModel && n.Kind != result.KindOwnPlugin {
			t.Errorf("%s has the kind %q", n.Name, n.Kind)
		}
		if real := n.Kind == result.KindReal; real != (n.Model == "") {
			t.Errorf("%s is %s, and a model of %q", n.Name, n.Kind, n.Model)
		}
		if n.HostNetwork {
			continue
		}
		list, err := n.Conflist(nodes[0], nodes)
		if err != nil {
			t.Fatal(err)
		}
		plugins := false
		for _, m := range regexp.MustCompile(`"type": *"([^"]+)"`).FindAllStringSubmatch(string(list), -1) {
			plugins = plugins || own[m[1]]
		}
		if plugins != (n.Kind == result.KindOwnPlugin) {
			t.Errorf("%s is %s; a plugin of this program makes its pods' devices: %v", n.Name, n.Kind, plugins)
		}
	}
}

// TestChoices: the acceleration is on top of whatever has pods, and nowhere twice.
func TestChoices(t *testing.T) {
	names := map[string]bool{}
	for _, n := range Choices() {
		if names[n.Name] {
			t.Errorf("%s is there twice", n.Name)
		}
		names[n.Name] = true
		if fast := strings.HasSuffix(n.Name, "+sockmap"); fast != (n.Cgroup != nil) || strings.Count(n.Name, "+sockmap") > 1 {
			t.Errorf("%s: accelerated %v", n.Name, n.Cgroup != nil)
		}
		if got, err := Find(n.Name); err != nil || got.Name != n.Name {
			t.Errorf("%s is not found: %v", n.Name, err)
		}
	}
	for name, want := range map[string]bool{
		"flannel/vxlan+sockmap": true, "antrea/geneve+sockmap": true, "macvlan+sockmap": true,
		"host+sockmap": false, "hpc/singularity+sockmap": false, "ladder/bridge+sockmap": false,
	} {
		if names[name] != want {
			t.Errorf("%s can be asked for: %v, want %v", name, names[name], want)
		}
	}
}

// TestSockmapNeedsTheKernelsSwitch: where packets of a node go through user space
// there is no bypass, and the reason says why.
func TestSockmapNeedsTheKernelsSwitch(t *testing.T) {
	n := network.Network{Name: "mine", InKernel: []netns.Feature{{
		Name: "fast", Probe: func() error { return &netns.MissingError{Feature: "fast"} },
	}}}
	last := func(n network.Network) netns.Feature { return n.Needs[len(n.Needs)-1] }
	if got := last(sockmap.On(n)).Probe(); got == nil || !strings.HasPrefix(got.Error(), "kernel has no fast: through a switch in user space ") {
		t.Errorf("reason %v", got)
	}
	for _, n := range Choices() {
		if want := strings.HasPrefix(n.Name, "antrea/") || strings.HasPrefix(n.Name, "ovn/"); want != (len(n.InKernel) > 0) {
			t.Errorf("%s can be in user space: %v", n.Name, !want)
		} else if want && n.Cgroup != nil && last(n).Name != "openvswitch for sockmap" {
			t.Errorf("%s needs %s last", n.Name, last(n).Name)
		}
	}
}

// TestConflists holds what each network gives libcni, for node 2 on a link of
// MTU 9000.
func TestConflists(t *testing.T) {
	nodes := testNodes()
	for _, n := range List() {
		if n.HostNetwork {
			continue
		}
		got, err := n.Conflist(nodes[1], nodes)
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", strings.ReplaceAll(n.Name, "/", "-")+".conflist")
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			if err := os.WriteFile(golden+".got", got, 0o644); err != nil {
				t.Error(err)
			}
			t.Errorf("%s: conflist differs from %s, see %s.got", n.Name, golden, golden)
		}
	}
}
