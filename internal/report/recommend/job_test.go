package recommend

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/job"
	"github.com/cnibench/cnibench/internal/stat/rank"
)

// jobAnswer is that of a job of three operations, of each source.
func jobAnswer(t *testing.T) rank.Recommendation {
	t.Helper()
	var samples []result.Sample
	for block := 1; block <= 4; block++ {
		for i, network := range []string{"host", "bridge", "flannel/vxlan"} {
			slower := 1 + 0.3*float64(i) + 0.01*float64(block)
			add := func(c result.Cell, metric string, value float64) {
				seconds := 1.0
				samples = append(samples, result.Sample{Schema: 1, ID: "x", Block: block, Attempt: 1, Cell: c, Status: result.StatusOK,
					MeasuredSeconds: &seconds, Metrics: map[string]float64{metric: value * slower}})
			}
			for _, bytes := range []int{1, 1024, 65536} {
				add(reporttest.CellOf(network, "tcp_rr", bytes), "latency_mean_seconds", 2*(20e-6+float64(bytes)/1e9))
			}
			barrier := reporttest.CellOf(network, "barrier", 0)
			barrier.Ranks, barrier.Algorithm = 4, "dissemination"
			add(barrier, "operation_time_mean_seconds", 90e-6)
		}
	}
	r, err := rank.Recommend(samples, dataset.Options{Environment: *reporttest.FixtureEnvironment()}, rank.Question{Goal: rank.HPC, Job: &job.Profile{
		Name: "solver", Ranks: 4, RanksPerNode: 1, ComputeSeconds: 2, Operations: []job.Operation{
			{Operation: "barrier", Algorithm: "dissemination", Count: 1000},
			{Operation: "all_to_all", Algorithm: "pairwise", MessageBytes: 4096, Count: 1000},
			{Operation: "all_gather", Algorithm: "ring", MessageBytes: 1 << 20, Count: 10},
		}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The answer for a job names the source of each operation, and shows what each network
// costs, also in a narrow window and as JSON.
func TestJobRecommendation(t *testing.T) {
	r := jobAnswer(t)
	text := renderRecommendation(t, r, false, screen.Options{Width: 100, Unicode: true})
	flat := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{
		"For a parallel job, take bridge",
		"Judged by the time of the job solver: 4 ranks, 1 on a node, 3 kinds of operations, and 2.00 s of computing",
		"Measured: barrier (dissemination).",
		"Predicted by Hockney's model of the round trips: all_to_all of 4096 B (pairwise).",
		"Predicted, for messages larger than the model was fitted to: all_gather of 1048576 B (ring).",
		"On the second, flannel/vxlan*, the job runs at",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("the answer has no %q:\n%s", want, text)
		}
	}
	asJSON := renderRecommendation(t, r, true, screen.Options{})
	for _, want := range []string{`"total_seconds"`, `"source`, `"name": "solver"`, `"model, larger messages than were measured"`} {
		if !strings.Contains(asJSON, want) {
			t.Errorf("JSON has no %s", want)
		}
	}
	for i, line := range strings.Split(renderRecommendation(t, r, false, screen.Options{Width: 60}), "\n") {
		if screen.Width(line) > 60 {
			t.Errorf("line %d is %d wide: %s", i+1, screen.Width(line), line)
		}
	}
}
