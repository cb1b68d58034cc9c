package paper

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// negligible is the share below which a difference is none: what compare, too,
// takes for no difference.
const negligible = 0.03

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

// noFall holds unless a fall is shown; noRise the other way round.
func noFall() bounds {
	return bounds{failLow: 1 / (1 + negligible), failHigh: math.Inf(1), unless: true}
}

func noRise() bounds { return bounds{failHigh: 1 + negligible, unless: true} }

// comparison is one that a claim asks for: of the product of the metric in the
// cells over and that in the cells under.
type comparison struct {
	left, right result.Cell // right is empty where there is none
	metric      string
	over, under []result.Cell
	bounds      bounds
	// not: the claim excepts this pair, so that the relation must not hold.
	not bool
	// arithmetic values are taken as they are, others as logarithms of ratios.
	arithmetic bool
	// factor is how many times the right value is subtracted where a ratio is not known, as a value
	// is 0; else 0.
	factor float64
	// limit is what the link can carry, where the value is a share of that; else 0.
	limit   float64
	moments estimate.Moments
	// prior is what like comparisons say of its spread.
	prior estimate.Prior
	terms []term // of a self-test
}

// missing is what a claim asks for and the results do not have.
type missing struct{ what, why string }

// resolver finds what a claim asks for in results.
type resolver struct {
	*Results
	claim       Claim
	out         left
	relation    relation
	comparisons []comparison
	missing     []missing
	// lost is how many pairs are missing. With uncounted there may be more.
	lost      int
	uncounted bool
}

// miss notes why a pair is missing.
func (r *resolver) miss(what fmt.Stringer, why string) {
	r.lost++
	m := missing{what.String(), why}
	if !slices.Contains(r.missing, m) {
		r.missing = append(r.missing, m)
	}
}

// resolve makes the comparisons of a claim.
func resolve(results *Results, common Selector, claim Claim) *resolver {
	r := &resolver{Results: results, claim: claim}
	r.relation, _ = findRelation(claim.Relation) // the schema has refused others
	for _, s := range selectors(common, claim) {
		cells := r.matching(s)
		if name := s.unknown(); len(cells) == 0 || name != "" {
			r.miss(s.onHost(), r.absent(s))
			r.uncounted = true
			continue
		}
		switch r.relation.form {
		case series, beyond, growth:
			r.series(s, cells)
		case alone, share:
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

// selectors are those of a claim's left side, one for each combination of its values;
// the values of the factor of a series stay together.
func selectors(common Selector, claim Claim) []Selector {
	left := common.with(claim.Left)
	delete(left, claim.Factor)
	return left.each()
}

// name is a cell as a reason names it.
type name result.Cell

func (n name) String() string {
	return result.Cell(n).Describe()
}

// value tells whether a cell has the metric, and notes it where not.
func (r *resolver) value(s summary.Cell) bool {
	why := r.lacks(s, metricOf(r.claim.Metric, s))
	if why != "" {
		r.miss(name(s.Cell), why)
	}
	return why == ""
}

// opponents compares a left cell with every right one.
func (r *resolver) opponents(left summary.Cell) {
	if !r.value(left) { // one pair is counted, and those that have no right cell are by against
		r.lost += len(r.against(left)) - 1
		return
	}
	for _, right := range r.against(left) {
		if r.value(right) {
			r.add(left, right, r.bounds(metricOf(r.claim.Metric, left)))
		}
	}
}

// against are the right cells of a left one.
func (r *resolver) against(left summary.Cell) []summary.Cell {
	var out []summary.Cell
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
		cell = r.claim.recordedAs(cell, s, r.recorded())
		if cell == left.Cell {
			continue // a list may hold the left one too
		}
		right, ok := r.Analysis.Cell(cell)
		if !ok {
			r.miss(name(cell), r.absent(s))
			continue
		}
		out = append(out, right)
	}
	return out
}

// recordedAs is the one of cells that differs from a cell in nothing but the conditions of
// the experiment, where the selector that made it names none: another traffic has conditions
// of its own (UDP has no congestion control). Where a claim is about agents it may be of
// another cluster too, as another network is. Where there is none, or more than one, it is the
// cell itself.
func (c Claim) recordedAs(cell result.Cell, s Selector, cells []result.Cell) result.Cell {
	for _, name := range []string{"congestion_control", "cpus"} {
		if _, said := s[name]; said {
			return cell
		}
	}
	_, clusterSaid := s["cluster"]
	found := cell
	n := 0
	for _, one := range cells {
		if one == cell {
			return cell
		}
		same := one
		same.CongestionControl, same.CPUs = cell.CongestionControl, cell.CPUs
		if c.needsAgents() && !clusterSaid {
			same.Cluster = cell.Cluster
		}
		if same == cell {
			found = one
			n++
		}
	}
	if n != 1 {
		return cell
	}
	return found
}

// bounds are those of the claim's relation for a metric.
func (r *resolver) bounds(metric string) bounds {
	return r.relation.bounds(r.claim, lowerIsBetter(metric))
}

// add makes the comparison of two cells; of their efficiencies where the claim is
// about these.
func (r *resolver) add(left, right summary.Cell, b bounds) {
	metric := metricOf(r.claim.Metric, left)
	c := comparison{left: left.Cell, right: right.Cell, metric: metric, bounds: b, over: []result.Cell{left.Cell}, under: []result.Cell{right.Cell}}
	if r.claim.Measure == efficiencyMeasure {
		for _, s := range []summary.Cell{left, right} {
			base, ok := r.Analysis.Cell(s.Cell.Baseline())
			if !ok {
				r.miss(name(s.Cell.Baseline()), "the baseline "+r.absent(Selector{}))
				return
			}
			if !r.value(base) {
				return
			}
		}
		c.over, c.under = append(c.over, right.Cell.Baseline()), append(c.under, left.Cell.Baseline())
		if lowerIsBetter(metric) {
			c.over, c.under = c.under, c.over
		}
	}
	r.compare(c)
}

// compare adds one with what the records say of it.
func (r *resolver) compare(c comparison) {
	difference := r.claim.Difference()
	notPositive := 0
	switch {
	case difference:
		c.arithmetic, c.moments = true, r.Collector.Difference(c.metric, c.over, c.under)
	case r.relation.name == variesMore:
		c.moments, notPositive = r.Collector.Spread(c.metric, c.left, c.right)
	default:
		c.moments, notPositive = r.Collector.Contrast(c.metric, c.over, c.under)
	}
	if notPositive > 0 && r.byExcess(&c) {
		notPositive = 0
	}
	if notPositive > 0 {
		r.miss(name(c.left), fmt.Sprintf("in %d of the blocks that it shares with %s a value is not above zero, and the others alone would be a selection: sample for longer", notPositive, name(c.right)))
		return
	}
	if c.moments.N == 0 {
		r.miss(name(c.left), r.noBlock(c))
		return
	}
	c.not = r.claim.Except != nil && r.claim.Except.matchesAny(factorsOf(c.left))
	r.comparisons = append(r.comparisons, c)
}

// noBlock says why two cells cannot be compared though both were measured.
func (r *resolver) noBlock(c comparison) string {
	if r.relation.name == variesMore {
		return fmt.Sprintf("fewer than 3 blocks have both it and %s, or one of them does not vary", name(c.right))
	}
	return fmt.Sprintf("no block has both it and %s", name(c.right))
}

// series compares cells that differ in one factor alone.
func (r *resolver) series(s Selector, cells []summary.Cell) {
	r.uncounted = true
	if !slices.Contains(Factors(), r.claim.Factor) {
		r.miss(s, fmt.Sprintf("this cnibench has no factor %s", r.claim.Factor))
		return
	}
	for _, run := range runs(cells, r.claim.Factor) {
		run = r.named(s, run)
		run = slices.DeleteFunc(run, func(s summary.Cell) bool { return !r.value(s) })
		if len(run) < 2 {
			r.miss(s.onHost(), fmt.Sprintf("fewer than 2 values of %s are recorded: %s", r.claim.Factor, r.absent(Selector{})))
			continue
		}
		switch r.relation.form {
		case beyond:
			r.beyond(run)
		case growth:
			r.growth(run)
		default:
			r.steps(run)
		}
	}
}

// named keeps the values of the factor that the claim names, if it names any, and
// notes those that are not recorded.
func (r *resolver) named(s Selector, run []summary.Cell) []summary.Cell {
	values, ok := r.claim.Left[r.claim.Factor].([]any)
	if !ok {
		return run
	}
	var out []summary.Cell
	for _, v := range values {
		i := slices.IndexFunc(run, func(c summary.Cell) bool {
			return Selector{r.claim.Factor: v}.matches(factorsOf(c.Cell))
		})
		if i < 0 {
			r.miss(s.with(Selector{r.claim.Factor: v}).onHost(), r.absent(Selector{}))
			continue
		}
		out = append(out, run[i])
	}
	return out
}

// steps compares the last of a series with the first, and each with the one before.
func (r *resolver) steps(run []summary.Cell) {
	first, last := run[0], run[len(run)-1]
	r.add(last, first, r.bounds(metricOf(r.claim.Metric, last)))
	step := noFall()
	if r.claim.Relation == "falls_with" {
		step = noRise()
	}
	for i := 1; i < len(run) && len(run) > 2; i++ {
		r.add(run[i], run[i-1], step)
	}
}

// beyond compares the cell with the greatest value of the factor with the one at the
// bound.
func (r *resolver) beyond(run []summary.Cell) {
	last := run[len(run)-1]
	i := slices.IndexFunc(run, func(s summary.Cell) bool { return valueOf(s.Cell, r.claim.Factor) == *r.claim.At })
	if i < 0 || i == len(run)-1 {
		r.miss(name(run[0].Cell), fmt.Sprintf("%s is not recorded both at %g and beyond: %s", r.claim.Factor, *r.claim.At, r.absent(Selector{})))
		return
	}
	r.add(last, run[i], r.bounds(metricOf(r.claim.Metric, last)))
}

// growth compares the last of a series by the first with the same of each right one.
func (r *resolver) growth(run []summary.Cell) {
	first, last := run[0], run[len(run)-1]
	firsts, lasts := r.against(first), r.against(last)
	for i := range min(len(firsts), len(lasts)) {
		if !r.value(firsts[i]) || !r.value(lasts[i]) {
			continue
		}
		metric := metricOf(r.claim.Metric, last)
		r.compare(comparison{left: last.Cell, right: lasts[i].Cell, metric: metric, bounds: r.bounds(metric),
			over: []result.Cell{last.Cell, firsts[i].Cell}, under: []result.Cell{first.Cell, lasts[i].Cell}})
	}
}

// runs groups cells that are the same but for a factor, each in its order.
func runs(cells []summary.Cell, factor string) [][]summary.Cell {
	var out [][]summary.Cell
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
		slices.SortFunc(run, func(a, b summary.Cell) int {
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
