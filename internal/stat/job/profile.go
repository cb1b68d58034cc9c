package job

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/result"
)

// Profile is what a parallel job does: its mix of operations.
type Profile struct {
	Name string `json:"name"`
	// Ranks is how many it has, RanksPerNode how many of them are on one node.
	Ranks        int `json:"ranks"`
	RanksPerNode int `json:"ranks_per_node"`
	// ComputeSeconds is what it computes in addition, which no network changes.
	ComputeSeconds float64     `json:"compute_seconds,omitempty"`
	Operations     []Operation `json:"operations"`
}

// Operation is one kind of operation of a job, and how often it occurs.
type Operation struct {
	// Operation is the workload of that name, Algorithm its algorithm; "" where it has none.
	Operation string `json:"operation"`
	Algorithm string `json:"algorithm,omitempty"`
	// MessageBytes is as in a cell; 0 for a barrier.
	MessageBytes int     `json:"message_bytes,omitempty"`
	Count        float64 `json:"count"`
}

// Is tells whether a cell is that of an operation of the job.
func (p Profile) Is(c result.Cell, o Operation) bool {
	return c.Workload == o.Operation && c.Algorithm == o.Algorithm && c.MessageBytes == o.MessageBytes && c.Ranks == p.Ranks &&
		(c.Placement == result.IntraHost || max(1, c.RanksPerNode) == p.RanksPerNode)
}

// Workload is an operation of the job as a campaign's workload.
func (p Profile) Workload(op Operation) string {
	s := "{name: " + op.Operation
	if op.MessageBytes > 0 {
		s += fmt.Sprintf(", message_bytes: [%d]", op.MessageBytes)
	}
	s += fmt.Sprintf(", ranks: [%d], ranks_per_node: [%d]", p.Ranks, p.RanksPerNode)
	if op.Algorithm != "" {
		s += ", algorithm: [" + op.Algorithm + "]"
	}
	return s + "}"
}

// Words name an operation: "all_to_all of 16384 B (pairwise)".
func (o Operation) Words() string {
	s := o.Operation
	if o.MessageBytes > 0 {
		s += fmt.Sprintf(" of %d B", o.MessageBytes)
	}
	if o.Algorithm != "" {
		s += " (" + o.Algorithm + ")"
	}
	return s
}
