package reporttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// GoalsOf are goals as stat gives them of the fixtures' networks; base tells
// whether there is a baseline.
func GoalsOf(networks []FixtureNetwork, base bool) []rank.GoalRanking {
	var out []rank.GoalRanking
	for k, goal := range []rank.Goal{rank.Bandwidth, rank.Latency, rank.CPU} {
		g := rank.GoalRanking{Goal: goal}
		from := [][]int{{1, 2}, {0}, {1, 2}}[k]
		for _, i := range from {
			c := CellOf("", fixtureTraffics()[i].workload, fixtureTraffics()[i].bytes)
			c.Profile = ""
			g.Settings = append(g.Settings, rank.Setting{Cell: c, Metric: []string{"throughput_bits_per_second", "latency_mean_seconds", "instructions_per_byte"}[k]})
		}
		if base {
			g.Base = &rank.Option{Network: result.HostNetwork, Profile: result.DefaultProfile}
		}
		sorted := slices.Clone(networks)
		slices.SortFunc(sorted, func(a, b FixtureNetwork) int { return a.From[from[0]] - b.From[from[0]] })
		mean := func(n FixtureNetwork) float64 {
			sum := 0.0
			for _, i := range from {
				sum += math.Log(n.Eff[i])
			}
			return math.Exp(sum / float64(len(from)))
		}
		for i, n := range sorted {
			r := rank.GoalRanked{Option: rank.Option{Network: n.Name, Profile: result.DefaultProfile}, Rank: n.From[from[0]], RankTo: n.To[from[0]]}
			if len(networks) < len(FixtureNetworks()) { // their ranks are among all
				r.Rank, r.RankTo = i+1, i+1
			}
			if base {
				e := Estimated(mean(n), 0.01, 12, estimate.MeanOverSettings)
				r.Efficiency = &e
			}
			if i > 0 {
				e := Estimated(mean(n)/mean(sorted[0]), 0.01, 12, estimate.MeanOverSettings)
				r.AgainstFirst = &e
			}
			g.Ranked = append(g.Ranked, r)
		}
		out = append(out, g)
	}
	return out
}

// podCells are pods that were added: on one network every step was seen, on the
// other none inside the ADD.
func podCells() []summary.Cell {
	var out []summary.Cell
	for i, network := range []string{"bridge", "macvlan"} {
		c := CellOf(network, "pod_setup", 0)
		c.Streams, c.Pods = 0, 10
		about := func(v float64) estimate.Estimate { return Estimated(v*(1+0.1*float64(i)), 0.02, 4, estimate.Median) }
		s := summary.Cell{Cell: c, OK: 4, Primary: "pod_ready_mean_seconds", NoEfficiency: "the campaign has no host cell", Absolute: map[string]estimate.Estimate{
			"pod_ready_mean_seconds": about(0.24), "pod_added_mean_seconds": about(0.2), "pod_answer_mean_seconds": about(0.04), "pod_removed_mean_seconds": about(0.11)}}
		s.Shape.PluginSeconds = map[string]map[string]estimate.Estimate{"ADD": {network: about(0.14), "portmap": about(0.05)}, "DEL": {network: about(0.1)}}
		if i == 0 {
			s.Absolute["pod_policy_mean_seconds"] = about(0.03)
			for k, name := range []string{"pod_device_mean_seconds", "pod_address_mean_seconds", "pod_route_mean_seconds", "pod_waiting_mean_seconds"} {
				s.Absolute[name] = about(0.02 * float64(k+1))
			}
		}
		out = append(out, s)
	}
	return out
}

// Analysed is a campaign whose analysis is stat's own: every figure of it goes
// the whole way from the samples to the page.
func Analysed() report.Input {
	in, _ := AnalysedSamples()
	return in
}

// AnalysedSamples is analysed, with its samples.
func AnalysedSamples() (report.Input, []result.Sample) {
	var samples []result.Sample
	random := rand.New(rand.NewPCG(1, 2))
	in := report.Input{Campaign: campaign.Campaign{Name: "analysed", Sampling: Sampling()}, Environment: FixtureEnvironment(), Dir: "results/a"}
	for block := 1; block <= 9; block++ {
		for _, n := range append([]FixtureNetwork{{Name: "host", Eff: [3]float64{1, 1, 1}}}, FixtureNetworks()...) {
			for i, t := range fixtureTraffics() {
				v, sec := t.base*n.Eff[i]*math.Exp(0.02*random.NormFloat64()), 1.0
				s := result.Sample{Schema: 1, ID: fmt.Sprintf("b%02d-%s-%d", block, n.Name, i), Block: block, Attempt: 1, Cell: CellOf(n.Name, t.workload, t.bytes),
					Status: result.StatusOK, RequestedSeconds: 1, MeasuredSeconds: &sec, Metrics: map[string]float64{"throughput_bits_per_second": v, "retransmits": float64(block)}}
				if t.workload == "tcp_rr" {
					s.Metrics = map[string]float64{"transactions_per_second": v, "latency_p50_seconds": 0.95 / v, "latency_p99_seconds": 2 / v}
				}
				end := map[string]float64{"cpu_user_seconds": 0.1, "cpu_system_seconds": 0.5, "cpu_irq_seconds": 0.01, "cpu_softirq_seconds": 0.3,
					"process_cpu_seconds": 0.4, "ksoftirqd_cpu_seconds": 0.1, "instructions_user": 1e8, "instructions_kernel": 2e9}
				s.Probes = map[string]map[string]float64{"client_node": end, "server_node": end}
				s.Machines = map[string]string{"client_node": "a", "server_node": "a"}
				samples = append(samples, s)
			}
		}
	}
	return Analyse(in, samples), samples
}

// Analyse puts into a report what samples say.
func Analyse(in report.Input, samples []result.Sample) report.Input {
	in.Analysis = stat.Analyse(samples, dataset.Options{TargetRelativeHalfwidth: 0.02, Environment: *in.Environment, Blocks: true, Ladder: ladders})
	in.Tally = tallied(samples)
	return in
}

// Crossed is analysed with iperf3 beside tcp_stream, and mean round trips.
func Crossed() report.Input {
	in, samples := AnalysedSamples()
	random := rand.New(rand.NewPCG(3, 4))
	for _, s := range slices.Clone(samples) {
		switch {
		case s.Cell.Workload == "tcp_rr":
			s.Metrics["latency_mean_seconds"] = 0.99 / s.Metrics["transactions_per_second"]
		case s.Cell.MessageBytes == 1472:
			s.ID, s.Cell.Workload, s.Cell.Protocol = s.ID+"-iperf3", "iperf3", "tcp"
			s.Metrics = map[string]float64{"throughput_bits_per_second": s.Metrics["throughput_bits_per_second"] * math.Exp(0.02*random.NormFloat64()-0.05)}
			samples = append(samples, s)
		}
	}
	return Analyse(in, samples)
}

// ShapeOf is what charts of a cell might be drawn from.
func ShapeOf(s summary.Cell, random *rand.Rand, blocks int) summary.Shape {
	about := func(v float64) float64 { return v * math.Exp(0.03*random.NormFloat64()) }
	v := s.Absolute[s.Primary].Value
	var out summary.Shape
	for b := 1; b <= blocks; b++ {
		out.Blocks = append(out.Blocks, summary.BlockValue{Block: b, Value: about(v)})
	}
	if s.Cell.Workload == "tcp_rr" {
		at := 0.6 / v
		for i := range 24 {
			at *= 1 + 0.1*random.Float64()
			out.Curve = append(out.Curve, summary.Quantile{Share: 1 - math.Pow(10, -float64(i+1)/6), Seconds: at})
		}
	} else {
		w := summary.Window{IntervalSeconds: 0.1, Blocks: blocks}
		for range 10 {
			m := about(v)
			w.MedianBitsPerSecond = append(w.MedianBitsPerSecond, m)
			w.LowBitsPerSecond = append(w.LowBitsPerSecond, m*0.97)
			w.HighBitsPerSecond = append(w.HighBitsPerSecond, m*1.02)
		}
		out.Window = &w
	}
	out.CPUCores = map[string]estimate.Estimate{
		"user": Estimated(about(0.1), 0.05, blocks, estimate.Median), "system": Estimated(about(0.8), 0.05, blocks, estimate.Median),
		"softirq": Estimated(about(0.6), 0.05, blocks, estimate.Median), "irq": Estimated(about(0.02), 0.05, blocks, estimate.Median),
	}
	return out
}
