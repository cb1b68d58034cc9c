package job_test

import (
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

// Predictions are the closed forms, and operations that take half as long again are seen
// to do so.
func TestJobPredictions(t *testing.T) {
	const alpha, beta, m = 20e-6, 1e9, 4096
	samples := stattest.RoundTripsOf("bridge", 5, 0, stattest.Line(alpha, beta), 1, 1024, 65536)
	want := map[result.Cell]float64{
		stattest.JobCell("bridge", "all_to_all", "pairwise", 4, m):           3 * (alpha + m/beta),
		stattest.JobCell("bridge", "all_to_all", "linear", 4, m):             alpha + 3*m/beta,
		stattest.JobCell("bridge", "all_gather", "ring", 8, m):               7 * (alpha + m/beta),
		stattest.JobCell("bridge", "all_gather", "recursive_doubling", 8, m): 3*alpha + 7*m/beta,
		stattest.JobCell("bridge", "all_reduce", "ring", 4, m):               6*alpha + 1.5*m/beta,
		stattest.JobCell("bridge", "all_reduce", "recursive_doubling", 8, m): 3 * (alpha + m/beta),
		stattest.JobCell("bridge", "barrier", "dissemination", 6, 0):         3 * (alpha + 1/beta),
		stattest.JobCell("bridge", "incast", "", 5, m):                       alpha + 4*m/beta,
		stattest.JobCell("bridge", "outcast", "", 5, m):                      alpha + 4*m/beta,
		stattest.JobCell("bridge", "halo_exchange", "", 8, m):                alpha + 4*m/beta,
		stattest.JobCell("bridge", "halo_exchange", "", 3, m):                alpha + 2*m/beta,
		stattest.JobCell("flannel/vxlan", "barrier", "dissemination", 6, 0):  0, // no model
	}
	for c, predicted := range want {
		for b := 1; b <= 5; b++ {
			samples = append(samples, stattest.OKSample(c, b, stattest.Metrics{"operation_time_mean_seconds": 1.5 * max(predicted, 1e-6), "ranks_per_cpu": 2}))
		}
	}
	a := stat.Analyse(samples, dataset.Options{})
	if len(a.Jobs) != len(want)-1 {
		t.Errorf("%d predictions, want %d", len(a.Jobs), len(want)-1)
	}
	for _, p := range a.Jobs {
		stattest.Near(t, p.Cell.Traffic(), p.Predicted.Value, want[p.Cell], 1e-12)
		stattest.Near(t, p.Cell.Traffic()+" ratio", p.Ratio.Value, 1.5, 1e-9)
		if p.RanksPerCPU == nil || *p.RanksPerCPU != 2 || !p.SameConditions {
			t.Errorf("%s: %+v", p.Cell.Traffic(), p)
		}
	}
}
