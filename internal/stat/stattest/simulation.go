package stattest

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Repetitions is how many campaigns a simulation makes: enough to fail by
// default, ten times as few in the quick loop.
func Repetitions(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// Margin is three standard errors of a simulated share: the simulations are
// seeded, so that a test that passes keeps passing.
func Margin(share float64, n int) float64 { return 3 * math.Sqrt(share*(1-share)/float64(n)) }

// Noise draws values with mean 0 and standard deviation 1.
type Noise struct {
	Name string
	Draw func(*rand.Rand) float64
}

// Noises are those that intervals must withstand: the logs of log-normal samples,
// Student's t with 3 degrees of freedom (the least that has a variance), and
// one value in ten five times as wide.
func Noises() []Noise {
	return []Noise{
		{"log-normal", func(r *rand.Rand) float64 { return r.NormFloat64() }},
		{"log-t with 3 degrees of freedom", func(r *rand.Rand) float64 {
			var chi2 float64
			for range 3 {
				z := r.NormFloat64()
				chi2 += z * z
			}
			return r.NormFloat64() / math.Sqrt(chi2/3) / math.Sqrt(3)
		}},
		{"one in ten five times as wide", func(r *rand.Rand) float64 {
			x := r.NormFloat64()
			if r.Float64() < 0.1 {
				x *= 5
			}
			return x / math.Sqrt(0.9+0.1*25)
		}},
	}
}

// Near fails a test where a value is not within a tolerance of what it should be.
func Near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %.6g, want %.6g ± %.2g", what, got, want, tolerance)
	}
}

// Count is 1 for true: sums of it count.
func Count(b bool) int {
	if b {
		return 1
	}
	return 0
}
