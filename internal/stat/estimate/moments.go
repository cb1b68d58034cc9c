package estimate

import (
	"math"
	"slices"
)

// Moments are the number, mean and standard deviation (of a sample: n−1) of values.
type Moments struct {
	N        int
	Mean, SD float64
}

// MomentsOf are the moments of the values of points.
func MomentsOf(points []Point) Moments {
	m := Moments{N: len(points)}
	if m.N == 0 {
		return m
	}
	for _, p := range points {
		m.Mean += p.Value
	}
	m.Mean /= float64(m.N)
	if m.N < 2 {
		return m
	}
	var ss float64
	for _, p := range points {
		ss += (p.Value - m.Mean) * (p.Value - m.Mean)
	}
	m.SD = math.Sqrt(ss / float64(m.N-1))
	return m
}

// Halfwidth is that of the t interval of the mean, t·s/√n; infinite below two.
func (m Moments) Halfwidth(t *Tables) float64 {
	if m.N < 2 {
		return math.Inf(1)
	}
	return m.halfwidth(t.tQuantile(m.N - 1))
}

// halfwidth is that of an interval of the mean with a quantile of Student's t.
func (m Moments) halfwidth(quantile float64) float64 {
	return quantile * m.SD / math.Sqrt(float64(m.N))
}

// Interval is Student's for the mean at a confidence. There is none below two values.
func (m Moments) Interval(confidence float64) (low, high float64, ok bool) {
	return m.IntervalWith(Prior{}, confidence)
}

// GeometricMean is exp of the mean of logs, with exp of its t interval. An
// interval takes two.
func (t *Tables) GeometricMean(logs []Point) Estimate {
	m := MomentsOf(logs)
	e := Estimate{Value: math.Exp(m.Mean), N: m.N, Method: GeometricMean}
	if m.N < 2 {
		e.Needed = 2
		return e
	}
	e.Bound(math.Exp(m.Mean-m.Halfwidth(t)), math.Exp(m.Mean+m.Halfwidth(t)), t.confidence)
	return e
}

// Median is that of the values, with the exact order-statistic interval, which
// assumes nothing about their distribution.
func (t *Tables) Median(xs []float64) Estimate {
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
	e.Bound(xs[o.low-1], xs[n-o.low], o.confidence)
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

// MedianOf is the median of values; NaN of none.
func MedianOf(xs []float64) float64 { return midpoint(slices.Sorted(slices.Values(xs))) }

// Mean is the arithmetic mean with its t interval. An interval takes two.
func (t *Tables) Mean(points []Point) Estimate {
	m := MomentsOf(points)
	e := Estimate{Value: m.Mean, N: m.N, Method: ArithmeticMean}
	if m.N < 2 {
		e.Needed = 2
		return e
	}
	if h := m.Halfwidth(t); !math.IsInf(h, 0) {
		e.Bound(m.Mean-h, m.Mean+h, t.confidence)
	}
	return e
}
