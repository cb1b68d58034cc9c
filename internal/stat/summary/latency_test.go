package summary_test

import (
	"testing"

	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/stat/warning"
)

func TestLatencyEfficiencyOfMergedHistograms(t *testing.T) {
	s := stattest.Find(t, stat.Analyse(stattest.LatencySamples(t, 12, 3000, 1.25), dataset.Options{}), stattest.RROf("bridge"))
	for _, name := range []string{"latency_p50_seconds", "latency_p99_seconds"} {
		e, ok := s.EfficiencyByMetric[name]
		if !ok || e.Method != estimate.MergedPercentile {
			t.Fatalf("%s: %+v", name, e)
		}
		stattest.Near(t, name, e.Value, 0.8, 0.03)
		if low, high, ok := e.Interval(); !ok || low > 0.8 || high < 0.8 || high-low > 0.1 {
			t.Errorf("%s: %g to %g", name, low, high)
		}
	}
	stattest.Near(t, "primary", s.Efficiency.Value, 0.8, 1e-9)
}

func TestPercentilesThatCannotBeGiven(t *testing.T) {
	s := stattest.Find(t, stat.Analyse(stattest.LatencySamples(t, 3, 500, 1), dataset.Options{}), stattest.RROf("bridge"))
	if _, ok := s.Latency["latency_p999_seconds"]; ok {
		t.Error("p99.9 of 1500 round trips is reported")
	}
	e := s.Latency["latency_p50_seconds"]
	if _, _, ok := e.Interval(); ok || e.Needed != 6 {
		t.Errorf("three blocks give %+v", e)
	}
}

func TestUnreadableHistogramIsReportedAndLeftOut(t *testing.T) {
	samples := stattest.LatencySamples(t, 6, 300, 1)
	samples[1].Histogram.HDRBase64 = "HISTFAAAAA" // torn
	samples[3].Histogram.Unit = "microseconds"
	a := stat.Analyse(samples, dataset.Options{})
	if e := stattest.Find(t, a, stattest.RROf("bridge")).Latency["latency_p50_seconds"]; e.N != 4 {
		t.Errorf("%+v", e)
	}
	if w, ok := a.Warning(warning.BadHistogram); !ok || len(w.Cells) != 1 {
		t.Errorf("%+v", w)
	}
}
