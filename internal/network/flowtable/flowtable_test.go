package flowtable

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/network"
)

func TestScript(t *testing.T) {
	got := script(network.Node{Device: "eth0"}, "cni0")
	for _, want := range []string{"devices = { eth0, cni0 }", "hook ingress", "flow add @fast"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

func TestParseCounter(t *testing.T) {
	got, err := parseCounter(`table inet cnb-flowtable {
	flowtable fast {
		hook ingress priority filter
		devices = { cni0, eth0 }
	}

	chain forward {
		type filter hook forward priority filter; policy accept;
		meta l4proto { tcp, udp } counter packets 14 bytes 1176 flow add @fast
	}
}`)
	if err != nil || got != 14 {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := parseCounter("table inet cnb-flowtable {\n}\n"); err == nil {
		t.Error("a table without the rule has a count")
	}
}

func TestOn(t *testing.T) {
	n := On(network.Network{Name: "bridge", IPv6: true}, "cni0")
	if n.Name != "bridge+flowtable" || n.IPv6 || n.Bypassed == nil || n.NoEncryption == "" {
		t.Errorf("%+v", n)
	}
	for _, f := range n.Needs {
		if f.Name == "nf_flow_table" {
			return
		}
	}
	t.Error("it does not need the kernel's flowtable")
}
