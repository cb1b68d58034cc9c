package stat

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// ProbeCost is what reading the probes took, as the samples themselves report it:
// medians over all that were measured. A part that no sample has is nil.
type ProbeCost struct {
	// FirstEdge is the CPU time in seconds that the first edges of a sample's probes
	// took inside its window, both ends together; Share the same over that window, of
	// one core.
	FirstEdge Estimate `json:"first_edge_seconds"`
	Share     Estimate `json:"share_of_one_core"`
	// StacksPerSecond is how many kernel stacks were sampled inside the window.
	StacksPerSecond *Estimate `json:"stacks_per_second,omitempty"`
	// NodeRead is how long reading the rules and memory of the nodes took, in seconds,
	// outside the window.
	NodeRead *Estimate `json:"node_read_seconds,omitempty"`
}

// probeCost is nil where no sample has the time of its first edges.
func (c *dataset) probeCost() *ProbeCost {
	var edges, shares, stacks, nodes []float64
	for _, d := range c.cells {
		for _, s := range d.ok {
			client, okClient := s.probe(result.ClientNode, "first_edge_cpu_seconds")
			server, okServer := s.probe(result.ServerNode, "first_edge_cpu_seconds")
			window, ok := s.probe(result.ServerNode, "window_seconds")
			if okClient && okServer && ok && window > 0 {
				edges, shares = append(edges, client+server), append(shares, (client+server)/window)
			}
			if rate, ok := s.sumOf(perSecond, "stack_samples"); ok {
				stacks = append(stacks, rate)
			}
			if took, ok := s.sumOf(valueOf, unit.NetfilterReadSeconds, unit.MemoryReadSeconds); ok {
				nodes = append(nodes, took)
			}
		}
	}
	if len(edges) == 0 {
		return nil
	}
	p := &ProbeCost{FirstEdge: c.tables.median(edges), Share: c.tables.median(shares)}
	for _, part := range []struct {
		values []float64
		into   **Estimate
	}{{stacks, &p.StacksPerSecond}, {nodes, &p.NodeRead}} {
		if len(part.values) > 0 {
			e := c.tables.median(part.values)
			*part.into = &e
		}
	}
	return p
}

func valueOf(s record, end, name string) (float64, bool) { return s.probe(end, name) }

// sumOf adds up some values of the ends; ok where any end has any.
func (r record) sumOf(read func(record, string, string) (float64, bool), names ...string) (sum float64, ok bool) {
	for _, end := range ends() {
		for _, name := range names {
			if v, known := read(r, end, name); known {
				sum, ok = sum+v, true
			}
		}
	}
	return sum, ok
}
