package stat

import (
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/unit"
)

// policySample costs 20 µs a round trip, 10 ns more for each policy, and what
// drift adds in its block; two rules check a packet for each policy on each node.
func policySample(policies, block int, drift float64) result.Sample {
	c := stattest.RROf("calico/direct-policy")
	c.Policies, c.Placement = policies, result.InterHost
	s := stattest.OKSample(c, block, stattest.Metrics{"transactions_per_second": 10_000})
	cpu := (20e-6 + 10e-9*float64(policies) + drift) * 10_000 / 2
	end := stattest.Metrics{
		"window_seconds": 1, "process_cpu_seconds": cpu, "ksoftirqd_cpu_seconds": 0,
		unit.NetfilterRulesPerPacket: 5 + 2*float64(policies), unit.NetworkResidentBytes: 1 << 20,
	}
	other := stattest.Metrics{"window_seconds": 1, "process_cpu_seconds": cpu, "ksoftirqd_cpu_seconds": 0, unit.NetfilterRulesPerPacket: 5 + 2*float64(policies), unit.NetworkResidentBytes: 3 << 20}
	s.Probes = map[string]map[string]float64{"client_node": end, "server_node": other}
	s.Machines = map[string]string{"client_node": "a", "server_node": "a"}
	return s
}

// What drifts from block to block is in no slope: it comes out exact.
func TestPolicySweep(t *testing.T) {
	var samples []result.Sample
	for block := 1; block <= 4; block++ {
		for _, policies := range []int{0, 10, 100, 1000} {
			samples = append(samples, policySample(policies, block, 1e-6*float64(block*block)))
		}
	}
	a := Analyse(samples, dataset.Options{})
	if len(a.PolicySweeps) != 1 {
		t.Fatalf("sweeps: %+v", a.PolicySweeps)
	}
	s := a.PolicySweeps[0]
	if s.Cost != "own_cpu_seconds_per_transaction" || len(s.Policies) != 4 || s.PerRule == nil || s.PerPolicy.N != 4 {
		t.Fatalf("%+v", s)
	}
	stattest.Near(t, "per policy", s.PerPolicy.Value, 10e-9, 1e-15)
	stattest.Near(t, "per rule, of both nodes", s.PerRule.Value, 10e-9/4, 1e-15)
	if low, high, ok := s.PerPolicy.Interval(); !ok || high-low > 1e-12 {
		t.Errorf("interval %v to %v", low, high)
	}
	node := stattest.Find(t, a, samples[0].Cell).Node
	stattest.Near(t, "resident memory of a node", node[unit.NetworkResidentBytes].Value, 2<<20, 0)
	if _, ok := node[unit.ConntrackEntries]; ok {
		t.Error("what was not read is there")
	}
}

// Packets that pass the same few rules however many there are have no cost of a rule:
// the slope over some thousandths of a rule is noise of any size.
func TestPolicySweepOfTheSameRules(t *testing.T) {
	var samples []result.Sample
	for block := 1; block <= 3; block++ {
		for _, policies := range []int{0, 1000} {
			s := policySample(policies, block, 0)
			for _, end := range s.Probes {
				end[unit.NetfilterRulesPerPacket] = 20.5 + 0.05*float64(policies)/1000
			}
			samples = append(samples, s)
		}
	}
	a := Analyse(samples, dataset.Options{})
	if len(a.PolicySweeps) != 1 || a.PolicySweeps[0].PerRule != nil || a.PolicySweeps[0].RulesPerPacket == nil {
		t.Fatalf("%+v", a.PolicySweeps)
	}
	stattest.Near(t, "the most rules", a.PolicySweeps[0].RulesPerPacket[1], 41.1, 1e-9)
}

// One number of policies has no slope, and rules that were not counted give none.
func TestPolicySweepNeedsTwo(t *testing.T) {
	samples := []result.Sample{policySample(10, 1, 0), policySample(10, 2, 0)}
	if a := Analyse(samples, dataset.Options{}); len(a.PolicySweeps) != 0 {
		t.Errorf("%+v", a.PolicySweeps)
	}
	for _, policies := range []int{0, 100} {
		for block := 1; block <= 2; block++ {
			s := policySample(policies, block, 0)
			delete(s.Probes["server_node"], unit.NetfilterRulesPerPacket)
			samples = append(samples, s)
		}
	}
	if a := Analyse(samples, dataset.Options{}); len(a.PolicySweeps) != 1 || a.PolicySweeps[0].PerRule != nil {
		t.Errorf("%+v", a.PolicySweeps)
	}
}

// What was read of one of two nodes is no mean of both: a sample without the other
// has no value, and a cell without any such sample none at all.
func TestNodeNeedsBothEnds(t *testing.T) {
	var samples []result.Sample
	for block := 1; block <= 3; block++ {
		s := policySample(10, block, 0)
		if block > 1 {
			delete(s.Probes["client_node"], unit.NetworkResidentBytes) // 3 MiB are left
		}
		delete(s.Probes["server_node"], unit.NetfilterRulesPerPacket)
		samples = append(samples, s)
	}
	node := stattest.Find(t, Analyse(samples, dataset.Options{}), samples[0].Cell).Node
	if e := node[unit.NetworkResidentBytes]; e.Value != 2<<20 || e.N != 1 {
		t.Errorf("resident memory: %+v, want the mean of the one sample that has both", e)
	}
	if e, ok := node[unit.NetfilterRulesPerPacket]; ok {
		t.Errorf("rules of one end: %+v", e)
	}
}
