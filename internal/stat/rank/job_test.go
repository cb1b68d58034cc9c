package rank_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/job"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

// theJob has an operation of each kind of source.
func theJob() job.Profile {
	return job.Profile{Name: "j", Ranks: 4, RanksPerNode: 1, ComputeSeconds: 0.5, Operations: []job.Operation{
		{Operation: "all_to_all", Algorithm: "pairwise", MessageBytes: 4096, Count: 1000},
		{Operation: "barrier", Algorithm: "dissemination", Count: 100},
	}}
}

// jobCampaign has round trips on networks that are slower by a factor, by a line of each,
// and operations that take a multiple of what the line predicts.
func jobCampaign(blocks int, noise float64, networks map[string]float64, operations ...result.Cell) []result.Sample {
	r := rand.New(rand.NewPCG(7, 8))
	var out []result.Sample
	for _, name := range stattest.SortedKeys(networks) {
		of := func(n int) float64 { return networks[name] * stattest.Line(20e-6, 1e9)(n) }
		out = append(out, stattest.RoundTripsOf(name, blocks, noise, of, 1, 1024, 65536)...)
		for _, c := range operations {
			c.Network = name
			if name == result.HostNetwork {
				c = c.Baseline()
			}
			latencies, bytes := float64(c.Ranks-1), float64((c.Ranks-1)*c.MessageBytes) // of all_to_all
			for b := 1; b <= blocks; b++ {
				took := 2 * networks[name] * (latencies*20e-6 + bytes*1e-9) * (1 + noise*r.NormFloat64())
				out = append(out, stattest.OKSample(c, b, stattest.Metrics{"operation_time_mean_seconds": took}))
			}
		}
	}
	return out
}

func askJob(t *testing.T, samples []result.Sample, profile job.Profile) rank.Recommendation {
	t.Helper()
	rec, err := rank.Recommend(samples, dataset.Options{}, rank.Question{Goal: rank.HPC, Job: &profile})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func costOf(t *testing.T, r rank.Recommendation, network string) rank.JobCost {
	t.Helper()
	for _, c := range r.Job.Costs {
		if c.Network == network {
			return c
		}
	}
	t.Fatalf("no cost of %s", network)
	return rank.JobCost{}
}

// The time of a job is that of its computing and of its operations: measured ones as they
// were measured, others by the model.
func TestJobCosts(t *testing.T) {
	all := stattest.JobCell("bridge", "all_to_all", "pairwise", 4, 4096)
	samples := jobCampaign(4, 0, map[string]float64{"host": 1, "bridge": 1.25, "flannel/vxlan": 2}, all)
	r := askJob(t, samples, theJob())
	if r.Take.Network != "bridge" || !r.Sure || len(r.Others) != 1 {
		t.Errorf("take %+v, sure %v, others %+v", r.Take, r.Sure, r.Others)
	}
	if !slices.Equal(r.Job.Sources[0], []rank.JobSource{rank.FromMeasured, rank.FromModel}) {
		t.Errorf("sources %v", r.Job.Sources)
	}
	for network, factor := range map[string]float64{"host": 1, "bridge": 1.25, "flannel/vxlan": 2} {
		c := costOf(t, r, network)
		allToAll := 1000 * 2 * factor * 3 * (20e-6 + 4096e-9)
		barrier := 100 * factor * 2 * (20e-6 + 1e-9)
		stattest.Near(t, network+" all_to_all", c.Operations[0].Value, allToAll, 1e-9)
		stattest.Near(t, network+" barrier", c.Operations[1].Value, barrier, 1e-9)
		stattest.Near(t, network, c.Total.Value, 0.5+allToAll+barrier, 1e-9)
		if c.Total.N != 4 || c.Total.Low == nil {
			t.Errorf("%s: %+v", network, c.Total)
		}
	}
	host, bridge := costOf(t, r, "host").Total.Value, costOf(t, r, "bridge").Total.Value
	if e := r.Goals[0].Ranked[0].Efficiency; e == nil || math.Abs(e.Value-host/bridge) > 1e-9 {
		t.Errorf("the efficiency of bridge is %+v, want %g", e, host/bridge)
	}
}

// An operation that one network alone was measured with is predicted for all: measured and
// predicted times are never compared.
func TestJobSourcesAreAlike(t *testing.T) {
	samples := jobCampaign(4, 0.01, map[string]float64{"bridge": 1.25, "flannel/vxlan": 1.3, "macvlan": 1})
	measured := stattest.JobCell("bridge", "all_to_all", "pairwise", 4, 4096)
	for b := 1; b <= 4; b++ {
		samples = append(samples, stattest.OKSample(measured, b, stattest.Metrics{"operation_time_mean_seconds": 1e-6}))
	}
	r := askJob(t, samples, theJob())
	if r.Job.Sources[0][0] != rank.FromModel || r.Take.Network != "macvlan" {
		t.Errorf("sources %v, take %v", r.Job.Sources, r.Take)
	}
}

// Equal networks are tied, and a small difference in noise is not taken for one.
func TestJobIsUndecided(t *testing.T) {
	samples := jobCampaign(5, 0.05, map[string]float64{"bridge": 1, "macvlan": 1.001}, stattest.JobCell("bridge", "all_to_all", "pairwise", 4, 4096))
	r := askJob(t, samples, theJob())
	if r.Sure || r.Settle == nil || r.LossAtMost == nil {
		t.Errorf("%+v", r)
	}
}

// What the records lack is named as workloads that a campaign can measure, and a network
// that lacks something is left out.
func TestJobLacks(t *testing.T) {
	refused := func(samples []result.Sample, profile job.Profile, want ...string) {
		t.Helper()
		_, err := rank.Recommend(samples, dataset.Options{}, rank.Question{Goal: rank.HPC, Job: &profile})
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%v, want %q", err, w)
			}
		}
	}
	streams := stattest.QuietSamples(1, 3, map[string]float64{"bridge": 0.9, "macvlan": 0.95})
	refused(streams, theJob(), "{name: all_to_all, message_bytes: [4096], ranks: [4], ranks_per_node: [1], algorithm: [pairwise]}", "tcp_rr with message_bytes of three sizes")
	refused(jobCampaign(3, 0, map[string]float64{"host": 1, "bridge": 1.2}), theJob(), "nothing to choose from")
	samples := jobCampaign(3, 0, map[string]float64{"bridge": 1.2, "macvlan": 1.1})
	samples = append(samples, stattest.OKSample(stattest.JobCell("flannel/vxlan", "barrier", "dissemination", 4, 0), 1, stattest.Metrics{"operation_time_mean_seconds": 1e-4}))
	r := askJob(t, samples, theJob())
	if left := r.Goals[0].LeftOut; len(left) != 1 || left[0].Network != "flannel/vxlan" || !strings.Contains(left[0].Why, "all_to_all of 4096 B (pairwise)") {
		t.Errorf("left out: %+v", left)
	}
	if _, err := rank.Recommend(samples, dataset.Options{}, rank.Question{Goal: rank.HPC}); err == nil {
		t.Error("a job without a profile has an answer")
	}
}

// The answer names messages that are larger than those of the model.
func TestJobOfLargeMessages(t *testing.T) {
	job := theJob()
	job.Operations[0].MessageBytes = 1 << 20
	r := askJob(t, jobCampaign(3, 0, map[string]float64{"bridge": 1.2, "macvlan": 1.1}), job)
	if !slices.Equal(r.Job.Sources[0], []rank.JobSource{rank.FromFarModel, rank.FromModel}) {
		t.Errorf("%v", r.Job.Sources)
	}
}
