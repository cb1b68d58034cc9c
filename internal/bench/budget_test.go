package bench

import (
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
)

// A noisy first block asks for long samples. With a time budget they are as short as 12 blocks
// need, and never shorter than the fewest slices; without one they are as long as was asked for.
func TestSlicesInBudget(t *testing.T) {
	cell := result.Cell{Workload: "tcp_rr", Link: "unshaped", MessageBytes: 64, Streams: 1}
	slot := plan.Slot{Block: 2, Cell: cell}
	for name, c := range map[string]struct {
		maxSeconds       float64
		minBlocks, cells int
		spread           float64
		sliced           float64 // seconds that a sample's slices take at least
		want             int
	}{
		"no budget":                   {0, 5, 18, 0.2, 0, mostSlices},
		"a quiet machine":             {86, 5, 18, 0.01, 0, fewestSlices},
		"a noisy one":                 {90, 5, 18, 0.2, 0, 16},
		"one that needs no more":      {90, 5, 18, 0.032, 0, 11},
		"more blocks are asked for":   {90, 20, 18, 0.2, 0, 10},
		"a budget that holds nothing": {5, 5, 18, 0.2, 0, fewestSlices},
		"seconds, which are few":      {90, 5, 18, 0.2, 0.04, 16},
		"seconds, which are many":     {90, 5, 18, 0.2, 0.6, 30},
		"a budget for all":            {900, 5, 18, 0.2, 0, mostSlices},
	} {
		r := &run{Options: Options{Sampling: campaign.Sampling{SliceSeconds: 0.02, SlicedSeconds: c.sliced, TargetRelativeHalfwidth: 0.01, MaxSeconds: c.maxSeconds}}}
		r.Plan = plan.Plan{MinBlocks: c.minBlocks, MaxBlocks: 200}
		for i := range c.cells {
			cell := cell
			cell.MTU = i
			r.Plan.Cells = append(r.Plan.Cells, cell)
		}
		r.spread = map[result.Cell]float64{cell: c.spread}
		if got := r.slicesOf(slot); got != c.want {
			t.Errorf("%s: %d slices, want %d", name, got, c.want)
		}
	}
}

// Explaining windows take at most a third of a time budget, except those of the first block;
// without a budget there are as many as the campaign asks for.
func TestExplainingInBudget(t *testing.T) {
	sampling := campaign.Sampling{SliceSeconds: 0.02, WarmupSeconds: 0.5, ExplainSeconds: 0.3, ExplainEvery: 8}
	const windows = 18 * 0.75 // seconds of one block
	for name, c := range map[string]struct {
		maxSeconds float64
		left       int   // cells after the first block
		want       []int // blocks of the first 20
	}{
		"no budget":                   {0, 18, []int{1, 9, 17}},
		"the quickstart":              {86, 18, []int{1, 9}},
		"one":                         {6*windows - 1, 18, []int{1}},
		"less than one":               {5, 18, []int{1}},
		"most cells are decided soon": {6*windows - 1, 6, []int{1, 9, 17}},
	} {
		r := newRun(Options{Sampling: sampling})
		r.Sampling.MaxSeconds = c.maxSeconds
		for i := range 18 {
			r.Plan.Cells = append(r.Plan.Cells, result.Cell{Workload: "tcp_rr", Link: "unshaped", MessageBytes: 64, Streams: 1, MTU: i})
		}
		var got []int
		for block := 1; block <= 20; block++ {
			var slots []plan.Slot
			for i, cell := range r.Plan.Cells {
				if block == 1 || i < c.left {
					slots = append(slots, plan.Slot{Block: block, Cell: cell})
				}
			}
			if r.decideExplaining(block, slots); r.explaining.now {
				got = append(got, block)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: blocks %v, want %v", name, got, c.want)
		}
	}
}
