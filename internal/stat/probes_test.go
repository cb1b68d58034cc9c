package stat

import (
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/unit"
)

// The time that the probes took is reported for the samples that have it, and for no others: one end
// alone is not both.
func TestProbeCost(t *testing.T) {
	sample := func(block int, client, server stattest.Metrics) result.Sample {
		s := stattest.OKSample(stattest.RROf("bridge"), block, stattest.Metrics{"transactions_per_second": 10_000})
		s.Probes = map[string]map[string]float64{"client_node": client, "server_node": server}
		return s
	}
	without := sample(1, stattest.Metrics{"window_seconds": 1}, stattest.Metrics{"window_seconds": 1})
	half := sample(2, stattest.Metrics{"window_seconds": 1}, stattest.Metrics{"window_seconds": 1, "first_edge_cpu_seconds": 5})
	if p := Analyse([]result.Sample{without, half}, dataset.Options{}).ProbeCost; p != nil {
		t.Errorf("of samples without times: %+v", p)
	}
	both := sample(3, stattest.Metrics{"window_seconds": 2, "first_edge_cpu_seconds": 1e-3, unit.MemoryReadSeconds: 4e-3, unit.NetfilterReadSeconds: 1e-3},
		stattest.Metrics{"window_seconds": 2, "first_edge_cpu_seconds": 3e-3, "stack_samples": 2000, unit.MemoryReadSeconds: 5e-3})
	p := Analyse([]result.Sample{without, half, both}, dataset.Options{}).ProbeCost
	if p == nil || p.StacksPerSecond == nil || p.NodeRead == nil {
		t.Fatalf("%+v", p)
	}
	stattest.Near(t, "first edges", p.FirstEdge.Value, 4e-3, 1e-12)
	stattest.Near(t, "share of a core", p.Share.Value, 2e-3, 1e-12)
	stattest.Near(t, "stacks a second", p.StacksPerSecond.Value, 1000, 1e-9)
	stattest.Near(t, "reading the nodes", p.NodeRead.Value, 10e-3, 1e-12)
	if p.FirstEdge.N != 1 || p.FirstEdge.Low != nil {
		t.Errorf("one sample has no interval: %+v", p.FirstEdge)
	}
}
