package summary

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/histogram"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

func TestMergedPercentilesAreThoseOfTheLibrary(t *testing.T) {
	samples := stattest.LatencySamples(t, 7, 3000, 1.5)
	want := hdrhistogram.New(1, 60_000_000_000, 3)
	k := dataset.New(dataset.Options{})
	for i := range samples {
		if s := &samples[i]; s.Cell.Network == "bridge" {
			h, err := hdrhistogram.Decode([]byte(s.Histogram.HDRBase64))
			if err != nil {
				t.Fatal(err)
			}
			want.Merge(h)
			k.Add(s)
		}
	}
	k.Sort()
	m, unreadable := new(reader).merge(k.Cells[0].OK, new([]float64))
	if unreadable != 0 || m.Count() != float64(want.TotalCount()) {
		t.Fatalf("%d unreadable, %g values of %d", unreadable, m.Count(), want.TotalCount())
	}
	_, last := m.Percentile(1, slices.Repeat([]float64{1}, 7), 0)
	for _, p := range []float64{0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
		for _, hint := range []int{0, last / 2, last} {
			got, _ := m.Percentile(p, slices.Repeat([]float64{1}, 7), hint)
			if w := float64(want.ValueAtPercentile(100*p)) / 1e9; got != w {
				t.Errorf("p%g from %d is %g, want %g", 100*p, hint, got, w)
			}
		}
	}
}

// TestBootstrapCoverage: blocks that differ among themselves, few of them.
func TestBootstrapCoverage(t *testing.T) {
	reps := stattest.Repetitions(300)
	for _, n := range []int{6, 8, 20} {
		r := rand.New(rand.NewPCG(2, uint64(n)))
		boot := newBootstrap(dataset.Options{Confidence: 0.95})
		covered := 0
		var in histogram.Reader
		var memory []float64
		h := hdrhistogram.New(1, 100_000_000, 3)
		for range reps {
			blocks := make([]*histogram.Packed, n)
			for b := range blocks {
				day := 0.1 * r.NormFloat64()
				h.Reset()
				for range 40 {
					if err := h.RecordValue(int64(1e6 * math.Exp(day+0.1*r.NormFloat64()))); err != nil {
						t.Fatal(err)
					}
				}
				text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
				if err != nil {
					t.Fatal(err)
				}
				blocks[b] = histogram.Pack(&result.Histogram{Unit: "nanoseconds", HDRBase64: string(text)})
			}
			m, unreadable := in.Merge(slices.All(blocks), &memory)
			if unreadable != 0 {
				t.Fatalf("%d histograms could not be read", unreadable)
			}
			e := boot.percentiles(m)["latency_p50_seconds"]
			low, high, ok := e.Interval()
			if !ok {
				t.Fatalf("%d blocks give no interval", n)
			}
			covered += stattest.Count(low <= 1e-3 && 1e-3 <= high)
		}
		t.Logf("%d blocks: %.1f %%", n, 100*float64(covered)/float64(reps))
		if share, m := float64(covered)/float64(reps), stattest.Margin(0.95, reps); share < 0.93-m || share > 0.97+m {
			t.Errorf("%d blocks: %.1f %% of the intervals hold the median", n, 100*share)
		}
	}
}
