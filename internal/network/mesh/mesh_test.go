package mesh

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

func TestParseCounters(t *testing.T) {
	got, err := parseCounters(`table ip cnb-mesh {
	chain out {
		type nat hook output priority dstnat; policy accept;
		meta skuid 1337 return
		ip daddr 127.0.0.0/8 return
		meta l4proto tcp counter packets 12 bytes 720 redirect to :15001
	}
	chain in {
		type nat hook prerouting priority dstnat; policy accept;
		meta l4proto tcp counter packets 3 bytes 180 redirect to :15006
	}
}`)
	if err != nil || got != 15 {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := parseCounters("table ip cnb-mesh {\n}\n"); err == nil {
		t.Error("a table without rules has a count")
	}
}

// What a mesh is on top of stays in its name, its model and its needs.
func TestOnTop(t *testing.T) {
	below := network.Network{Name: "bridge", Kind: result.KindReal, IPv6: true}
	for _, n := range []network.Network{Sidecar(below), NodeProxy(below)} {
		if !strings.HasPrefix(n.Name, "bridge+") || n.Kind != result.KindModel || n.Model == "" || n.LeavesOut == "" || n.Proxied == nil || n.PodsAdded == nil || n.IPv6 {
			t.Errorf("%+v", n)
		}
	}
	modelled := Sidecar(network.Network{Name: "flannel/vxlan", Kind: result.KindModel, Model: "flannel", LeavesOut: "flanneld"})
	if !strings.HasPrefix(modelled.Model, "flannel; ") || !strings.HasPrefix(modelled.LeavesOut, "flanneld; ") {
		t.Errorf("%+v", modelled)
	}
}

func TestNodeRules(t *testing.T) {
	rules := strings.Join(nodeRules(network.Node{Device: "eth0", PodCIDR: netip.MustParsePrefix("10.244.1.0/24")}), "\n")
	for _, want := range []string{"iifname eth0 ip daddr 10.244.0.0/16 meta l4proto tcp counter redirect to :15006", "ip saddr 10.244.1.0/24 ip daddr 10.244.0.0/16"} {
		if !strings.Contains(rules, want) {
			t.Errorf("no %q in %s", want, rules)
		}
	}
}
