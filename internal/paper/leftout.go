package paper

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// What a time budget left out is another thing than what a testbed cannot measure: a run without
// the budget would have it.

// left is what a time budget left out of what a claim is about.
type left struct {
	cells []result.Cell
	// none: it left out nothing that could be compared here.
	none bool
	// cut: the campaign is a part of the study's, and some: it left out what could be compared.
	cut, some bool
}

// leftOut are those of some cells that a time budget left out: a factor that a selector leaves
// open (any) has fewer values then than the study. The conditions of the experiment are the
// testbed's own.
func (r *Results) leftOut(cells []result.Cell) []result.Cell {
	return slices.DeleteFunc(slices.Clone(cells), func(c result.Cell) bool { _, is := r.place(c); return is })
}

// place is where a cell is in Analysis.Cells, whatever its conditions.
func (r *Results) place(c result.Cell) (int, bool) {
	if r.places == nil {
		r.places = map[result.Cell]int{}
		for i, s := range r.Analysis.Cells {
			r.places[bare(s.Cell)] = i
		}
	}
	i, recorded := r.places[bare(c)]
	return i, recorded
}

// bare is a cell without the conditions of the experiment, which are the testbed's own.
func bare(c result.Cell) result.Cell {
	c.CongestionControl, c.CPUs = "", ""
	return c
}

// within reports whether a run without a time budget would have a cell's metric: it is not
// recorded, or it has the metric.
func (r *Results) within(c result.Cell, metric string) bool {
	i, recorded := r.place(c)
	if !recorded {
		return true
	}
	s := r.Analysis.Cells[i]
	return r.lacks(s, metricOf(metric, s)) == ""
}

// without says why a claim has no pair: a time budget left them out, or each needs what the
// testbed lacks. The reason that counts is named first, then the one that most of it has.
func (v *Verdict) without(leftOut bool) {
	v.Outcome = NotMeasurable
	if leftOut {
		v.Outcome = NotMeasured
	}
	often := map[string]int{}
	for _, m := range v.Missing {
		often[m.Why]++
	}
	slices.SortStableFunc(v.Missing, func(a, b Missing) int {
		switch {
		case a.leftOut() == b.leftOut():
			return cmp.Compare(often[b.Why], often[a.Why])
		case a.leftOut() == leftOut:
			return -1
		}
		return 1
	})
}
