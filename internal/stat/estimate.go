package stat

import (
	"math"
	"slices"
)

// moments is the number, mean and standard deviation (of a sample: n−1) of xs.
type moments struct {
	n        int
	mean, sd float64
}

func momentsOf(points []point) moments {
	m := moments{n: len(points)}
	if m.n == 0 {
		return m
	}
	for _, p := range points {
		m.mean += p.value
	}
	m.mean /= float64(m.n)
	if m.n < 2 {
		return m
	}
	var ss float64
	for _, p := range points {
		ss += (p.value - m.mean) * (p.value - m.mean)
	}
	m.sd = math.Sqrt(ss / float64(m.n-1))
	return m
}

// halfwidth is that of the t interval of the mean, t·s/√n; infinite below two.
func (m moments) halfwidth(t *tables) float64 {
	if m.n < 2 {
		return math.Inf(1)
	}
	return t.tQuantile(m.n-1) * m.sd / math.Sqrt(float64(m.n))
}

// geometricMean is exp of the mean of logs, with exp of its t interval. An
// interval takes two.
func (t *tables) geometricMean(logs []point) Estimate {
	m := momentsOf(logs)
	e := Estimate{Value: math.Exp(m.mean), N: m.n, Method: GeometricMean}
	if m.n < 2 {
		e.Needed = 2
		return e
	}
	e.bound(math.Exp(m.mean-m.halfwidth(t)), math.Exp(m.mean+m.halfwidth(t)), t.confidence)
	return e
}

func (e *Estimate) bound(low, high, confidence float64) {
	e.Low, e.High, e.Confidence = &low, &high, confidence
}

// median is that of the values, with the exact order-statistic interval, which
// assumes nothing about their distribution.
func (t *tables) median(xs []float64) Estimate {
	xs = slices.Sorted(slices.Values(xs))
	n := len(xs)
	e := Estimate{N: n, Method: Median}
	if n == 0 {
		e.Needed = t.medianNeeds()
		return e
	}
	e.Value = midpoint(xs)
	o := t.medianOrders(n)
	if o.low == 0 {
		e.Needed = t.medianNeeds()
		return e
	}
	e.bound(xs[o.low-1], xs[n-o.low], o.confidence)
	return e
}

// midpoint is the median of sorted values; NaN of none.
func midpoint(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func medianOf(xs []float64) float64 { return midpoint(slices.Sorted(slices.Values(xs))) }
