package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// The inputs are fixed analyses, so that a refined statistic changes no golden
// file of this package; TestAnalysed takes stat's own.

// estimated is a value with an interval of ±rel; rel 0 leaves the interval out.
func estimated(v, rel float64, n int, m stat.Method) stat.Estimate {
	e := stat.Estimate{Value: v, N: n, Confidence: 0.95, Method: m}
	if rel > 0 {
		low, high := v*(1-rel), v*(1+rel)
		e.Low, e.High = &low, &high
	} else {
		e.Needed, e.Confidence = 6, 0
	}
	return e
}

func cellOf(network, workload string, bytes int) result.Cell {
	path := result.PathPodToPod
	if network == result.HostNetwork {
		path = result.PathHostToHost
	}
	return result.Cell{Network: network, Path: path, Placement: result.InterHost, Link: "unshaped", Profile: "default_settings", MTU: 1500,
		Workload: workload, MessageBytes: bytes, Streams: 1}
}

// summaryOf is a measured cell: base is the baseline's value.
func summaryOf(c result.Cell, base, efficiency, rel float64, n int) stat.CellSummary {
	s := stat.CellSummary{Cell: c, OK: n, Absolute: map[string]stat.Estimate{}}
	v := base * efficiency
	if c.Workload == "tcp_rr" {
		s.Primary = "transactions_per_second"
		s.Latency = map[string]stat.Estimate{}
		for i, p := range []string{"latency_p50_seconds", "latency_p90_seconds", "latency_p99_seconds", "latency_p999_seconds"} {
			s.Latency[p] = estimated((0.95+float64(i)*0.6)/v, rel*float64(1+i), n, stat.MergedPercentile)
			s.Absolute[p] = estimated((0.96+float64(i)*0.6)/v, rel*float64(1+i), n, stat.Median)
		}
		s.Absolute[stat.CPUPerTransaction] = estimated(1.8/v, rel, n, stat.Median)
	} else {
		s.Primary = "throughput_bits_per_second"
		s.Absolute["retransmits"] = estimated(12, 0, n, stat.Median)
		s.Absolute["tcp_mss_bytes"] = estimated(1448, 0, n, stat.Median)
		s.Absolute[stat.CPUPerByte] = estimated(14/v, rel, n, stat.Median)
		s.Absolute["own_cpu_seconds_per_byte"] = estimated(12/v, rel/2, n, stat.Median)
		s.Absolute["instructions_per_byte"] = estimated(9e9/v, rel/10, n, stat.Median)
		for _, rate := range []float64{10e9, 25e9, 50e9, 100e9} {
			s.CoresAt = append(s.CoresAt, stat.Cores{BitsPerSecond: rate, Cores: estimated(14/v*rate/8, rel, n, stat.Median)})
		}
	}
	s.Absolute[s.Primary] = estimated(v, rel, n, stat.Median)
	if !c.IsBaseline() {
		b, e := c.Baseline(), estimated(efficiency, rel*1.2, n, stat.GeometricMean)
		s.Baseline, s.Efficiency = &b, &e
		s.EfficiencyByMetric = map[string]stat.Estimate{s.Primary: e}
		s.EfficiencyByMetric[stat.CPUPerByte] = estimated(efficiency*0.95, rel*1.4, n, stat.GeometricMean)
		s.EfficiencyByMetric["instructions_per_byte"] = estimated(efficiency*0.97, rel/10, n, stat.GeometricMean)
	}
	s.Progress = stat.Progress{Done: true, Blocks: n, Why: "inside the target"}
	return s
}

// withBlocks gives the fixtures the values of blocks that their medians may be of.
func withBlocks(in Input) Input {
	in.Analysis.Cells = slices.Clone(in.Analysis.Cells)
	for i, s := range in.Analysis.Cells {
		if s.Blocks == nil {
			in.Analysis.Cells[i].Blocks = blocksOf(s)
		}
	}
	return in
}

// blocksOf are values of blocks of which the medians are what they are.
func blocksOf(s stat.CellSummary) map[string][]stat.BlockValue {
	out := map[string][]stat.BlockValue{}
	for metric, e := range s.Absolute {
		for b := range e.N {
			out[metric] = append(out[metric], stat.BlockValue{Block: b + 1, Value: e.Value})
		}
	}
	return out
}

// traffics of the fixtures, with the baseline's values.
var fixtureTraffics = []struct {
	workload string
	bytes    int
	base     float64
}{{"tcp_rr", 64, 31416}, {"tcp_stream", 1472, 17.83e9}, {"tcp_stream", 9000, 18.42e9}}

// network of a fixture: its efficiencies, best to worst in the order of a slice.
type fixtureNetwork struct {
	name string
	eff  [3]float64
	// from and to are the places that it may hold, for each traffic.
	from, to [3]int
}

func fixtureNetworks() []fixtureNetwork {
	return []fixtureNetwork{
		{"calico/direct", [3]float64{0.921, 0.962, 0.981}, [3]int{1, 1, 1}, [3]int{2, 1, 3}},
		{"macvlan", [3]float64{0.930, 0.953, 0.979}, [3]int{1, 2, 1}, [3]int{2, 3, 3}},
		{"flannel/host-gw", [3]float64{0.871, 0.949, 0.977}, [3]int{3, 2, 1}, [3]int{4, 3, 3}},
		{"bridge", [3]float64{0.869, 0.912, 0.941}, [3]int{3, 4, 4}, [3]int{4, 4, 4}},
		{"flannel/vxlan", [3]float64{0.684, 0.452, 0.613}, [3]int{5, 5, 5}, [3]int{5, 5, 5}},
	}
}

func rankingOf(i int, networks []fixtureNetwork) stat.Ranking {
	t := fixtureTraffics[i]
	c := cellOf("x", t.workload, t.bytes)
	c.Network = ""
	r := stat.Ranking{Group: c, Metric: "throughput_bits_per_second"}
	if t.workload == "tcp_rr" {
		r.Metric = "transactions_per_second"
	}
	sorted := slices.Clone(networks)
	slices.SortFunc(sorted, func(a, b fixtureNetwork) int { return a.from[i] - b.from[i] })
	for k, n := range sorted {
		r.Ranked = append(r.Ranked, stat.Ranked{Network: n.name, Rank: n.from[i], RankTo: n.to[i], Value: estimated(t.base*n.eff[i], 0.01, 12, stat.GeometricMean)})
		for _, worse := range sorted[k+1:] {
			r.Pairs = append(r.Pairs, stat.Pair{Better: n.name, Worse: worse.name, Significant: n.to[i] < worse.from[i], P: 0.01, Adjusted: 0.03,
				Ratio: estimated(n.eff[i]/worse.eff[i], 0.01, 12, stat.GeometricMean)})
		}
	}
	return r
}

func sampling() campaign.Sampling {
	return campaign.Sampling{Seconds: 1, WarmupSeconds: 0.2, MinBlocks: 5, MaxBlocks: 20, TargetRelativeHalfwidth: 0.02, Confidence: 0.95}
}

func fixtureEnvironment() *result.Environment {
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

// normal is the quickstart: six networks × three traffics.
func normal() Input {
	in := Input{Campaign: campaign.Campaign{Name: "quickstart", Testbed: "lab", Sampling: sampling()}, Environment: fixtureEnvironment(),
		Plan: plan.Plan{Schema: 1, Seed: 42, MinBlocks: 5, MaxBlocks: 20}, Dir: "results/quickstart", Version: "v0.1.0",
		Analysis: stat.Analysis{Confidence: 0.95}}
	networks := fixtureNetworks()
	for i, t := range fixtureTraffics {
		host := cellOf(result.HostNetwork, t.workload, t.bytes)
		in.Analysis.Cells = append(in.Analysis.Cells, summaryOf(host, t.base, 1, 0.011, 12))
		for _, n := range networks {
			in.Analysis.Cells = append(in.Analysis.Cells, summaryOf(cellOf(n.name, t.workload, t.bytes), t.base, n.eff[i], 0.008, 12))
		}
		in.Analysis.Rankings = append(in.Analysis.Rankings, rankingOf(i, networks))
	}
	slow := &in.Analysis.Cells[5]
	slow.Progress = stat.Progress{Blocks: 12, BlocksNeeded: 34, Why: "half-width 3.1 %, target 2 %"}
	slow.Failed, slow.Recovered, slow.Reasons = 2, 1, []stat.Reason{{Reason: "tcp_rr: connection refused", Count: 2}}
	in.Analysis.Cells[8].CPUBound = true
	in.Analysis.Warnings = []stat.Warning{
		{Code: stat.CPUSaturated, Cells: []result.Cell{in.Analysis.Cells[7].Cell, in.Analysis.Cells[8].Cell}, Message: "the busiest core was at least 95 % busy in 2 cells", Cure: "Read the CPU cost instead, or use fewer streams."},
		{Code: stat.TargetNotReached, Cells: []result.Cell{slow.Cell}, Message: "1 cell did not reach its target half-width", Cure: "Raise sampling.max_blocks to 34."},
	}
	unsupported := cellOf("calico/ipip", "tcp_rr", 64)
	for _, t := range fixtureTraffics {
		unsupported.Workload, unsupported.MessageBytes = t.workload, t.bytes
		in.Analysis.Cells = append(in.Analysis.Cells, stat.CellSummary{Cell: unsupported, Unsupported: "kernel without ipip", NoEfficiency: "unsupported", Progress: stat.Progress{Done: true, Why: "unsupported"}})
	}
	sortCells(&in)
	in.Analysis.Goals = goalsOf(networks, true)
	in.Tally = tallied(samplesOf(in, 12))
	return in
}

func sortCells(in *Input) {
	slices.SortFunc(in.Analysis.Cells, func(a, b stat.CellSummary) int { return a.Cell.Compare(b.Cell) })
	in.Plan.Cells = nil
	for _, s := range in.Analysis.Cells {
		in.Plan.Cells = append(in.Plan.Cells, s.Cell)
	}
}

// samplesOf are records as the analysis might have come from.
func samplesOf(in Input, blocks int) []result.Sample {
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

func tallied(samples []result.Sample) Tally {
	var t Tally
	for i := range samples {
		t.Add(&samples[i])
	}
	return t
}

// keep leaves only the cells of some networks, and no rankings.
func keep(in Input, networks ...string) Input {
	in.Analysis.Cells = slices.DeleteFunc(slices.Clone(in.Analysis.Cells), func(s stat.CellSummary) bool { return !slices.Contains(networks, s.Cell.Network) })
	in.Analysis.Rankings, in.Analysis.Warnings, in.Analysis.Goals = nil, nil, nil
	sortCells(&in)
	in.Tally = tallied(samplesOf(in, 12))
	return in
}

// inputs are the campaigns of the golden files.
func inputs() map[string]Input {
	oneNetwork := keep(normal(), "host", "macvlan")
	oneNetwork.Analysis.Goals = goalsOf(fixtureNetworks()[1:2], true)
	return map[string]Input{
		"normal":      normal(),
		"empty":       {Campaign: campaign.Campaign{Name: "empty"}},
		"one-sample":  oneSample(),
		"all-failed":  allFailed(),
		"one-network": oneNetwork,
		"no-baseline": noBaseline(),
		"link-bound":  linkBound(),
		"host-only":   keep(normal(), "host"),
		"wide":        wide(),
		"tools":       tools(),
		"null-test":   nullTest(),
		"mixed":       mixed(),
		"drawn":       drawn(),
	}
}

func oneSample() Input {
	in := keep(normal(), "host", "macvlan")
	in.Analysis.Cells = in.Analysis.Cells[:1]
	c := cellOf("macvlan", "tcp_rr", 64)
	s := summaryOf(c, 31416, 0.93, 0, 1)
	s.Baseline, s.Efficiency, s.EfficiencyByMetric, s.NoEfficiency = nil, nil, nil, "no block has both the cell and its baseline"
	s.Progress = stat.Progress{Blocks: 0, Why: "0 blocks count; an interval takes 2"}
	in.Analysis.Cells = []stat.CellSummary{s}
	in.Environment.Finished = time.Time{}
	in.Tally = tallied(samplesOf(in, 1))
	return in // the plan has five cells more
}

func allFailed() Input {
	in := keep(normal(), "host", "macvlan", "bridge")
	for i, s := range in.Analysis.Cells {
		in.Analysis.Cells[i] = stat.CellSummary{Cell: s.Cell, Failed: 3, Reasons: []stat.Reason{{Reason: "agent in cnb-pod1: start: permission denied", Count: 3}},
			NoEfficiency: "nothing was measured", Progress: stat.Progress{Why: "0 blocks count; an interval takes 2"}}
	}
	in.Analysis.Warnings = []stat.Warning{{Code: stat.FailedSamples, Cells: in.Plan.Cells, Message: "27 samples failed", Cure: "Read the reasons; then run cnibench doctor."}}
	in.Tally = tallied(samplesOf(in, 0))
	return in
}

func noBaseline() Input {
	in := keep(normal(), "macvlan", "bridge", "flannel/vxlan")
	for i := range in.Analysis.Cells {
		s := &in.Analysis.Cells[i]
		s.Baseline, s.Efficiency, s.EfficiencyByMetric, s.NoEfficiency = nil, nil, nil, "the campaign has no host cell"
	}
	networks := fixtureNetworks()
	for i := range fixtureTraffics {
		r := rankingOf(i, []fixtureNetwork{networks[1], networks[3], networks[4]})
		for k := range r.Ranked {
			r.Ranked[k].Rank, r.Ranked[k].RankTo = k+1, k+1
		}
		for k := range r.Pairs {
			r.Pairs[k].Significant = true
		}
		in.Analysis.Rankings = append(in.Analysis.Rankings, r)
	}
	in.Analysis.Goals = goalsOf([]fixtureNetwork{networks[1], networks[3], networks[4]}, false)
	return in
}

// linkBound fills a 1-gigabit link with all but one network.
func linkBound() Input {
	in := keep(normal(), "host", "macvlan", "bridge", "calico/direct")
	limit := 956.4e6
	var cells []stat.CellSummary
	for _, s := range in.Analysis.Cells {
		if s.Cell.MessageBytes != 1472 {
			continue
		}
		c := s.Cell
		c.Link = "1-gigabit"
		s = summaryOf(c, 956.1e6, 1, 0.0004, 12)
		s.LinkBound, s.LinkLimit = true, &limit
		cells = append(cells, s)
	}
	in.Analysis.Cells = cells
	sortCells(&in)
	networks := fixtureNetworks()
	r := rankingOf(1, []fixtureNetwork{networks[0], networks[1], networks[3]})
	r.Group.Link = "1-gigabit"
	r.LinkBound = true
	byCPU := rankingOf(1, []fixtureNetwork{networks[0], networks[1], networks[3]})
	byCPU.Group.Link, byCPU.Metric = "1-gigabit", stat.CPUPerByte
	for k := range r.Ranked {
		r.Ranked[k].Rank, r.Ranked[k].RankTo, r.Ranked[k].LinkBound = 1, 3, true
		byCPU.Ranked[k].Rank, byCPU.Ranked[k].RankTo = k+1, k+1
		byCPU.Ranked[k].Value = estimated(14/956.1e6*(1+0.1*float64(k)), 0.01, 12, stat.GeometricMean)
	}
	r.Pairs = nil
	for k := range byCPU.Pairs {
		byCPU.Pairs[k].Significant = true
	}
	in.Analysis.Rankings = []stat.Ranking{r, byCPU}
	in.Analysis.Goals = goalsOf([]fixtureNetwork{networks[0], networks[1], networks[3]}, true)
	in.Analysis.Goals[0].LinkBound = true
	in.Tally = tallied(samplesOf(in, 12))
	return in
}

// tools has native traffics and published tools that measure the same, one
// that could not be compared, and a tool that tells half round trips.
func tools() Input {
	in := keep(normal(), "host", "bridge")
	iperf3 := func(c result.Cell) result.Cell { c.Workload, c.Protocol = "iperf3", "tcp"; return c }
	netperf := func(c result.Cell) result.Cell { c.Workload, c.Test, c.Streams = "netperf", "TCP_RR", 0; return c }
	sockperf := func(c result.Cell) result.Cell {
		c.Workload, c.Test, c.Protocol, c.Streams = "sockperf", "ping-pong", "tcp", 0
		return c
	}
	for i, s := range in.Analysis.Cells {
		c := s.Cell
		switch {
		case c.Workload == "tcp_rr":
			v := s.Absolute[s.Primary].Value
			s.Absolute["latency_mean_seconds"] = estimated(1/v, 0.01, 12, stat.Median)
			for k, tool := range []result.Cell{netperf(c), sockperf(c)} {
				x := stat.CellSummary{Cell: tool, OK: 12, Primary: s.Primary, Progress: s.Progress, Absolute: map[string]stat.Estimate{
					s.Primary: estimated(v*0.97, 0.01, 12, stat.Median), "latency_mean_seconds": estimated(1/v/0.97, 0.01, 12, stat.Median)}}
				in.Analysis.Cells = append(in.Analysis.Cells, x)
				r := estimated(0.97+0.05*float64(k), 0.012, 12, stat.GeometricMean)
				in.Analysis.CrossChecks = append(in.Analysis.CrossChecks, stat.CrossCheck{Native: c, Classic: tool, Metric: "latency_mean_seconds", Ratio: &r, Differs: "The tools take whole seconds."})
			}
			in.Analysis.RoundTrips = append(in.Analysis.RoundTrips,
				stat.RoundTripCheck{Cell: c, Product: estimated(0.9991, 0.0002, 12, stat.GeometricMean), OK: true},
				stat.RoundTripCheck{Cell: sockperf(c), Product: estimated(0.502, 0, 1, stat.GeometricMean)})
		case c.MessageBytes == 1472:
			tool := iperf3(c)
			x := stat.CrossCheck{Native: c, Classic: tool, Metric: s.Primary, Differs: "iperf3 takes whole seconds."}
			if c.IsBaseline() {
				r := estimated(1.08, 0.03, 12, stat.GeometricMean)
				x.Ratio = &r
				in.Analysis.Cells = append(in.Analysis.Cells, summaryOf(tool, in.Analysis.Cells[i].Absolute[s.Primary].Value/1.08, 1, 0.01, 12))
			} else {
				x.NoRatio = "iperf3: all 3 samples failed: connection refused"
				in.Analysis.Cells = append(in.Analysis.Cells, stat.CellSummary{Cell: tool, Failed: 3, Reasons: []stat.Reason{{Reason: "connection refused", Count: 3}}})
			}
			in.Analysis.CrossChecks = append(in.Analysis.CrossChecks, x)
		}
	}
	in.Campaign.Name = "tools"
	sortCells(&in)
	in.Tally = tallied(samplesOf(in, 12))
	return in
}

// wide has two places, many traffics, names in wide characters, and an
// efficiency above 100 %.
func wide() Input {
	in := normal()
	extra := []stat.CellSummary{}
	for i, s := range in.Analysis.Cells {
		if s.OK == 0 {
			continue
		}
		if s.Cell.Network == "macvlan" {
			in.Analysis.Cells[i].Cell.Network = "網絡/很快的網絡"
		}
		for _, streams := range []int{4, 16} {
			c := in.Analysis.Cells[i].Cell
			c.Streams, c.Profile, c.Direction = streams, "network-throughput", "bidirectional"
			eff := 1.0
			if s.Efficiency != nil {
				eff = s.Efficiency.Value * 1.3
			}
			x := summaryOf(c, 18e9, eff, 0.03, 12)
			if eff > 1 {
				loss := estimated(0.12, 0.1, 12, stat.Median)
				x.Loss = &loss
			}
			extra = append(extra, x)
		}
	}
	for i := range in.Analysis.Rankings {
		r := &in.Analysis.Rankings[i]
		for k, n := range r.Ranked {
			if n.Network == "macvlan" {
				r.Ranked[k].Network = "網絡/很快的網絡"
			}
		}
		for k := range r.Pairs {
			for _, n := range []*string{&r.Pairs[k].Better, &r.Pairs[k].Worse} {
				if *n == "macvlan" {
					*n = "網絡/很快的網絡"
				}
			}
		}
	}
	in.Analysis.Cells = append(in.Analysis.Cells, extra...)
	in.Campaign.Name = "wide – 寬"
	sortCells(&in)
	in.Tally = tallied(samplesOf(in, 2))
	return in
}

// mixed is a campaign whose kernel and settings were not the same throughout.
func mixed() Input {
	in := normal()
	in.Campaign.Name = "mixed"
	kernels := []string{"6.18.0", "6.1.0-40-amd64", "6.18.0"}
	for i, name := range sortedKeys(in.Environment.Places) {
		p := in.Environment.Places[name]
		p.Kernel = kernels[i]
		in.Environment.Places[name] = p
	}
	in.Environment.Changed = []string{"net.core.rmem_max: 212992 at first, 16777216 at the end"}
	in.Analysis.Warnings = append([]stat.Warning{
		{Code: stat.SettingsChanged, Message: "1 setting was different at the end of the campaign", Cure: "Repeat the campaign with nothing else that changes settings."},
		{Code: stat.SettingsDiffer, Message: "1 setting is not the same at every place: kernel is 6.1.0-40-amd64 or 6.18.0", Cure: "Give all nodes and pods the same settings."},
	}, in.Analysis.Warnings...)
	return in
}

// drawn has everything that charts are drawn from, and some of which it is
// absent: one network has no histograms, one was not measured in one place.
func drawn() Input {
	in := keep(normal(), "host", "macvlan", "bridge")
	random := rand.New(rand.NewPCG(9, 10))
	limit := 23.9e9
	var more []stat.CellSummary
	for i := range in.Analysis.Cells {
		s := &in.Analysis.Cells[i]
		s.Shape = shapeOf(*s, random, 4)
		if s.Cell.Network == "bridge" {
			s.Shape.Curve = nil
		}
		if s.Cell.Workload != "tcp_stream" || s.Cell.MessageBytes != 1472 {
			continue
		}
		for _, streams := range []int{4, 16} {
			c := s.Cell
			c.Streams = streams
			if c.Network == "bridge" && streams == 16 {
				more = append(more, stat.CellSummary{Cell: c, Failed: 3, Reasons: []stat.Reason{{Reason: "connection refused", Count: 3}}})
				continue
			}
			x := summaryOf(c, limit, min(1, 0.7*math.Pow(float64(streams), 0.2)), 0.01, 4)
			x.LinkLimit, x.LinkBound = &limit, streams == 16
			x.Shape = shapeOf(x, random, 4)
			more = append(more, x)
		}
	}
	in.Analysis.Cells = append(append(in.Analysis.Cells, more...), podCells()...)
	in.Campaign.Name = "drawn"
	sortCells(&in)
	return burnt(in, "")
}
