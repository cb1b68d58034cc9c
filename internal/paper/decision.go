package paper

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

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
	return fewest(func(more int) bool { return j.verdict(more) != Undecided })
}

// interval is that of the comparison's value, if it had more blocks of the same
// mean and spread.
func (c comparison) interval(more int, confidence float64) (low, high float64, ok bool) {
	m := c.moments
	if m.N < 2 {
		return 0, 0, false // the spread is not known
	}
	m.N += more
	low, high, ok = m.IntervalWith(c.prior, confidence)
	if !c.arithmetic {
		low, high = math.Exp(low), math.Exp(high)
	}
	return low, high, ok
}

// pair is the comparison as reports show it.
func (c comparison) pair(j decision) Pair {
	p := Pair{Left: c.left, Metric: c.metric, Arithmetic: c.arithmetic, Factor: c.factor, Outcome: j.shows(c, 0)}
	if c.right != (result.Cell{}) {
		p.Right = &c.right
	}
	p.Value = estimate.Estimate{Value: c.moments.Mean, N: c.moments.N, Method: estimate.ArithmeticMean}
	if !c.arithmetic {
		p.Value.Value, p.Value.Method = math.Exp(c.moments.Mean), estimate.GeometricMean
	}
	if c.prior != (estimate.Prior{}) {
		p.Value.Method = estimate.ModeratedMean
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
