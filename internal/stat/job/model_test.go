package job_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

// Where the truth is a line, α and β are found, exactly without noise.
func TestHockneyExact(t *testing.T) {
	a := stat.Analyse(stattest.RoundTripsOf("bridge", 3, 0, stattest.Line(20e-6, 1e9), 1, 1024, 65536), dataset.Options{})
	if len(a.Hockneys) != 1 {
		t.Fatalf("%d models", len(a.Hockneys))
	}
	h := a.Hockneys[0]
	stattest.Near(t, "alpha", h.Alpha.Value, 20e-6, 1e-15)
	stattest.Near(t, "beta", h.Beta.Value, 1e9, 1)
	if h.Misfit || len(h.Sizes) != 3 || h.Sizes[0].HeldOut != nil || h.Cell.MessageBytes != 0 || h.Alpha.N != 3 {
		t.Errorf("%+v", h)
	}
	for _, s := range h.Sizes {
		stattest.Near(t, "of the model", s.OfModel.Value, 1, 1e-9)
	}
}

// The intervals contain the truth about as often as their confidence says, for noise that
// is a share of each time.
func TestHockneyCoverage(t *testing.T) {
	const alpha, perByte = 20e-6, 1e-9
	campaigns := stattest.Repetitions(400)
	tolerance := 0.045 * math.Sqrt(400/float64(campaigns))
	r := rand.New(rand.NewPCG(5, 6))
	inAlpha, inPerByte := 0, 0
	for range campaigns {
		var samples []result.Sample
		for b := 1; b <= 6; b++ {
			machine := 1 + 0.05*r.NormFloat64() // what a block does to all sizes
			for _, n := range []int{1, 64, 1024, 8192, 65536} {
				c := stattest.RROf("bridge")
				c.MessageBytes = n
				samples = append(samples, stattest.OKSample(c, b, stattest.Metrics{"latency_mean_seconds": 2 * (alpha + perByte*float64(n)) * machine * (1 + 0.02*r.NormFloat64())}))
			}
		}
		h := stat.Analyse(samples, dataset.Options{}).Hockneys[0]
		if low, high, ok := h.Alpha.Interval(); ok && low <= alpha && alpha <= high {
			inAlpha++
		}
		if low, high, ok := h.PerByte.Interval(); ok && low <= perByte && perByte <= high {
			inPerByte++
		}
	}
	for name, n := range map[string]int{"alpha": inAlpha, "1/beta": inPerByte} {
		// Four standard deviations of that count to each side.
		if share := float64(n) / float64(campaigns); math.Abs(share-0.95) > tolerance {
			t.Errorf("%s: %.1f %% of the intervals contain the truth", name, 100*share)
		}
	}
}

// A step in the times is a misfit at the sizes that it hits, and a held-out size is
// predicted where there is none.
func TestHockneyMisfit(t *testing.T) {
	step := func(n int) float64 {
		if n > 1448 {
			return stattest.Line(35e-6, 1e9)(n)
		}
		return stattest.Line(20e-6, 1e9)(n)
	}
	sizes := []int{1, 512, 1448, 4096, 16384, 65536}
	h := stat.Analyse(stattest.RoundTripsOf("bridge", 6, 0.01, step, sizes...), dataset.Options{}).Hockneys[0]
	if !h.Misfit {
		t.Errorf("a step of three quarters of α is no misfit: %+v", h.Sizes)
	}
	h = stat.Analyse(stattest.RoundTripsOf("bridge", 6, 0.01, stattest.Line(20e-6, 1e9), sizes...), dataset.Options{}).Hockneys[0]
	if h.Misfit {
		t.Errorf("a line is a misfit: %+v", h.Sizes)
	}
	for _, s := range h.Sizes {
		if s.HeldOut == nil || math.Abs(s.HeldOut.Value-1) > 0.1 {
			t.Errorf("%d B: predicted without itself off by %+v", s.MessageBytes, s.HeldOut)
		}
	}
}

// What cannot be fitted has no model: two sizes, other traffic; and bytes that add nothing
// have no β.
func TestHockneyNeeds(t *testing.T) {
	if a := stat.Analyse(stattest.RoundTripsOf("bridge", 4, 0.01, stattest.Line(20e-6, 1e9), 1, 65536), dataset.Options{}); len(a.Hockneys) != 0 {
		t.Errorf("a model of two sizes: %+v", a.Hockneys)
	}
	burst := stattest.RoundTripsOf("bridge", 4, 0.01, stattest.Line(20e-6, 1e9), 1, 1024, 65536)
	for i := range burst {
		burst[i].Cell.Burst = 16
	}
	if a := stat.Analyse(burst, dataset.Options{}); len(a.Hockneys) != 0 {
		t.Errorf("a model of bursts: %+v", a.Hockneys)
	}
	h := stat.Analyse(stattest.RoundTripsOf("bridge", 6, 0.05, stattest.Line(20e-6, math.Inf(1)), 1, 2, 4), dataset.Options{}).Hockneys[0]
	if h.Beta != nil {
		t.Errorf("β of messages whose bytes take no time: %+v", h.Beta)
	}
	one := stat.Analyse(stattest.RoundTripsOf("bridge", 1, 0, stattest.Line(20e-6, 1e9), 1, 1024, 65536), dataset.Options{}).Hockneys[0]
	if _, _, ok := one.Alpha.Interval(); ok || one.Beta == nil {
		t.Errorf("one block: %+v", one)
	}
}
