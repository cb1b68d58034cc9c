package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// Remaining are those of the slots that still need a sample, in their order.
// A slot is finished when its last record is ok or unsupported, or failed at an
// attempt above retries.
func Remaining(slots []Slot, records []result.Sample, retries int) []Slot {
	finished := make(map[string]bool, len(slots))
	for _, r := range records {
		finished[r.ID] = Finished(r, retries)
	}
	var out []Slot
	for _, s := range slots {
		if !finished[s.ID] {
			out = append(out, s)
		}
	}
	return out
}

// Finished reports whether a slot needs nothing more after this record of it.
func Finished(last result.Sample, retries int) bool {
	switch last.Status {
	case result.StatusOK, result.StatusUnsupported:
		return true
	default:
		return last.Attempt > retries
	}
}

// Same reports why samples of p and of q cannot be in one directory:
// other cells, lengths, numbers of blocks or conflists; the seed may differ.
// Each difference is named: p is what was recorded, q what the campaign asks
// for now.
func (p Plan) Same(q Plan) error {
	var differences []string
	recorded, asked := cellSet(p.Cells), cellSet(q.Cells)
	if gone := missing(p.Cells, asked); len(gone) > 0 {
		differences = append(differences, fmt.Sprintf("recorded, but no longer in the campaign: %s", list(gone)))
	}
	if added := missing(q.Cells, recorded); len(added) > 0 {
		differences = append(differences, fmt.Sprintf("in the campaign, but not in the recorded plan: %s", list(added)))
	}
	for _, n := range []struct {
		name    string
		was, is float64
	}{
		{"seconds", p.SampleSeconds, q.SampleSeconds},
		{"warmup_seconds", p.WarmupSeconds, q.WarmupSeconds},
		{"slice_seconds", p.SliceSeconds, q.SliceSeconds},
		{"min_blocks", float64(p.MinBlocks), float64(q.MinBlocks)},
		{"max_blocks", float64(p.MaxBlocks), float64(q.MaxBlocks)}, // it is in the ids, too
	} {
		if n.was != n.is {
			differences = append(differences, fmt.Sprintf("sampling.%s was %g, is %g", n.name, n.was, n.is))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Conflists)) {
		if now, ok := q.Conflists[name]; ok && now != p.Conflists[name] {
			differences = append(differences, fmt.Sprintf("the conflist of network %q has changed", name))
		}
	}
	if len(differences) == 0 {
		return nil
	}
	return fmt.Errorf("the campaign is not the recorded one; undo the change, or start a new directory:\n  %s", strings.Join(differences, "\n  "))
}

// Check reports which records do not belong to the plan, or come after their slot
// was finished: nothing foreign, nothing twice.
func (p Plan) Check(records []result.Sample, retries int) error {
	var errs []error
	index := make(map[result.Cell]int, len(p.Cells))
	for i, c := range p.Cells {
		index[c] = i
	}
	last := make(map[string]result.Sample)
	for _, r := range records {
		i, ok := index[r.Cell]
		before, again := last[r.ID]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("record %s: its cell is not in the plan: %s", r.ID, r.Cell.Describe()))
		case r.ID != p.id(r.Block, i):
			errs = append(errs, fmt.Errorf("record %s: expected the id %s for its block and cell", r.ID, p.id(r.Block, i)))
		case again && Finished(before, retries):
			errs = append(errs, fmt.Errorf("record %s: measured twice", r.ID))
		case r.Attempt != before.Attempt+1:
			errs = append(errs, fmt.Errorf("record %s: attempt %d follows attempt %d", r.ID, r.Attempt, before.Attempt))
		}
		last[r.ID] = r
	}
	return errors.Join(errs...)
}

func cellSet(cells []result.Cell) map[result.Cell]bool {
	set := make(map[result.Cell]bool, len(cells))
	for _, c := range cells {
		set[c] = true
	}
	return set
}

func missing(cells []result.Cell, from map[result.Cell]bool) []result.Cell {
	var out []result.Cell
	for _, c := range cells {
		if !from[c] {
			out = append(out, c)
		}
	}
	return out
}

// list names the first few cells.
func list(cells []result.Cell) string {
	const few = 5
	var names []string
	for _, c := range cells[:min(few, len(cells))] {
		names = append(names, c.Describe())
	}
	if more := len(cells) - few; more > 0 {
		names = append(names, fmt.Sprintf("… and %d more", more))
	}
	return strings.Join(names, "; ")
}
