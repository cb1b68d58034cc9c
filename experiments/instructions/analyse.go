package main

import (
	"fmt"
	"math"

	"github.com/aclements/go-moremath/stats"
)

// confidence is that of every interval that is printed.
const confidence = 0.95

// value is a figure with half the width of its interval.
type value struct{ mean, half float64 }

func (v value) String() string { return fmt.Sprintf("%.0f ± %.0f", v.mean, v.half) }

// positive reports whether the whole interval is above 0.
func (v value) positive() bool { return v.mean-v.half > 0 }

// times is the figure in another unit.
func (v value) times(f float64) value { return value{v.mean * f, v.half * math.Abs(f)} }

func student(dof float64) float64 {
	return stats.InvCDF(stats.TDist{V: dof})(1 - (1-confidence)/2)
}

// variation is the coefficient of variation.
func variation(xs []float64) float64 { return stats.StdDev(xs) / stats.Mean(xs) }

// meanOf is the mean with Student's interval.
func meanOf(xs []float64) value {
	n := float64(len(xs))
	return value{stats.Mean(xs), student(n-1) * stats.StdDev(xs) / math.Sqrt(n)}
}

// difference is mean(b) − mean(a) with Welch's interval.
func difference(a, b []float64) value {
	va, vb := stats.Variance(a)/float64(len(a)), stats.Variance(b)/float64(len(b))
	mean := stats.Mean(b) - stats.Mean(a)
	if va+vb == 0 { // counted instructions may well be all the same
		return value{mean, 0}
	}
	dof := (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
	return value{mean, student(dof) * math.Sqrt(va+vb)}
}

// slope is how much y grows for one of x, by least squares, with its interval.
func slope(xs, ys []float64) value {
	mx, my := stats.Mean(xs), stats.Mean(ys)
	sxx, sxy := 0.0, 0.0
	for i := range xs {
		sxx += (xs[i] - mx) * (xs[i] - mx)
		sxy += (xs[i] - mx) * (ys[i] - my)
	}
	b := sxy / sxx
	rest := 0.0
	for i := range xs {
		e := ys[i] - my - b*(xs[i]-mx)
		rest += e * e
	}
	dof := float64(len(xs) - 2)
	return value{b, student(dof) * math.Sqrt(rest/dof/sxx)}
}

// perTurn is how many nanoseconds a turn of the known loop takes.
func (c counted) perTurn() value {
	var turns, nanoseconds []float64
	for _, l := range c.loops {
		turns, nanoseconds = append(turns, float64(l.Turns)), append(nanoseconds, float64(l.Nanoseconds))
	}
	return slope(turns, nanoseconds)
}
