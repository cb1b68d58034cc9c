package lab

import (
	"math"
	"net/netip"
	"testing"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/unit"
)

// TestWatchNodes: the rules that a packet hits are counted the same twice, and
// what a node holds is read; what is left out is absent.
func TestWatchNodes(t *testing.T) {
	l := New(options(newRunner(t), t.TempDir()))
	all := cells("calico/direct-policy", "flannel/udp")
	buildLab(t, l, all)
	policy, udp := all[0], all[2] // between nodes
	c := l.clusters[keyOf(policy)]
	from, to, err := sites(policy, false)
	if err != nil {
		t.Fatal(err)
	}
	port, _ := network.PolicyPorts()
	server := echoPort(t, c.ns(to), netip.AddrPortFrom(c.address(to), port))
	watch := func(without ...string) testbed.NodeReadings {
		t.Helper()
		stop := l.WatchNodes(t.Context(), policy, without)
		for range 40 {
			if err := ask(c.ns(from), server, 100); err != nil {
				t.Fatal(err)
			}
		}
		return stop(t.Context())
	}
	watch() // the first packet of all hits one rule more
	first, second := watch(), watch()
	for _, r := range []testbed.NodeReadings{first, second} {
		if len(r.Doubts) > 0 || len(r.Absent) > 0 {
			t.Errorf("doubts %q, absent %q", r.Doubts, r.Absent)
		}
		// Each datagram begins a new connection here, so each one passes the policy.
		if rules, chains := r.Client[unit.NetfilterRulesPerPacket], r.Client[unit.NetfilterChainsPerPacket]; rules < 10 || chains < 5 || rules > r.Client[unit.NetfilterRules] {
			t.Errorf("%v rules in %v chains of %v", rules, chains, r.Client[unit.NetfilterRules])
		}
		if r.Server[unit.ConntrackEntries] < 40 || r.Server[unit.IPSetBytes] == 0 || r.Server[unit.NetworkProcesses] != 0 {
			t.Errorf("server's node: %v", r.Server)
		}
	}
	if a, b := first.Client[unit.NetfilterRulesPerPacket], second.Client[unit.NetfilterRulesPerPacket]; math.Abs(a-b) > 0.1*a {
		t.Errorf("%v rules a packet, then %v", a, b)
	}
	if r := watch(probe.NetfilterName, probe.MemoryName); len(r.Client) != 0 || len(r.Server) != 0 {
		t.Errorf("left out, and there: %v", r)
	}
	r := l.WatchNodes(t.Context(), udp, nil)(t.Context())
	if r.Client[unit.NetworkProcesses] != 1 || r.Client[unit.NetworkResidentBytes] < 1<<20 {
		t.Errorf("a tunnel in user space: %v", r.Client)
	}
	if _, there := r.Client[unit.NetfilterRulesPerPacket]; there {
		t.Error("no packet, and rules for each")
	}
}
