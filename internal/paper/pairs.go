package paper

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// negligible is the share below which a difference is none: what compare, too,
// takes for no difference.
const negligible = 0.03

// fills is the share of what a link can carry from which it is full, as
// docs/statistics.md has it.
const fills = 0.99

// bounds say what an interval of a pair's value shows: that the relation holds
// where it is from holdLow to holdHigh, that it does not where it is below failLow
// or above failHigh.
type bounds struct {
	holdLow, holdHigh, failLow, failHigh float64
	// unless: the relation holds unless it is shown not to.
	unless bool
}

func (b bounds) holds(low, high float64) bool { return low >= b.holdLow && high <= b.holdHigh }
func (b bounds) fails(low, high float64) bool { return high < b.failLow || low > b.failHigh }

func within(low, high float64) bounds {
	return bounds{holdLow: low, holdHigh: high, failLow: low, failHigh: high}
}

func above() bounds {
	return bounds{holdLow: math.Nextafter(1, 2), holdHigh: math.Inf(1), failLow: 1 + negligible, failHigh: math.Inf(1)}
}

func below() bounds {
	return bounds{holdHigh: math.Nextafter(1, 0), failHigh: 1 / (1 + negligible)}
}

// noFall holds unless a fall is shown; noRise the other way round.
func noFall() bounds {
	return bounds{failLow: 1 / (1 + negligible), failHigh: math.Inf(1), unless: true}
}

func noRise() bounds { return bounds{failHigh: 1 + negligible, unless: true} }

// contest is one comparison that a claim asks for.
type contest struct {
	left, right result.Cell // right is empty where there is none
	metric      string
	bounds      bounds
	// arithmetic values are taken as they are, others as logarithms of ratios.
	arithmetic bool
	moments    stat.Moments
}

// missing is what a claim asks for and the results do not have.
type missing struct{ what, why string }

// resolver finds what a claim asks for in results.
type resolver struct {
	*Results
	claim    Claim
	contests []contest
	missing  []missing
}

func (r *resolver) miss(what fmt.Stringer, why string) {
	m := missing{what.String(), why}
	if !slices.Contains(r.missing, m) {
		r.missing = append(r.missing, m)
	}
}

// resolve makes the contests of a claim.
func resolve(results *Results, common Selector, claim Claim) *resolver {
	r := &resolver{Results: results, claim: claim}
	for _, s := range common.with(claim.Left).each() {
		if _, said := s[claim.Factor]; said && claim.Factor != "" {
			delete(s, claim.Factor) // all of its values are compared
		}
		cells := r.matching(s)
		if name := s.unknown(); len(cells) == 0 || name != "" {
			r.miss(s.onHost(), r.absent(s))
			continue
		}
		switch claim.Relation {
		case risesWith, fallsWith, fallsBeyond:
			r.series(s, cells)
		case fillsLink, shortOfLink, atMost, atLeast:
			for _, c := range cells {
				r.alone(c)
			}
		default:
			for _, c := range cells {
				r.opponents(c)
			}
		}
	}
	return r
}

// name is a cell as a reason names it.
type name result.Cell

func (n name) String() string {
	c := result.Cell(n)
	return fmt.Sprintf("%s %s %s, %s, %s, MTU %d, %s", c.Network, c.Path, c.Placement, c.Link, c.Profile, c.MTU, c.Traffic())
}

// value tells whether a cell has the metric, and notes it where not.
func (r *resolver) value(s stat.CellSummary) bool {
	why := r.lacks(s, metricOf(r.claim.Metric, s))
	if why != "" {
		r.miss(name(s.Cell), why)
	}
	return why == ""
}

// opponents holds a left cell against every right one.
func (r *resolver) opponents(left stat.CellSummary) {
	if !r.value(left) {
		return
	}
	for _, s := range r.claim.Right.each() {
		if s.unknown() != "" {
			r.miss(s, r.absent(s))
			continue
		}
		cell, err := change(left.Cell, s)
		if err != nil {
			r.miss(s, err.Error())
			continue
		}
		if cell == left.Cell {
			continue // a list may hold the left one too
		}
		right, ok := r.Analysis.Cell(cell)
		if !ok {
			r.miss(name(cell), r.absent(s))
			continue
		}
		if r.value(right) {
			r.add(left, right, r.bounds(metricOf(r.claim.Metric, left)))
		}
	}
}

// bounds are those of a relation between two cells.
func (r *resolver) bounds(metric string) bounds {
	c := r.claim
	more := c.Relation == greater
	switch c.Relation {
	case ratioWithin:
		return within(c.Range[0], c.Range[1])
	case indistinguishable:
		return within(1/(1+c.Within), 1+c.Within)
	case better, worse:
		more = (c.Relation == better) != (lowerIsBetter(metric) && c.Measure != efficiencyMeasure)
	}
	if more {
		return above()
	}
	return below()
}

// add makes the contest of two cells; of their efficiencies where the claim is
// about these.
func (r *resolver) add(left, right stat.CellSummary, b bounds) {
	metric := metricOf(r.claim.Metric, left)
	over, under := []result.Cell{left.Cell}, []result.Cell{right.Cell}
	if r.claim.Measure == efficiencyMeasure {
		for _, s := range []stat.CellSummary{left, right} {
			base, ok := r.Analysis.Cell(s.Cell.Baseline())
			if !ok {
				r.miss(name(s.Cell.Baseline()), "the baseline "+r.absent(Selector{}))
				return
			}
			if !r.value(base) {
				return
			}
		}
		over, under = append(over, right.Cell.Baseline()), append(under, left.Cell.Baseline())
		if lowerIsBetter(metric) {
			over, under = under, over
		}
	}
	m := r.Collector.Contrast(metric, over, under)
	if m.NotPositive > 0 {
		r.miss(name(left.Cell), fmt.Sprintf("in %d of the blocks that it shares with %s a value is not above zero, and the others alone would be a selection: sample for longer", m.NotPositive, name(right.Cell)))
		return
	}
	if m.N == 0 {
		r.miss(name(left.Cell), fmt.Sprintf("no block has both it and %s", name(right.Cell)))
		return
	}
	r.contests = append(r.contests, contest{left: left.Cell, right: right.Cell, metric: metric, bounds: b, moments: m})
}

// alone holds a cell against a number.
func (r *resolver) alone(s stat.CellSummary) {
	if !r.value(s) {
		return
	}
	metric := metricOf(r.claim.Metric, s)
	c := contest{left: s.Cell, metric: metric}
	switch r.claim.Relation {
	case atMost:
		c.bounds, c.arithmetic = within(math.Inf(-1), *r.claim.Value), true
	case atLeast:
		c.bounds, c.arithmetic = within(*r.claim.Value, math.Inf(1)), true
	default:
		limit, ok := r.Collector.LinkLimit(s.Cell)
		if !ok {
			r.miss(name(s.Cell), "what its link can carry is not known")
			return
		}
		c.bounds = within(fills, math.Inf(1))
		if r.claim.Relation == shortOfLink {
			c.bounds = within(0, math.Nextafter(fills, 0))
		}
		c.moments = r.Collector.Contrast(metric, []result.Cell{s.Cell}, nil)
		if c.moments.NotPositive > 0 {
			r.miss(name(s.Cell), fmt.Sprintf("%d blocks have no value above zero", c.moments.NotPositive))
			return
		}
		c.moments.Mean -= math.Log(limit)
	}
	if c.arithmetic {
		c.moments = r.Collector.Values(metric, s.Cell)
	}
	r.contests = append(r.contests, c)
}

// series compares cells that differ in one factor alone.
func (r *resolver) series(s Selector, cells []stat.CellSummary) {
	if !slices.Contains(Factors(), r.claim.Factor) {
		r.miss(s, fmt.Sprintf("this cnibench has no factor %s", r.claim.Factor))
		return
	}
	for _, run := range runs(cells, r.claim.Factor) {
		run = slices.DeleteFunc(run, func(s stat.CellSummary) bool { return !r.value(s) })
		if len(run) < 2 {
			r.miss(s.onHost(), fmt.Sprintf("fewer than 2 values of %s are recorded: %s", r.claim.Factor, r.absent(Selector{})))
			continue
		}
		first, last := run[0], run[len(run)-1]
		switch r.claim.Relation {
		case fallsBeyond:
			r.beyond(run)
			continue
		case risesWith:
			r.add(last, first, above())
		default:
			r.add(last, first, below())
		}
		for i := 1; i < len(run) && len(run) > 2; i++ {
			if r.claim.Relation == risesWith {
				r.add(run[i], run[i-1], noFall())
			} else {
				r.add(run[i], run[i-1], noRise())
			}
		}
	}
}

// beyond holds the cell with the greatest value of the factor against that with
// the greatest up to the bound.
func (r *resolver) beyond(run []stat.CellSummary) {
	for i := len(run) - 2; i >= 0; i-- {
		if valueOf(run[i].Cell, r.claim.Factor) <= *r.claim.At && valueOf(run[len(run)-1].Cell, r.claim.Factor) > *r.claim.At {
			r.add(run[len(run)-1], run[i], below())
			return
		}
	}
	r.miss(name(run[0].Cell), fmt.Sprintf("no values of %s on both sides of %g are recorded: %s", r.claim.Factor, *r.claim.At, r.absent(Selector{})))
}

// runs groups cells that are the same but for a factor, each in its order.
func runs(cells []stat.CellSummary, factor string) [][]stat.CellSummary {
	var out [][]stat.CellSummary
	at := map[result.Cell]int{}
	for _, s := range cells {
		common, err := change(s.Cell, Selector{factor: nil})
		if err != nil {
			continue
		}
		i, ok := at[common]
		if !ok {
			i = len(out)
			at[common], out = i, append(out, nil)
		}
		out[i] = append(out[i], s)
	}
	for _, run := range out {
		slices.SortFunc(run, func(a, b stat.CellSummary) int {
			return cmp.Compare(valueOf(a.Cell, factor), valueOf(b.Cell, factor))
		})
	}
	return out
}

// valueOf is a factor's value; one that is left out is 0.
func valueOf(c result.Cell, factor string) float64 {
	v, ok := factorsOf(c)[factor].(float64)
	if !ok {
		return 0
	}
	return v
}
