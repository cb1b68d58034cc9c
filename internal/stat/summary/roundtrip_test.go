package summary_test

import (
	"math"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

func TestRoundTripCheck(t *testing.T) {
	c := stattest.RROf("bridge")
	for name, k := range map[string]struct {
		change  func(*result.Cell)
		metrics stattest.Metrics
		want    float64 // 0: no check
		ok      bool
	}{
		"one":              {nil, stattest.Metrics{"transactions_per_second": 20_000, "latency_mean_seconds": 50e-6}, 1, true},
		"one-way times":    {nil, stattest.Metrics{"transactions_per_second": 20_000, "latency_mean_seconds": 25e-6}, 0.5, false},
		"edge":             {nil, stattest.Metrics{"transactions_per_second": 20_000, "latency_mean_seconds": 47.6e-6}, 0.952, true},
		"streams, burst":   {func(c *result.Cell) { c.Streams, c.Burst = 4, 2 }, stattest.Metrics{"transactions_per_second": 160_000, "latency_mean_seconds": 50e-6}, 1, true},
		"beside streams":   {func(c *result.Cell) { c.Streams, c.Workload = 4, "latency_under_load" }, stattest.Metrics{"transactions_per_second": 20_000, "latency_mean_seconds": 50e-6}, 1, true},
		"open loop":        {func(c *result.Cell) { c.RatePerSecond = 10 }, stattest.Metrics{"transactions_per_second": 10, "latency_mean_seconds": 50e-6}, 0, false},
		"lost":             {nil, stattest.Metrics{"transactions_per_second": 10_000, "latency_mean_seconds": 50e-6, "transactions_lost": 3}, 0, false},
		"no mean":          {nil, stattest.Metrics{"transactions_per_second": 10_000}, 0, false},
		"not a round trip": {nil, stattest.Metrics{"requests_per_second": 10_000, "latency_mean_seconds": 50e-6}, 0, false},
	} {
		d := c
		if k.change != nil {
			k.change(&d)
		}
		got := stat.Analyse([]result.Sample{stattest.OKSample(d, 1, k.metrics), stattest.OKSample(d, 2, k.metrics)}, dataset.Options{}).RoundTrips
		switch {
		case k.want == 0 && len(got) > 0:
			t.Errorf("%s: %+v", name, got)
		case k.want == 0:
		case len(got) != 1 || math.Abs(got[0].Product.Value-k.want) > 1e-12 || got[0].OK != k.ok || got[0].Product.N != 2:
			t.Errorf("%s: %+v", name, got)
		}
	}
}
