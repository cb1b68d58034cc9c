package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/histogram"
)

// latencySamples is a campaign of tcp_rr in which the network's round trips are
// slower than the host's by the factor.
func latencySamples(t testing.TB, blocks, values int, factor float64) []result.Sample {
	r := rand.New(rand.NewPCG(1, 1))
	var out []result.Sample
	for b := 1; b <= blocks; b++ {
		day := math.Exp(0.1 * r.NormFloat64())
		for _, n := range []struct {
			name string
			mean float64
		}{{result.HostNetwork, 20_000}, {"bridge", 20_000 * factor}} {
			c := rrOf(n.name)
			if n.name == result.HostNetwork {
				c = c.Baseline()
			}
			trips := make([]int64, values)
			for i := range trips {
				trips[i] = int64(n.mean * day * math.Exp(0.3*r.NormFloat64()))
			}
			s := okSample(c, b, metrics{"transactions_per_second": 1e9 / n.mean / day})
			s.Histogram = histogramOf(t, trips...)
			out = append(out, s)
		}
	}
	return out
}

func TestMergedPercentilesAreThoseOfTheLibrary(t *testing.T) {
	samples := latencySamples(t, 7, 3000, 1.5)
	want := hdrhistogram.New(1, 60_000_000_000, 3)
	k := NewCollector(Options{})
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
	m, unreadable := new(reader).merge(k.sorted().cells[0].ok, new([]float64))
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

func TestLatencyEfficiencyOfMergedHistograms(t *testing.T) {
	s := find(t, Analyse(latencySamples(t, 12, 3000, 1.25), Options{}), rrOf("bridge"))
	for _, name := range []string{"latency_p50_seconds", "latency_p99_seconds"} {
		e, ok := s.EfficiencyByMetric[name]
		if !ok || e.Method != MergedPercentile {
			t.Fatalf("%s: %+v", name, e)
		}
		near(t, name, e.Value, 0.8, 0.03)
		if low, high, ok := e.Interval(); !ok || low > 0.8 || high < 0.8 || high-low > 0.1 {
			t.Errorf("%s: %g to %g", name, low, high)
		}
	}
	near(t, "primary", s.Efficiency.Value, 0.8, 1e-9)
}

func TestPercentilesThatCannotBeGiven(t *testing.T) {
	s := find(t, Analyse(latencySamples(t, 3, 500, 1), Options{}), rrOf("bridge"))
	if _, ok := s.Latency["latency_p999_seconds"]; ok {
		t.Error("p99.9 of 1500 round trips is reported")
	}
	e := s.Latency["latency_p50_seconds"]
	if _, _, ok := e.Interval(); ok || e.Needed != 6 {
		t.Errorf("three blocks give %+v", e)
	}
}

func TestUnreadableHistogramIsReportedAndLeftOut(t *testing.T) {
	samples := latencySamples(t, 6, 300, 1)
	samples[1].Histogram.HDRBase64 = "HISTFAAAAA" // torn
	samples[3].Histogram.Unit = "microseconds"
	a := Analyse(samples, Options{})
	if e := find(t, a, rrOf("bridge")).Latency["latency_p50_seconds"]; e.N != 4 {
		t.Errorf("%+v", e)
	}
	if w, ok := warningOf(a, BadHistogram); !ok || len(w.Cells) != 1 {
		t.Errorf("%+v", w)
	}
}

// TestBootstrapCoverage: blocks that differ among themselves, few of them.
func TestBootstrapCoverage(t *testing.T) {
	reps := repetitions(300)
	for _, n := range []int{6, 8, 20} {
		r := rand.New(rand.NewPCG(2, uint64(n)))
		c := collect(nil, Options{})
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
			e := c.bootstrap(m)["latency_p50_seconds"]
			low, high, ok := e.Interval()
			if !ok {
				t.Fatalf("%d blocks give no interval", n)
			}
			covered += count(low <= 1e-3 && 1e-3 <= high)
		}
		t.Logf("%d blocks: %.1f %%", n, 100*float64(covered)/float64(reps))
		if share, m := float64(covered)/float64(reps), margin(0.95, reps); share < 0.93-m || share > 0.97+m {
			t.Errorf("%d blocks: %.1f %% of the intervals hold the median", n, 100*share)
		}
	}
}
