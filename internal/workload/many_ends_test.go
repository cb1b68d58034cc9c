package workload

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/unit"
)

// ranked are the outputs of ranks that took some nanoseconds for each of ten operations.
func ranked(t *testing.T, slowest []int64, took ...int64) []RankOutput {
	t.Helper()
	var out []RankOutput
	most := int64(0)
	for i, v := range took {
		most = max(most, v)
		out = append(out, RankOutput{Place: "pod", Node: "node", Machine: "m", JobReport: traffic.JobReport{
			Operations: 10, WindowSeconds: 1, Own: histogram(t, 10, v), SentBytes: 640, ReceivedBytes: 640, CPUs: []int{i % 2}, AllowedCPUs: 2,
		}})
	}
	out[0].Slowest, out[0].SlowestIn = histogram(t, 10, most), slowest
	return out
}

func jobParams(test, algorithm string, ranks int) Params {
	return params(result.Cell{Workload: test, Algorithm: algorithm, Ranks: ranks, MessageBytes: 64})
}

func TestParseRanks(t *testing.T) {
	w := AllGather().(ManyEnds)
	m, err := w.ParseRanks(jobParams("all_gather", "ring", 4), ranked(t, []int64{1, 2, 7, 0}, 1000, 2000, 9000, 500))
	if err != nil {
		t.Fatal(err)
	}
	if m.Job.SlowestRank != 2 || len(m.Job.Ranks) != 4 || m.Job.Ranks[2].SlowestIn != 7 || m.Job.Flows != nil {
		t.Errorf("%+v", m.Job)
	}
	for name, want := range map[string]float64{"operation_time_mean_seconds": 9e-6, "operations": 10, "rank_sent_bytes_per_operation": 64, "ranks_per_cpu": 2} {
		if got := m.Metrics[name]; got < want*0.999 || got > want*1.001 {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	if _, ok := m.Metrics["operation_time_p99_seconds"]; ok {
		t.Error("ten operations have a p99")
	}
	if got := m.Job.Ranks[3].Times["operation_time_mean_seconds"]; got != 500e-9 {
		t.Errorf("rank 3 took %g", got)
	}
	for name := range m.Metrics {
		if _, known := unit.FindMetric(name); !known {
			t.Errorf("unknown metric %s", name)
		}
	}
	if len(m.Warnings) != 1 || !strings.Contains(m.Warnings[0], "4 ranks shared 2 CPUs") {
		t.Errorf("warnings %q", m.Warnings)
	}
}

// The flows of incast are those that its root saw end.
func TestParseIncast(t *testing.T) {
	ranks := ranked(t, []int64{0, 4, 6}, 3000, 1, 1)
	ranks[1].Own, ranks[2].Own = nil, nil
	ranks[0].Flows = []*traffic.Histogram{nil, histogram(t, 10, 1000), histogram(t, 10, 3000)}
	m, err := Incast().(ManyEnds).ParseRanks(jobParams("incast", "", 3), ranks)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Metrics["flow_completion_mean_seconds"]; got != 2e-6 {
		t.Errorf("flows take %g", got)
	}
	if m.Job.Flows.Count != 20 || m.Job.Ranks[0].Times != nil || m.Job.Ranks[2].Times["operation_time_mean_seconds"] != 3e-6 {
		t.Errorf("%+v", m.Job)
	}
}

func TestParseRanksRefuses(t *testing.T) {
	w := AllGather().(ManyEnds)
	for want, change := range map[string]func([]RankOutput) []RankOutput{
		"3 of 4 ranks":                    func(r []RankOutput) []RankOutput { return r[:3] },
		"rank 1 counted 9 operations":     func(r []RankOutput) []RankOutput { r[1].Operations = 9; return r },
		"no operation was over":           func(r []RankOutput) []RankOutput { r[0].Slowest = nil; return r },
		"counted the slowest of 1 ranks":  func(r []RankOutput) []RankOutput { r[0].SlowestIn = []int64{3}; return r },
		"the histogram of operation time": func(r []RankOutput) []RankOutput { r[0].Slowest.HDRBase64 = "AA=="; return r },
	} {
		_, err := w.ParseRanks(jobParams("all_gather", "ring", 4), change(ranked(t, []int64{1, 2, 7, 0}, 1, 2, 3, 4)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// One CPU for each rank is no reason for a warning.
func TestRanksWithCPUsOfTheirOwn(t *testing.T) {
	ranks := ranked(t, []int64{5, 5}, 1000, 1000)
	m, err := AllGather().(ManyEnds).ParseRanks(jobParams("all_gather", "ring", 2), ranks)
	if err != nil || len(m.Warnings) != 0 || m.Metrics["ranks_per_cpu"] != 1 {
		t.Errorf("%v, warnings %q, %v", err, m.Warnings, m.Metrics)
	}
}

// The program of a rank is what its cell says.
func TestRank(t *testing.T) {
	p := jobParams("all_reduce", "ring", 8)
	p.Cell.CPUs, p.Cell.CongestionControl = result.CPUsApart, "cubic"
	cfg, err := AllReduce().(ManyEnds).Rank(p, 5, 1)
	want := traffic.JobConfig{Test: "all_reduce", Algorithm: "ring", Token: p.Token, Rank: 5, Ranks: 8, LocalRank: 1, MessageBytes: 64,
		Warmup: p.Warmup, Window: p.Window, Placement: "apart", CongestionControl: "cubic"}
	if err != nil || cfg != want {
		t.Errorf("%v\n%+v\n%+v", err, cfg, want)
	}
	p.Cell.Algorithm = "pairwise"
	if _, err := AllReduce().(ManyEnds).Rank(p, 5, 1); err == nil {
		t.Error("all_reduce takes pairwise")
	}
}
