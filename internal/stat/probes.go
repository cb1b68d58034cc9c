package stat

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// ProbeCost is what reading the probes took, as the samples themselves report it:
// medians over all that were measured. A part that no sample has is nil.
type ProbeCost struct {
	// FirstEdge is the CPU time in seconds that the first edges of a sample's probes
	// took inside its window, both ends together; Share the same over that window, of
	// one core.
	FirstEdge estimate.Estimate `json:"first_edge_seconds"`
	Share     estimate.Estimate `json:"share_of_one_core"`
	// StacksPerSecond is how many kernel stacks were sampled inside the window.
	StacksPerSecond *estimate.Estimate `json:"stacks_per_second,omitempty"`
	// NodeRead is how long reading the rules and memory of the nodes took, in seconds,
	// outside the window.
	NodeRead *estimate.Estimate `json:"node_read_seconds,omitempty"`
}

// probeCost is nil where no sample has the time of its first edges.
func probeCost(c *dataset.Dataset) *ProbeCost {
	var edges, shares, stacks, nodes []float64
	for _, d := range c.Cells {
		for _, s := range d.OK {
			client, okClient := s.Probe(result.ClientNode, "first_edge_cpu_seconds")
			server, okServer := s.Probe(result.ServerNode, "first_edge_cpu_seconds")
			window, ok := s.Probe(result.ServerNode, "window_seconds")
			if okClient && okServer && ok && window > 0 {
				edges, shares = append(edges, client+server), append(shares, (client+server)/window)
			}
			if rate, ok := sumOf(s, dataset.PerSecond, "stack_samples"); ok {
				stacks = append(stacks, rate)
			}
			if took, ok := sumOf(s, valueOf, unit.NetfilterReadSeconds, unit.MemoryReadSeconds); ok {
				nodes = append(nodes, took)
			}
		}
	}
	if len(edges) == 0 {
		return nil
	}
	p := &ProbeCost{FirstEdge: c.Tables.Median(edges), Share: c.Tables.Median(shares)}
	for _, part := range []struct {
		values []float64
		into   **estimate.Estimate
	}{{stacks, &p.StacksPerSecond}, {nodes, &p.NodeRead}} {
		if len(part.values) > 0 {
			e := c.Tables.Median(part.values)
			*part.into = &e
		}
	}
	return p
}

func valueOf(s dataset.Record, end, name string) (float64, bool) { return s.Probe(end, name) }

// sumOf adds up some values of the ends; ok where any end has any.
func sumOf(r dataset.Record, read func(dataset.Record, string, string) (float64, bool), names ...string) (sum float64, ok bool) {
	for _, end := range dataset.Ends() {
		for _, name := range names {
			if v, known := read(r, end, name); known {
				sum, ok = sum+v, true
			}
		}
	}
	return sum, ok
}
