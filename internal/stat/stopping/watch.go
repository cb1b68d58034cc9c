package stopping

import (
	"cmp"
	"math"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// Watch judges the cells of a campaign while it is measured. It keeps one number for each
// cell and block, and a look takes as long after the last block as after the first: the
// machine that measures does this work too.
//
// A cell is done when the half-width of its efficiency is within the target and one more
// block has confirmed it; a baseline, when every cell that is compared with it is. With
// Options.UntilRanked its rank must be decided as well: against every other network of
// its ranking it differs significantly, or the whole interval of their ratio is within ± twice the
// target, which is a tie.
type Watch struct {
	c     *dataset.Dataset // the options and their tables; it has no cells
	cells map[result.Cell]*watched
	// all are the cells in the order in which they came.
	all []*watched
	// ranked are the cells that are ranked with each other, pairs what is known of two.
	ranked map[result.Cell][]*watched
	pairs  map[[2]*watched]*running
	// looked is the last block that was looked at.
	looked int
}

// watched is what is known of one cell.
type watched struct {
	cell    result.Cell
	primary string
	// logs are those of the primary metric, above 0 better, by block; NaN where it was
	// not measured.
	logs []float64
	// measured is the number of blocks with a measured sample.
	measured    int
	unsupported string
	// base is the baseline that of was computed with; nil: there was none.
	base *watched
	of   running
}

// running are the moments of a series that grows block by block.
type running struct {
	n        int
	mean, ss float64
	// met is the number of blocks after which the target was first met; 0: never.
	met int
	// upTo is the last block that was looked at.
	upTo int
}

// NewWatch makes one that knows no sample.
func NewWatch(opt dataset.Options) *Watch {
	return &Watch{c: dataset.New(opt), cells: map[result.Cell]*watched{}, ranked: map[result.Cell][]*watched{}, pairs: map[[2]*watched]*running{}}
}

// Keep takes a record, in the order in which they were made. Nothing of it is held but
// one number.
func (w *Watch) Keep(s *result.Sample) {
	d := w.cells[s.Cell]
	if d == nil {
		d = &watched{cell: s.Cell, primary: w.c.Options.Primary(s.Cell)}
		w.cells[s.Cell], w.all = d, append(w.all, d)
	}
	switch {
	case s.Status == result.StatusOK && s.Block > 0:
		w.keepMeasured(d, s)
	case s.Status == result.StatusUnsupported:
		d.unsupported = cmp.Or(d.unsupported, s.Reason, "no reason recorded")
	}
}

func (w *Watch) keepMeasured(d *watched, s *result.Sample) {
	if d.primary == "" {
		d.primary = firstMetric(s)
	}
	if d.measured == 0 && dataset.IsRanked(d.cell) {
		g := dataset.RankedWith(d.cell)
		w.ranked[g] = append(w.ranked[g], d)
	}
	for len(d.logs) < s.Block {
		d.logs = append(d.logs, math.NaN())
	}
	if math.IsNaN(d.logs[s.Block-1]) {
		d.measured++
	}
	d.logs[s.Block-1] = math.NaN()
	if v, ok := s.Metrics[d.primary]; ok && v > 0 && !math.IsInf(v, 1) {
		d.logs[s.Block-1] = estimate.Goodness(math.Log(v), w.c.Better[d.primary])
	}
	if s.Block <= w.looked {
		w.forget(d)
	}
}

// firstMetric is the first metric of unit.Metrics that a sample has and that has a better
// side.
func firstMetric(s *result.Sample) string {
	for _, m := range unit.Metrics() {
		if _, ok := s.Metrics[m.Name]; ok && m.Better != unit.Neither {
			return m.Name
		}
	}
	return ""
}

// forget makes the next look recompute all that depends on a cell's values.
func (w *Watch) forget(d *watched) {
	for _, e := range w.all {
		if e == d || e.base == d {
			e.of = running{}
		}
	}
	for of := range w.pairs {
		if of[0] == d || of[1] == d {
			delete(w.pairs, of)
		}
	}
}

// at is the log of a block, counted from 1; NaN where it was not measured.
func (d *watched) at(block int) float64 {
	if block > len(d.logs) {
		return math.NaN()
	}
	return d.logs[block-1]
}

// add looks at the blocks up to n of a series.
func (r *running) add(c *dataset.Dataset, n int, at func(block int) float64) {
	for r.upTo < n {
		r.upTo++
		v := at(r.upTo)
		if math.IsNaN(v) {
			continue
		}
		r.take(v)
		if r.met == 0 && reachesTarget(c, r.moments()) {
			r.met = r.n
		}
	}
}

// take is Welford's update.
func (r *running) take(v float64) {
	r.n++
	delta := v - r.mean
	r.mean += delta / float64(r.n)
	r.ss += delta * (v - r.mean)
}

func (r *running) moments() estimate.Moments {
	m := estimate.Moments{N: r.n, Mean: r.mean}
	if r.n > 1 {
		m.SD = math.Sqrt(r.ss / float64(r.n-1))
	}
	return m
}

// Look judges every cell that has a record, by its blocks up to n. A cell that is done
// stays done as long as it gets no further sample. MaxBlocks is the caller's to keep.
func (w *Watch) Look(n int) map[result.Cell]Progress {
	w.looked = max(w.looked, n)
	out := make(map[result.Cell]Progress, len(w.all))
	dependents := map[*watched][]result.Cell{}
	for _, d := range w.all {
		if base := w.cells[d.cell.Baseline()]; base != nil && !d.cell.IsBaseline() {
			dependents[base] = append(dependents[base], d.cell)
		}
	}
	for _, d := range w.all {
		if len(dependents[d]) == 0 {
			out[d.cell] = w.progress(d, n)
		}
	}
	if w.c.Options.UntilRanked {
		w.keepOpenRanks(n, out)
	}
	for base, all := range dependents {
		out[base.cell] = ofDependents(base.measured, all, out)
	}
	return out
}

// progress is the stopping rule on the log efficiencies of a cell, or on its own logs
// where there is no baseline that will be measured.
func (w *Watch) progress(d *watched, n int) Progress {
	if d.unsupported != "" && d.measured == 0 {
		return Progress{Done: true, Why: "unsupported: " + d.unsupported}
	}
	base := w.cells[d.cell.Baseline()]
	if d.cell.IsBaseline() || base != nil && base.unsupported != "" && base.measured == 0 {
		base = nil
	}
	if base != d.base {
		d.base, d.of = base, running{}
	}
	d.of.add(w.c, n, func(block int) float64 {
		if base != nil {
			return d.at(block) - base.at(block)
		}
		return d.at(block)
	})
	return judge(w.c, d.of.moments(), d.of.met)
}

// keepOpenRanks takes Done from the cells that have met their target and whose rank is
// open.
func (w *Watch) keepOpenRanks(n int, out map[result.Cell]Progress) {
	tie := 2 * logTarget(w.c)
	for _, in := range w.ranked {
		var pairings []estimate.Pairing
		var all []estimate.Moments
		var ps []float64
		for i := range in {
			for j := i + 1; j < len(in); j++ {
				key := [2]*watched{in[i], in[j]}
				of := w.pairs[key]
				if of == nil {
					of = &running{}
					w.pairs[key] = of
				}
				of.add(w.c, n, func(block int) float64 { return in[i].at(block) - in[j].at(block) })
				m := of.moments()
				k := estimate.Pairing{Winner: i, Loser: j}
				if m.Mean < 0 {
					k = estimate.Pairing{Winner: j, Loser: i}
				}
				pairings, all, ps = append(pairings, k), append(all, m), append(ps, estimate.PairedT(m))
			}
		}
		beats := estimate.Decide(len(in), pairings, estimate.Holm(ps), w.c.Options.Confidence)
		for i, k := range pairings {
			m := all[i]
			if beats[k.Winner][k.Loser] || m.N < 2 || math.Abs(m.Mean)+m.Halfwidth(w.c.Tables) <= tie {
				continue
			}
			for _, ends := range [][2]int{{k.Winner, k.Loser}, {k.Loser, k.Winner}} {
				cell := in[ends[0]].cell
				if q := out[cell]; q.Done {
					q.Done, q.BlocksNeeded = false, q.Blocks+1
					q.Why = "target met; its rank is open against " + in[ends[1]].cell.Network
					out[cell] = q
				}
			}
		}
	}
}
