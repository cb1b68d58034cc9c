// Package reporttest has the campaigns that tests of reports show, and compares what is
// rendered with golden files. Only tests import it.
package reporttest

import (
	"fmt"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/stopping"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/stat/warning"
)

// The inputs are fixed analyses, so that a refined statistic changes no golden
// file of this package; TestAnalysed takes stat's own.

// Estimated is a value with an interval of ±rel; rel 0 leaves the interval out.
func Estimated(v, rel float64, n int, m estimate.Method) estimate.Estimate {
	e := estimate.Estimate{Value: v, N: n, Confidence: 0.95, Method: m}
	if rel > 0 {
		low, high := v*(1-rel), v*(1+rel)
		e.Low, e.High = &low, &high
	} else {
		e.Needed, e.Confidence = 6, 0
	}
	return e
}

// CellOf is a cell between nodes, on the bare network host-to-host.
func CellOf(network, workload string, bytes int) result.Cell {
	path := result.PathPodToPod
	if network == result.HostNetwork {
		path = result.PathHostToHost
	}
	return result.Cell{Network: network, Path: path, Placement: result.InterHost, Link: result.UnshapedLink, Profile: result.DefaultProfile, MTU: 1500,
		Workload: workload, MessageBytes: bytes, Streams: 1}
}

// SummaryOf is a measured cell: base is the baseline's value.
func SummaryOf(c result.Cell, base, efficiency, rel float64, n int) summary.Cell {
	s := summary.Cell{Cell: c, OK: n, Absolute: map[string]estimate.Estimate{}}
	v := base * efficiency
	if c.Workload == "tcp_rr" {
		s.Primary = "transactions_per_second"
		s.Latency = map[string]estimate.Estimate{}
		for i, p := range []string{"latency_p50_seconds", "latency_p90_seconds", "latency_p99_seconds", "latency_p999_seconds"} {
			s.Latency[p] = Estimated((0.95+float64(i)*0.6)/v, rel*float64(1+i), n, estimate.MergedPercentile)
			s.Absolute[p] = Estimated((0.96+float64(i)*0.6)/v, rel*float64(1+i), n, estimate.Median)
		}
		s.Absolute[dataset.CPUPerTransaction] = Estimated(1.8/v, rel, n, estimate.Median)
	} else {
		s.Primary = "throughput_bits_per_second"
		s.Absolute["retransmits"] = Estimated(12, 0, n, estimate.Median)
		s.Absolute["tcp_mss_bytes"] = Estimated(1448, 0, n, estimate.Median)
		s.Absolute[dataset.CPUPerByte] = Estimated(14/v, rel, n, estimate.Median)
		s.Absolute["own_cpu_seconds_per_byte"] = Estimated(12/v, rel/2, n, estimate.Median)
		s.Absolute["instructions_per_byte"] = Estimated(9e9/v, rel/10, n, estimate.Median)
		for _, rate := range []float64{10e9, 25e9, 50e9, 100e9} {
			s.CoresAt = append(s.CoresAt, summary.Cores{BitsPerSecond: rate, Cores: Estimated(14/v*rate/8, rel, n, estimate.Median)})
		}
	}
	s.Absolute[s.Primary] = Estimated(v, rel, n, estimate.Median)
	if !c.IsBaseline() {
		b, e := c.Baseline(), Estimated(efficiency, rel*1.2, n, estimate.GeometricMean)
		s.Baseline, s.Efficiency = &b, &e
		s.EfficiencyByMetric = map[string]estimate.Estimate{s.Primary: e}
		s.EfficiencyByMetric[dataset.CPUPerByte] = Estimated(efficiency*0.95, rel*1.4, n, estimate.GeometricMean)
		s.EfficiencyByMetric["instructions_per_byte"] = Estimated(efficiency*0.97, rel/10, n, estimate.GeometricMean)
	}
	s.Progress = stopping.Progress{Done: true, Blocks: n, Why: "inside the target"}
	return s
}

// WithBlocks gives the fixtures the values of blocks that their medians may be of.
func WithBlocks(in report.Input) report.Input {
	in.Analysis.Cells = slices.Clone(in.Analysis.Cells)
	for i, s := range in.Analysis.Cells {
		if s.Blocks == nil {
			in.Analysis.Cells[i].Blocks = blocksOf(s)
		}
	}
	return in
}

// blocksOf are values of blocks of which the medians are what they are.
func blocksOf(s summary.Cell) map[string][]summary.BlockValue {
	out := map[string][]summary.BlockValue{}
	for metric, e := range s.Absolute {
		for b := range e.N {
			out[metric] = append(out[metric], summary.BlockValue{Block: b + 1, Value: e.Value})
		}
	}
	return out
}

// fixtureTraffic is a traffic of the fixtures, with the baseline's value.
type fixtureTraffic struct {
	workload string
	bytes    int
	base     float64
}

// fixtureTraffics are the traffics of the fixtures.
func fixtureTraffics() []fixtureTraffic {
	return []fixtureTraffic{{"tcp_rr", 64, 31416}, {"tcp_stream", 1472, 17.83e9}, {"tcp_stream", 9000, 18.42e9}}
}

// FixtureNetwork is a network of a fixture: its efficiencies, best to worst in the order of a slice.
type FixtureNetwork struct {
	Name string
	Eff  [3]float64
	// From and to are the places that it may hold, for each traffic.
	From, To [3]int
}

// FixtureNetworks are the networks of the fixtures.
func FixtureNetworks() []FixtureNetwork {
	return []FixtureNetwork{
		{"calico/direct", [3]float64{0.921, 0.962, 0.981}, [3]int{1, 1, 1}, [3]int{2, 1, 3}},
		{"macvlan", [3]float64{0.930, 0.953, 0.979}, [3]int{1, 2, 1}, [3]int{2, 3, 3}},
		{"flannel/host-gw", [3]float64{0.871, 0.949, 0.977}, [3]int{3, 2, 1}, [3]int{4, 3, 3}},
		{"bridge", [3]float64{0.869, 0.912, 0.941}, [3]int{3, 4, 4}, [3]int{4, 4, 4}},
		{"flannel/vxlan", [3]float64{0.684, 0.452, 0.613}, [3]int{5, 5, 5}, [3]int{5, 5, 5}},
	}
}

// rankingOf ranks networks by a traffic of the fixtures.
func rankingOf(i int, networks []FixtureNetwork) rank.Ranking {
	t := fixtureTraffics()[i]
	c := CellOf("x", t.workload, t.bytes)
	c.Network = ""
	r := rank.Ranking{Group: c, Metric: "throughput_bits_per_second"}
	if t.workload == "tcp_rr" {
		r.Metric = "transactions_per_second"
	}
	sorted := slices.Clone(networks)
	slices.SortFunc(sorted, func(a, b FixtureNetwork) int { return a.From[i] - b.From[i] })
	for k, n := range sorted {
		r.Ranked = append(r.Ranked, rank.Ranked{Network: n.Name, Rank: n.From[i], RankTo: n.To[i], Value: Estimated(t.base*n.Eff[i], 0.01, 12, estimate.GeometricMean)})
		for _, worse := range sorted[k+1:] {
			r.Pairs = append(r.Pairs, rank.Pair{Better: n.Name, Worse: worse.Name, Significant: n.To[i] < worse.From[i], P: 0.01, Adjusted: 0.03,
				Ratio: Estimated(n.Eff[i]/worse.Eff[i], 0.01, 12, estimate.GeometricMean)})
		}
	}
	return r
}

// Sampling is how the fixtures were sampled.
func Sampling() campaign.Sampling {
	return campaign.Sampling{Seconds: 1, WarmupSeconds: 0.2, MinBlocks: 5, MaxBlocks: 20, TargetRelativeHalfwidth: 0.02, Confidence: 0.95}
}

// FixtureEnvironment is where the fixtures were measured.
func FixtureEnvironment() *result.Environment {
	start := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	return &result.Environment{
		Schema: 1, Started: start, Finished: start.Add(5 * time.Minute), Version: "v0.1.0", Testbed: "lab",
		Host: result.Host{Kernel: "6.18.0", OS: "Debian GNU/Linux 12", CPUModel: "Example CPU", CPUs: 2, MemoryBytes: 24 << 30,
			Sysctls: map[string]string{"net.ipv4.tcp_congestion_control": "bbr", "net.core.rmem_max": "212992"}},
		Tools: map[string]string{"iperf3": "iperf 3.12", "bridge": "CNI bridge plugin v1.1.1"},
		Places: map[string]result.PlaceFacts{
			"cnb-node1": {Node: "node1", MTUs: map[string]int{"eth0": 1500}, Offloads: map[string]string{"eth0 tcp-segmentation-offload": "on"}},
			"cnb-node2": {Node: "node2", MTUs: map[string]int{"eth0": 1500}, Offloads: map[string]string{"eth0 tcp-segmentation-offload": "on"}},
			"cnb-pod1":  {Node: "node1", MTUs: map[string]int{"eth0": 1450}},
		},
		Networks: map[string]result.NetworkFacts{
			"host": {}, "bridge": {}, "macvlan": {},
			"calico/direct":   {Model: "Calico v3.30 (point-to-point veth)", LeavesOut: "policy"},
			"flannel/host-gw": {Model: "flannel v0.28 backend/hostgw"},
			"flannel/vxlan":   {Model: "flannel v0.28 backend/vxlan", LeavesOut: "the subnet lease", Encapsulation: "vxlan"},
		},
	}
}

// Normal is the quickstart: six networks × three traffics.
func Normal() report.Input {
	in := report.Input{Campaign: campaign.Campaign{Name: "quickstart", Testbed: "lab", Sampling: Sampling()}, Environment: FixtureEnvironment(),
		Plan: plan.Plan{Schema: 1, Seed: 42, MinBlocks: 5, MaxBlocks: 20}, Dir: "results/quickstart", Version: "v0.1.0",
		Analysis: stat.Analysis{Confidence: 0.95}}
	networks := FixtureNetworks()
	for i, t := range fixtureTraffics() {
		host := CellOf(result.HostNetwork, t.workload, t.bytes)
		in.Analysis.Cells = append(in.Analysis.Cells, SummaryOf(host, t.base, 1, 0.011, 12))
		for _, n := range networks {
			in.Analysis.Cells = append(in.Analysis.Cells, SummaryOf(CellOf(n.Name, t.workload, t.bytes), t.base, n.Eff[i], 0.008, 12))
		}
		in.Analysis.Rankings = append(in.Analysis.Rankings, rankingOf(i, networks))
	}
	slow := &in.Analysis.Cells[5]
	slow.Progress = stopping.Progress{Blocks: 12, BlocksNeeded: 34, Why: "half-width 3.1 %, target 2 %"}
	slow.Failed, slow.Recovered, slow.Reasons = 2, 1, []dataset.Reason{{Reason: "tcp_rr: connection refused", Count: 2}}
	in.Analysis.Cells[8].CPUBound = true
	in.Analysis.Warnings = []warning.Warning{
		{Code: warning.CPUSaturated, Cells: []result.Cell{in.Analysis.Cells[7].Cell, in.Analysis.Cells[8].Cell}, Message: "the busiest core was at least 95 % busy in 2 cells", Cure: "Read the CPU cost instead, or use fewer streams."},
		{Code: warning.TargetNotReached, Cells: []result.Cell{slow.Cell}, Message: "1 cell did not reach its target half-width", Cure: "Raise sampling.max_blocks to 34."},
	}
	unsupported := CellOf("calico/ipip", "tcp_rr", 64)
	for _, t := range fixtureTraffics() {
		unsupported.Workload, unsupported.MessageBytes = t.workload, t.bytes
		in.Analysis.Cells = append(in.Analysis.Cells, summary.Cell{Cell: unsupported, Unsupported: "kernel without ipip", NoEfficiency: "unsupported", Progress: stopping.Progress{Done: true, Why: "unsupported"}})
	}
	SortCells(&in)
	in.Analysis.Goals = GoalsOf(networks, true)
	in.Tally = tallied(samplesOf(in, 12))
	return in
}

// SortCells puts the cells of an input in order, and plans them.
func SortCells(in *report.Input) {
	slices.SortFunc(in.Analysis.Cells, func(a, b summary.Cell) int { return a.Cell.Compare(b.Cell) })
	in.Plan.Cells = nil
	for _, s := range in.Analysis.Cells {
		in.Plan.Cells = append(in.Plan.Cells, s.Cell)
	}
}

// samplesOf are records as the analysis might have come from.
func samplesOf(in report.Input, blocks int) []result.Sample {
	var out []result.Sample
	for i, s := range in.Analysis.Cells {
		for b := 1; b <= blocks && s.OK > 0; b++ {
			sec := 1.0
			out = append(out, result.Sample{Schema: 1, ID: fmt.Sprintf("b%02d-c%03d", b, i), Block: b, Attempt: 1, Cell: s.Cell, Status: result.StatusOK,
				RequestedSeconds: 1, MeasuredSeconds: &sec, Metrics: map[string]float64{s.Primary: s.Absolute[s.Primary].Value}})
		}
		for b := range s.Failed {
			out = append(out, result.Sample{Schema: 1, ID: fmt.Sprintf("b%02d-c%03d", b+1, i), Block: b + 1, Attempt: 1, Cell: s.Cell, Status: result.StatusFailed, Reason: s.Reasons[0].Reason})
		}
	}
	return out
}

// tallied counts samples.
func tallied(samples []result.Sample) report.Tally {
	var t report.Tally
	for i := range samples {
		t.Add(&samples[i])
	}
	return t
}

// Keep leaves only the cells of some networks, and no rankings.
func Keep(in report.Input, networks ...string) report.Input {
	in.Analysis.Cells = slices.DeleteFunc(slices.Clone(in.Analysis.Cells), func(s summary.Cell) bool { return !slices.Contains(networks, s.Cell.Network) })
	in.Analysis.Rankings, in.Analysis.Warnings, in.Analysis.Goals = nil, nil, nil
	SortCells(&in)
	in.Tally = tallied(samplesOf(in, 12))
	return in
}
