package serviceproxy

import (
	"testing"

	"github.com/cnibench/cnibench/bpf"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// TestNodePortCounters: each counter of the programs has a name.
func TestNodePortCounters(t *testing.T) {
	spec, err := bpf.LoadNodeport()
	if err != nil {
		t.Fatal(err)
	}
	if got := int(spec.Maps[bpf.NodeportMapCnbNpCount].MaxEntries); got != len(nodePortCounters()) {
		t.Errorf("%d counters, %d names", got, len(nodePortCounters()))
	}
}

// TestXDPRefuses: networks whose packets do not pass their node, each with its reason.
func TestXDPRefuses(t *testing.T) {
	for _, tc := range []struct {
		n       network.Network
		refused bool
	}{
		{network.Network{}, false},
		{network.Network{NoServices: "rules are bypassed"}, false},
		{network.Network{NoXDP: "answers are elsewhere"}, true},
		{network.Network{NoHostPaths: "a node reaches no pod"}, true},
	} {
		if why := xdpRefuses(tc.n, result.Cell{}); (why != "") != tc.refused {
			t.Errorf("%+v: %q", tc.n, why)
		}
	}
}
