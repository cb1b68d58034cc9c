package paper

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// Outcome is the verdict on a claim.
type Outcome string

// The verdicts.
const (
	// Reproduced: every pair that the claim is about shows what it says.
	Reproduced Outcome = "reproduced"
	// ReproducedInPart: what could be measured shows it, and the other pairs need what
	// this testbed lacks.
	ReproducedInPart Outcome = "reproduced in part"
	// Contradicted: a pair shows that it is not so.
	Contradicted Outcome = "contradicted"
	// Undecided: neither is shown.
	Undecided Outcome = "undecided"
	// NotMeasured: a time budget left out what the claim is about. A run without one may
	// decide it.
	NotMeasured Outcome = "not measured"
	// NotMeasurable: this testbed could not measure what the claim is about.
	NotMeasurable Outcome = "not measurable here"
)

// Outcomes are all verdicts, in the order in which reports show them.
func Outcomes() []Outcome {
	return []Outcome{Reproduced, ReproducedInPart, Contradicted, Undecided, NotMeasured, NotMeasurable}
}

// Compared reports whether a claim with this verdict was compared with records.
func (o Outcome) Compared() bool { return o != NotMeasured && o != NotMeasurable }

// Verdict is what results say of a claim.
type Verdict struct {
	Claim   Claim   `json:"claim"`
	Outcome Outcome `json:"verdict"`
	// Pairs are the comparisons that it rests on.
	Pairs []Pair `json:"pairs,omitempty"`
	// Deciding is the index of the pair that the verdict depends on; 0 without pairs.
	Deciding int `json:"deciding,omitempty"`
	// Missing is what the claim is about and the results do not have.
	Missing []Missing `json:"missing,omitempty"`
	// MoreBlocks is how many more would decide it, if mean and spread stay what
	// they are; 0 where that is not known or none would.
	MoreBlocks int `json:"more_blocks,omitempty"`
	// Leans is what an undecided claim would be if the means were the truth; absent
	// where that is nothing either, or the claim is not undecided.
	Leans Outcome `json:"leans,omitempty"`
}

// Pair is one comparison.
type Pair struct {
	Left result.Cell `json:"left"`
	// Right is nil where the claim is about a number.
	Right  *result.Cell `json:"right,omitempty"`
	Metric string       `json:"metric"`
	// Value is left / right, left − right, the share of the link, or the metric itself.
	Value estimate.Estimate `json:"value"`
	// Arithmetic tells that Value is the metric itself, in base units.
	Arithmetic bool `json:"arithmetic,omitempty"`
	// Outcome is what this pair alone shows.
	Outcome Outcome `json:"shows"`
}

// Missing is what could not be compared, and why.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// leftOut reports whether nothing but a time budget is why.
func (m Missing) leftOut() bool { return strings.Contains(m.Why, leftOut) }

// lacking reports whether this testbed cannot measure it: a feature is missing, or a profile
// did not take effect.
func (m Missing) lacking() bool {
	return strings.HasPrefix(m.Why, unsupportedHere) || strings.Contains(m.Why, notInForce)
}

// Verdicts says of each claim what the results show.
//
// A claim is about all of its pairs. It is reproduced where each pair's interval
// shows it: then no correction is needed, since all must be wrong together
// (Berger 1982, intersection-union). If some of its pairs need what the testbed lacks, and all
// others show it, it is reproduced in part. It is contradicted where any pair shows the
// opposite, each at a confidence corrected for their number (Bonferroni). So the
// probability of a false decision is at most 1 − confidence for each claim.
func Verdicts(p Paper, r *Results) []Verdict {
	var out []Verdict
	for i, c := range p.Claims {
		if !r.Cut || i >= len(p.uses) || len(p.uses[i]) == 0 {
			out = append(out, judge(p.Publication.Cells, c, r, left{}))
			continue
		}
		cells, of := r.leftOut(p.comparedOf(i, r.within)), left{}
		if len(r.leftOut(p.uses[i])) < len(p.uses[i]) { // else it is another campaign's
			of = left{cells: cells, none: len(cells) == 0}
		}
		v := judge(p.Publication.Cells, c, r, of)
		if !v.Outcome.Compared() {
			v.without(len(cells) > 0)
		}
		out = append(out, v)
	}
	return out
}

// judge judges a claim.
func judge(common Selector, claim Claim, results *Results, out left) Verdict {
	v := Verdict{Claim: claim}
	if claim.NotYet != "" {
		v.Outcome, v.Missing = NotMeasurable, []Missing{{What: "not yet", Why: claim.NotYet}}
		return v
	}
	r := resolve(results, common, claim)
	for _, c := range out.cells { // in how many pairs is not known
		r.miss(name(c), leftOut)
		r.uncounted = true
	}
	for _, m := range r.missing {
		if out.none && m.why == leftOut {
			m.why = noOtherSide
		}
		v.Missing = append(v.Missing, Missing{m.what, m.why})
	}
	// What this testbed cannot measure is named before what a time budget left out.
	v.Missing = append(slices.DeleteFunc(slices.Clone(v.Missing), Missing.leftOut), slices.DeleteFunc(v.Missing, func(m Missing) bool { return !m.leftOut() })...)
	if len(r.comparisons) == 0 {
		v.without(len(v.Missing) > 0 && v.Missing[0].leftOut()) // and so are all after it
		return v
	}
	j := decision{comparisons: r.comparisons, confidence: results.confidence(), enough: claim.Holds, lost: r.lost, uncounted: r.uncounted && r.lost > 0}
	j.lacking = !slices.ContainsFunc(v.Missing, func(m Missing) bool { return !m.lacking() })
	v.Outcome = j.verdict(0)
	for _, c := range r.comparisons {
		v.Pairs = append(v.Pairs, c.pair(j))
	}
	v.Deciding = j.deciding(v)
	if v.Outcome == Undecided {
		v.MoreBlocks = j.more()
		v.Leans = j.leans()
	}
	return v
}

// decision decides a claim from its comparisons.
type decision struct {
	comparisons []comparison
	confidence  float64
	// enough is how many must hold: all (or ""), most or any.
	enough string
	// lost is how many more pairs the claim is about. With uncounted there may be more.
	lost      int
	uncounted bool
	// lacking: all of these need what the testbed lacks.
	lacking bool
	// means: each comparison is what its mean says, without an interval.
	means bool
}

// strict is the confidence of one comparison that all of them together have.
func (j decision) strict() float64 { return 1 - (1-j.confidence)/float64(len(j.comparisons)) }

// confidences are those at which a comparison shows that the relation holds, and that it
// does not. Where all must be right together no correction is needed; where one is
// enough, each has the share of their number.
func (j decision) confidences() (holds, fails float64) {
	switch j.enough {
	case holdsMost:
		return j.strict(), j.strict()
	case holdsAny:
		return j.strict(), j.confidence
	}
	return j.confidence, j.strict()
}

// shows is what one comparison shows, if it had some blocks more.
func (j decision) shows(c comparison, more int) Outcome {
	forIt, againstIt := j.confidences()
	if c.not {
		forIt, againstIt = againstIt, forIt
	}
	low, high, ok := j.interval(c, more, forIt)
	failLow, failHigh, _ := j.interval(c, more, againstIt)
	fails := c.bounds.fails(failLow, failHigh)
	word := Undecided
	switch {
	case !ok:
		return Undecided
	case c.bounds.unless && !fails, !c.bounds.unless && c.bounds.holds(low, high):
		word = Reproduced
	case fails:
		word = Contradicted
	}
	if c.not {
		return map[Outcome]Outcome{Reproduced: Contradicted, Contradicted: Reproduced, Undecided: Undecided}[word]
	}
	return word
}

// interval is that of a comparison, or its mean alone.
func (j decision) interval(c comparison, more int, confidence float64) (low, high float64, ok bool) {
	if !j.means {
		return c.interval(more, confidence)
	}
	mean := c.moments.Mean
	if !c.arithmetic {
		mean = math.Exp(mean)
	}
	return mean, mean, c.moments.N > 0
}

// leans is the verdict that the means alone would give.
func (j decision) leans() Outcome {
	j.means, j.lost, j.uncounted = true, 0, false
	if w := j.verdict(0); w != Undecided {
		return w
	}
	return ""
}

// verdict is what the comparisons show together, each with some blocks more than it
// has.
func (j decision) verdict(more int) Outcome {
	hold, fail := 0, 0
	for _, c := range j.comparisons {
		switch j.shows(c, more) {
		case Reproduced:
			hold++
		case Contradicted:
			fail++
		}
	}
	n := len(j.comparisons)
	all := n + j.lost
	var holds, fails, here bool // here: what could be compared holds
	switch j.enough {
	case holdsMost: // whatever the missing pairs would show
		holds, fails, here = 2*hold > all && !j.uncounted, 2*fail >= all && !j.uncounted, 2*hold > n
	case holdsAny:
		holds, fails = hold > 0, fail == all
	default:
		holds, fails, here = hold == all, fail > 0, hold == n
	}
	switch {
	case fails:
		return Contradicted
	case holds:
		return Reproduced
	case here && j.lacking:
		return ReproducedInPart
	}
	return Undecided
}

// mostBlocks is beyond what anybody measures: where so many do not decide, none do.
const mostBlocks = 1 << 20

// more is how many blocks more would decide; 0 where none would, or where it
// cannot be said.
func (j decision) more() int {
	high := 1
	for ; j.verdict(high) == Undecided; high *= 2 {
		if high > mostBlocks {
			return 0
		}
	}
	low := high / 2 // undecided, or 0
	for low+1 < high {
		if mid := (low + high) / 2; j.verdict(mid) == Undecided {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// interval is that of the comparison's value, if it had more blocks of the same
// mean and spread.
func (c comparison) interval(more int, confidence float64) (low, high float64, ok bool) {
	m := c.moments
	if m.N < 2 {
		return 0, 0, false // the spread is not known
	}
	m.N += more
	low, high, ok = m.Interval(confidence)
	if !c.arithmetic {
		low, high = math.Exp(low), math.Exp(high)
	}
	return low, high, ok
}

// pair is the comparison as reports show it.
func (c comparison) pair(j decision) Pair {
	p := Pair{Left: c.left, Metric: c.metric, Arithmetic: c.arithmetic, Outcome: j.shows(c, 0)}
	if c.right != (result.Cell{}) {
		p.Right = &c.right
	}
	p.Value = estimate.Estimate{Value: c.moments.Mean, N: c.moments.N, Method: estimate.ArithmeticMean}
	if !c.arithmetic {
		p.Value.Value, p.Value.Method = math.Exp(c.moments.Mean), estimate.GeometricMean
	}
	low, high, ok := c.interval(0, j.confidence)
	if !ok {
		p.Value.Needed = 2
		return p
	}
	p.Value.Low, p.Value.High, p.Value.Confidence = &low, &high, j.confidence
	return p
}

// deciding is the index of the pair that a verdict depends on: of those that show the
// verdict, the one that comes nearest to contradicting the claim. Where one pair is enough,
// it is the one that shows it best.
func (j decision) deciding(v Verdict) int {
	var those, all []int
	shown := v.Outcome
	if shown == ReproducedInPart {
		shown = Reproduced
	}
	for i, p := range v.Pairs {
		all = append(all, i)
		if p.Outcome == shown {
			those = append(those, i)
		}
	}
	if len(those) == 0 { // each pair is decided, and the claim is not
		those = all
	}
	bySlack := func(a, b int) int { return cmp.Compare(j.slack(j.comparisons[a]), j.slack(j.comparisons[b])) }
	if v.Outcome == Reproduced && j.enough == holdsAny {
		return slices.MaxFunc(those, bySlack)
	}
	return slices.MinFunc(those, bySlack)
}

// slack is how far an interval is inside what the relation asks for, as a difference of
// logarithms where the value is a ratio. It is negative where a part of the interval is
// outside, then by how far that part reaches, and where the whole is, by how far all of it is
// away. Without an interval it is infinite.
func (j decision) slack(c comparison) float64 {
	low, high, ok := c.interval(0, j.confidence)
	if !ok {
		return math.Inf(1)
	}
	least, most := c.bounds.holdLow, c.bounds.holdHigh
	if c.bounds.unless {
		least, most = c.bounds.failLow, c.bounds.failHigh
	}
	if !c.arithmetic {
		low, high, least, most = math.Log(low), math.Log(high), math.Log(least), math.Log(most)
	}
	inside := min(low-least, most-high)
	switch {
	case high < least:
		inside = high - least
	case low > most:
		inside = most - low
	}
	if c.not {
		return -inside
	}
	return inside
}
