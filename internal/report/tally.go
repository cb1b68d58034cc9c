package report

import (
	"github.com/cnibench/cnibench/internal/result"
)

// Tally counts records, and their remarks. Its zero value has
// none.
type Tally struct {
	OK, Failed int
	// Warnings maps the doubts that samples carry to how many carry each.
	Warnings map[string]int
	blocks   map[int]bool // with a measured sample
}

// Add counts one record; it keeps none of it.
func (t *Tally) Add(s *result.Sample) {
	switch s.Status {
	case result.StatusOK:
		t.OK++
		if t.blocks == nil {
			t.blocks = map[int]bool{}
		}
		t.blocks[s.Block] = true
	case result.StatusFailed:
		t.Failed++
	}
	for _, w := range s.Warnings {
		if t.Warnings == nil {
			t.Warnings = map[string]int{}
		}
		t.Warnings[w]++
	}
}

// Blocks is the number of blocks with a measured sample.
func (t *Tally) Blocks() int { return len(t.blocks) }
