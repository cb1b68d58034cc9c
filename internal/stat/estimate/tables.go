package estimate

import (
	"math"

	"github.com/aclements/go-moremath/mathx"
	"github.com/aclements/go-moremath/stats"
)

// Tables keeps the quantiles of one confidence: finding one takes a search,
// and a campaign asks for the same few again and again.
type Tables struct {
	confidence float64
	t          map[int]float64
	orders     map[int]order
}

// order is the pair of order statistics x(low) and x(n+1−low), counted from 1,
// that holds the median with the given confidence; low 0 means there is none.
type order struct {
	low        int
	confidence float64
}

// NewTables makes the tables of a confidence.
func NewTables(confidence float64) *Tables {
	return &Tables{confidence: confidence, t: map[int]float64{}, orders: map[int]order{}}
}

// TQuantile is Student's two-sided quantile for the confidence and whole
// degrees of freedom.
func (t *Tables) tQuantile(dof int) float64 {
	q, ok := t.t[dof]
	if !ok {
		q = TQuantile(float64(dof), 1-(1-t.confidence)/2)
		t.t[dof] = q
	}
	return q
}

// manyDOF is where t is the normal distribution to four digits, and where the
// continued fraction behind stats.TDist begins to need many steps.
const manyDOF = 5000

// TQuantile is the p quantile of Student's t, for p > ½. Newton's steps from
// the normal quantile: the distribution is concave there, so that they come up
// from below and never pass it. stats.InvCDF gives the same in ten times as long.
func TQuantile(dof, p float64) float64 {
	x := stats.StdNormal.InvCDF(p)
	if dof > manyDOF {
		return x
	}
	t := stats.TDist{V: dof}
	for range 100 {
		step := (p - t.CDF(x)) / t.PDF(x)
		x += step
		if step <= 1e-13*x {
			break
		}
	}
	return x
}

// TTest is the two-sided p-value of t with the given degrees of freedom. The
// incomplete beta function gives the tail itself, where 1 − CDF would be lost
// to rounding.
func TTest(t, dof float64) float64 {
	switch {
	case math.IsNaN(t) || dof <= 0:
		return 1
	case math.IsInf(t, 0):
		return 0
	case dof > manyDOF:
		return math.Erfc(math.Abs(t) / math.Sqrt2)
	}
	return mathx.BetaInc(dof/(dof+t*t), dof/2, 0.5)
}

// medianOrders is the narrowest symmetric pair of order statistics of n that
// holds the median with at least the confidence: x(l), x(n+1−l) hold it with
// 1 − 2·P(Binomial(n, ½) < l), whatever the distribution.
func (t *Tables) medianOrders(n int) order {
	if o, ok := t.orders[n]; ok {
		return o
	}
	var o order
	for l := t.firstGuess(n); l >= 1; l-- {
		if c := 1 - 2*halfBinomial(n, l-1); c >= t.confidence {
			o = order{l, c}
			break
		}
	}
	t.orders[n] = o
	return o
}

// firstGuess is an l that is surely not too small: the normal approximation's
// and two more.
func (t *Tables) firstGuess(n int) int {
	z := stats.StdNormal.InvCDF(1 - (1-t.confidence)/2)
	l := int(math.Ceil(float64(n)/2-z*math.Sqrt(float64(n))/2)) + 2
	return min(l, (n+1)/2)
}

// halfBinomial is P(Binomial(n, ½) ≤ k).
func halfBinomial(n, k int) float64 {
	if n > 2*manyDOF {
		// Normal with the continuity correction; mathx.BetaInc gives up here.
		return math.Erfc(-(float64(2*k+1-n))/math.Sqrt(float64(n))/math.Sqrt2) / 2
	}
	return stats.BinomialDist{N: n, P: 0.5}.CDF(float64(k))
}

// medianNeeds is the least number of samples of which the extremes hold the
// median with the confidence: 1 − 2^(1−n).
func (t *Tables) medianNeeds() int {
	return int(math.Ceil(1 - math.Log2(1-t.confidence)))
}
