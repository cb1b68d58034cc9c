package estimate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

// fiveTimes is the standard deviation of a contrast that is wider than others.
const fiveTimes = 0.2

// spreads draw the standard deviations of contrasts of one kind.
func spreads() map[string]func(*rand.Rand) float64 {
	return map[string]func(*rand.Rand) float64{
		"all alike": func(*rand.Rand) float64 { return 0.04 },
		// As those of dakic2024's streams: an inverse gamma distribution with 3 degrees of freedom.
		"as measured": func(r *rand.Rand) float64 { return 0.03 / math.Sqrt(chiSquare(r, 3)/3) },
		"one in ten five times as wide": func(r *rand.Rand) float64 {
			if r.Float64() < 0.1 {
				return fiveTimes
			}
			return fiveTimes / 5
		},
	}
}

func chiSquare(r *rand.Rand, dof int) (sum float64) {
	for range dof {
		x := r.NormFloat64()
		sum += x * x
	}
	return sum
}

// drawn are the moments of n blocks of a contrast whose mean is 0.
func drawn(r *rand.Rand, n int, sd float64, draw func(*rand.Rand) float64) estimate.Moments {
	points := make([]estimate.Point, n)
	for i := range points {
		points[i] = estimate.Point{Block: i, Value: sd * draw(r)}
	}
	return estimate.MomentsOf(points)
}

// TestPriorOf: a prior is what the variances were drawn from. It says nothing where there are few
// contrasts, and little where their spreads have nothing to do with each other.
func TestPriorOf(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	normal := (*rand.Rand).NormFloat64
	prior := func(n int, sd func() float64) estimate.Prior {
		var ms []estimate.Moments
		for i := range n {
			ms = append(ms, drawn(r, 2+i%4, sd(), normal))
		}
		return estimate.PriorOf(ms)
	}
	for dof, want := range map[int][2]float64{2: {1.5, 2.5}, 4: {3.5, 5}} {
		p := prior(3000, func() float64 { return 0.1 / math.Sqrt(chiSquare(r, dof)/float64(dof)) })
		if p.DOF < want[0] || p.DOF > want[1] || math.Abs(p.Variance-0.01) > 0.001 {
			t.Errorf("drawn with %d degrees of freedom and a variance of 0.01: %+v", dof, p)
		}
	}
	if p := prior(500, func() float64 { return 0.1 }); p.DOF != 8 || math.Abs(p.Variance-0.01) > 0.002 {
		t.Errorf("all alike: %+v", p)
	}
	if p := prior(500, func() float64 { return math.Exp(4 * r.NormFloat64()) }); p.DOF > 0.5 {
		t.Errorf("of all sizes: %+v", p)
	}
	if p := prior(19, func() float64 { return 0.1 }); p != (estimate.Prior{}) {
		t.Errorf("of nineteen: %+v", p)
	}
	with := append(make([]estimate.Moments, 0, 40), estimate.Moments{N: 1, Mean: 1}, estimate.Moments{N: 5, Mean: 1}, estimate.Moments{N: 5, Mean: 1, SD: 0.001})
	for range 24 {
		with = append(with, drawn(r, 4, 0.1, normal))
	}
	if p := estimate.PriorOf(with); p != estimate.PriorOf(with[3:]) || p.Variance <= 0 {
		t.Errorf("with contrasts that have no spread: %+v, without %+v", p, estimate.PriorOf(with[3:]))
	}
}

// TestModeratedInterval: without a prior it is Student's, and a prior narrows it where the own
// spread is as that of others, and widens it where the own spread is a lucky one.
func TestModeratedInterval(t *testing.T) {
	m := estimate.Moments{N: 3, Mean: 1, SD: 0.1}
	low, high, _ := m.Interval(0.95)
	stattest.Near(t, "Student's", high-low, 2*4.302653*0.1/math.Sqrt(3), 1e-5)
	low, high, _ = m.IntervalWith(estimate.Prior{DOF: 6, Variance: 0.01}, 0.95)
	stattest.Near(t, "with a prior", high-low, 2*2.306004*0.1/math.Sqrt(3), 1e-5)
	m.SD = 0.02
	low, high, _ = m.IntervalWith(estimate.Prior{DOF: 6, Variance: 0.01}, 0.95)
	stattest.Near(t, "of a lucky spread", high-low, 2*2.306004*math.Sqrt((2*0.0004+6*0.01)/8)/math.Sqrt(3), 1e-5)
	m.SD = 0.003
	low, high, _ = m.IntervalWith(estimate.Prior{DOF: 6, Variance: 0.01}, 0.95)
	stattest.Near(t, "of a full link", high-low, 2*4.302653*0.003/math.Sqrt(3), 1e-5)
	m.N = 2
	low, high, _ = m.IntervalWith(estimate.Prior{DOF: 6, Variance: 1}, 0.95)
	stattest.Near(t, "of two blocks", high-low, 2*12.706205*0.003/math.Sqrt2, 1e-5)
	if _, _, ok := (estimate.Moments{N: 1}).IntervalWith(estimate.Prior{DOF: 6, Variance: 1}, 0.95); ok {
		t.Error("one block has an interval")
	}
}

// TestModeratedCoverage: intervals with the prior of their pool contain the truth as often as they
// say, on average over the pool, and are narrower than Student's in few blocks. In a pool of which
// one contrast in ten is five times as wide as the others, the wide ones pay for that.
func TestModeratedCoverage(t *testing.T) {
	labtest.Slow(t)
	const confidence, strict = 0.95, 1 - 0.05/15 // as of one pair, and of one in fifteen
	for name, sd := range spreads() {
		for _, noise := range stattest.Noises() {
			for n, narrower := range map[int]float64{3: 0.65, 4: 0.8, 6: 0.9} {
				for _, pool := range []int{20, 60} {
					r := rand.New(rand.NewPCG(uint64(n), uint64(pool)))
					all, near, far, wide, nearWide, width := 0, 0, 0, 0, 0, [2]float64{}
					for range stattest.Repetitions(12_000) / pool {
						ms, sds := make([]estimate.Moments, pool), make([]float64, pool)
						for i := range ms {
							sds[i] = sd(r)
							ms[i] = drawn(r, n, sds[i], noise.Draw)
						}
						p := estimate.PriorOf(ms)
						for i, m := range ms {
							low, high, _ := m.IntervalWith(p, confidence)
							lowest, highest, _ := m.IntervalWith(p, strict)
							least, most, _ := m.Interval(confidence)
							in := count(low <= 0 && 0 <= high)
							all, near, far = all+1, near+in, far+count(lowest <= 0 && 0 <= highest)
							width[0], width[1] = width[0]+high-low, width[1]+most-least
							if sds[i] == fiveTimes {
								wide, nearWide = wide+1, nearWide+in
							}
						}
					}
					share := func(x, of int) float64 { return float64(x) / float64(of) }
					what := fmt.Sprintf("%s, %s, %d blocks of %d contrasts", name, noise.Name, n, pool)
					if wide > 0 {
						t.Logf("%s: %.1f %%, the wide ones %.1f %%", what, 100*share(near, all), 100*share(nearWide, wide))
					}
					if got := share(near, all); got < 0.94-stattest.Margin(0.94, all) || got > 0.98 {
						t.Errorf("%s: %.1f %% contain the truth, want 95 %%", what, 100*got)
					}
					if got := share(far, all); got < 0.993-stattest.Margin(0.993, all) {
						t.Errorf("%s: %.2f %% contain the truth, want %.2f %%", what, 100*got, 100*strict)
					}
					if got := width[0] / width[1]; got > narrower {
						t.Errorf("%s: %.2f of Student's width, want at most %.2f", what, got, narrower)
					}
				}
			}
		}
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
