package reporttest

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
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

// Inputs are the campaigns of the golden files.
func Inputs() map[string]report.Input {
	oneNetwork := Keep(Normal(), "host", "macvlan")
	oneNetwork.Analysis.Goals = GoalsOf(FixtureNetworks()[1:2], true)
	return map[string]report.Input{
		"normal":      Normal(),
		"empty":       {Campaign: campaign.Campaign{Name: "empty"}},
		"one-sample":  oneSample(),
		"all-failed":  allFailed(),
		"one-network": oneNetwork,
		"no-baseline": NoBaseline(),
		"link-bound":  linkBound(),
		"host-only":   Keep(Normal(), "host"),
		"wide":        wide(),
		"tools":       tools(),
		"null-test":   NullTest(),
		"mixed":       mixed(),
		"drawn":       Drawn(),
	}
}

// oneSample is a campaign that ended after its first sample.
func oneSample() report.Input {
	in := Keep(Normal(), "host", "macvlan")
	in.Analysis.Cells = in.Analysis.Cells[:1]
	c := CellOf("macvlan", "tcp_rr", 64)
	s := SummaryOf(c, 31416, 0.93, 0, 1)
	s.Baseline, s.Efficiency, s.EfficiencyByMetric, s.NoEfficiency = nil, nil, nil, "no block has both the cell and its baseline"
	s.Progress = stopping.Progress{Blocks: 0, Why: "0 blocks count; an interval takes 2"}
	in.Analysis.Cells = []summary.Cell{s}
	in.Environment.Finished = time.Time{}
	in.Tally = tallied(samplesOf(in, 1))
	return in // the plan has five cells more
}

// allFailed is a campaign without a measured sample.
func allFailed() report.Input {
	in := Keep(Normal(), "host", "macvlan", "bridge")
	for i, s := range in.Analysis.Cells {
		in.Analysis.Cells[i] = summary.Cell{Cell: s.Cell, Failed: 3, Reasons: []dataset.Reason{{Reason: "agent in cnb-pod1: start: permission denied", Count: 3}},
			NoEfficiency: "nothing was measured", Progress: stopping.Progress{Why: "0 blocks count; an interval takes 2"}}
	}
	in.Analysis.Warnings = []warning.Warning{{Code: warning.FailedSamples, Cells: in.Plan.Cells, Message: "27 samples failed", Cure: "Read the reasons; then run cnibench doctor."}}
	in.Tally = tallied(samplesOf(in, 0))
	return in
}

// NoBaseline is a campaign without the bare network.
func NoBaseline() report.Input {
	in := Keep(Normal(), "macvlan", "bridge", "flannel/vxlan")
	for i := range in.Analysis.Cells {
		s := &in.Analysis.Cells[i]
		s.Baseline, s.Efficiency, s.EfficiencyByMetric, s.NoEfficiency = nil, nil, nil, "the campaign has no host cell"
	}
	networks := FixtureNetworks()
	for i := range fixtureTraffics() {
		r := rankingOf(i, []FixtureNetwork{networks[1], networks[3], networks[4]})
		for k := range r.Ranked {
			r.Ranked[k].Rank, r.Ranked[k].RankTo = k+1, k+1
		}
		for k := range r.Pairs {
			r.Pairs[k].Significant = true
		}
		in.Analysis.Rankings = append(in.Analysis.Rankings, r)
	}
	in.Analysis.Goals = GoalsOf([]FixtureNetwork{networks[1], networks[3], networks[4]}, false)
	return in
}

// linkBound fills a 1-gigabit link with all but one network.
func linkBound() report.Input {
	in := Keep(Normal(), "host", "macvlan", "bridge", "calico/direct")
	limit := 956.4e6
	var cells []summary.Cell
	for _, s := range in.Analysis.Cells {
		if s.Cell.MessageBytes != 1472 {
			continue
		}
		c := s.Cell
		c.Link = "1-gigabit"
		s = SummaryOf(c, 956.1e6, 1, 0.0004, 12)
		s.LinkBound, s.LinkLimit = true, &limit
		cells = append(cells, s)
	}
	in.Analysis.Cells = cells
	SortCells(&in)
	networks := FixtureNetworks()
	r := rankingOf(1, []FixtureNetwork{networks[0], networks[1], networks[3]})
	r.Group.Link = "1-gigabit"
	r.LinkBound = true
	byCPU := rankingOf(1, []FixtureNetwork{networks[0], networks[1], networks[3]})
	byCPU.Group.Link, byCPU.Metric = "1-gigabit", dataset.CPUPerByte
	for k := range r.Ranked {
		r.Ranked[k].Rank, r.Ranked[k].RankTo, r.Ranked[k].LinkBound = 1, 3, true
		byCPU.Ranked[k].Rank, byCPU.Ranked[k].RankTo = k+1, k+1
		byCPU.Ranked[k].Value = Estimated(14/956.1e6*(1+0.1*float64(k)), 0.01, 12, estimate.GeometricMean)
	}
	r.Pairs = nil
	for k := range byCPU.Pairs {
		byCPU.Pairs[k].Significant = true
	}
	in.Analysis.Rankings = []rank.Ranking{r, byCPU}
	in.Analysis.Goals = GoalsOf([]FixtureNetwork{networks[0], networks[1], networks[3]}, true)
	in.Analysis.Goals[0].LinkBound = true
	in.Tally = tallied(samplesOf(in, 12))
	return in
}

// tools has native traffics and published tools that measure the same, one
// that could not be compared, and a tool that tells half round trips.
func tools() report.Input {
	in := Keep(Normal(), "host", "bridge")
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
			s.Absolute["latency_mean_seconds"] = Estimated(1/v, 0.01, 12, estimate.Median)
			for k, tool := range []result.Cell{netperf(c), sockperf(c)} {
				x := summary.Cell{Cell: tool, OK: 12, Primary: s.Primary, Progress: s.Progress, Absolute: map[string]estimate.Estimate{
					s.Primary: Estimated(v*0.97, 0.01, 12, estimate.Median), "latency_mean_seconds": Estimated(1/v/0.97, 0.01, 12, estimate.Median)}}
				in.Analysis.Cells = append(in.Analysis.Cells, x)
				r := Estimated(0.97+0.05*float64(k), 0.012, 12, estimate.GeometricMean)
				in.Analysis.CrossChecks = append(in.Analysis.CrossChecks, stat.CrossCheck{Native: c, Classic: tool, Metric: "latency_mean_seconds", Ratio: &r, Differs: "The tools take whole seconds."})
			}
			in.Analysis.RoundTrips = append(in.Analysis.RoundTrips,
				summary.RoundTripCheck{Cell: c, Product: Estimated(0.9991, 0.0002, 12, estimate.GeometricMean), OK: true},
				summary.RoundTripCheck{Cell: sockperf(c), Product: Estimated(0.502, 0, 1, estimate.GeometricMean)})
		case c.MessageBytes == 1472:
			tool := iperf3(c)
			x := stat.CrossCheck{Native: c, Classic: tool, Metric: s.Primary, Differs: "iperf3 takes whole seconds."}
			if c.IsBaseline() {
				r := Estimated(1.08, 0.03, 12, estimate.GeometricMean)
				x.Ratio = &r
				in.Analysis.Cells = append(in.Analysis.Cells, SummaryOf(tool, in.Analysis.Cells[i].Absolute[s.Primary].Value/1.08, 1, 0.01, 12))
			} else {
				x.NoRatio = "iperf3: all 3 samples failed: connection refused"
				in.Analysis.Cells = append(in.Analysis.Cells, summary.Cell{Cell: tool, Failed: 3, Reasons: []dataset.Reason{{Reason: "connection refused", Count: 3}}})
			}
			in.Analysis.CrossChecks = append(in.Analysis.CrossChecks, x)
		}
	}
	in.Campaign.Name = "tools"
	SortCells(&in)
	in.Tally = tallied(samplesOf(in, 12))
	return in
}

// wide has two places, many traffics, names in wide characters, and an
// efficiency above 100 %.
func wide() report.Input {
	in := Normal()
	extra := []summary.Cell{}
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
			x := SummaryOf(c, 18e9, eff, 0.03, 12)
			if eff > 1 {
				loss := Estimated(0.12, 0.1, 12, estimate.Median)
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
	SortCells(&in)
	in.Tally = tallied(samplesOf(in, 2))
	return in
}

// mixed is a campaign whose kernel and settings were not the same throughout.
func mixed() report.Input {
	in := Normal()
	in.Campaign.Name = "mixed"
	kernels := []string{"6.18.0", "6.1.0-40-amd64", "6.18.0"}
	for i, name := range report.SortedKeys(in.Environment.Places) {
		p := in.Environment.Places[name]
		p.Kernel = kernels[i]
		in.Environment.Places[name] = p
	}
	in.Environment.Changed = []string{"net.core.rmem_max: 212992 at first, 16777216 at the end"}
	in.Analysis.Warnings = append([]warning.Warning{
		{Code: warning.SettingsChanged, Message: "1 setting was different at the end of the campaign", Cure: "Repeat the campaign with nothing else that changes settings."},
		{Code: warning.SettingsDiffer, Message: "1 setting is not the same at every place: kernel is 6.1.0-40-amd64 or 6.18.0", Cure: "Give all nodes and pods the same settings."},
	}, in.Analysis.Warnings...)
	return in
}

// Drawn has everything that charts are drawn from, and some of which it is
// absent: one network has no histograms, one was not measured in one place.
func Drawn() report.Input {
	in := Keep(Normal(), "host", "macvlan", "bridge")
	random := rand.New(rand.NewPCG(9, 10))
	limit := 23.9e9
	var more []summary.Cell
	for i := range in.Analysis.Cells {
		s := &in.Analysis.Cells[i]
		s.Shape = ShapeOf(*s, random, 4)
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
				more = append(more, summary.Cell{Cell: c, Failed: 3, Reasons: []dataset.Reason{{Reason: "connection refused", Count: 3}}})
				continue
			}
			x := SummaryOf(c, limit, min(1, 0.7*math.Pow(float64(streams), 0.2)), 0.01, 4)
			x.LinkLimit, x.LinkBound = &limit, streams == 16
			x.Shape = ShapeOf(x, random, 4)
			more = append(more, x)
		}
	}
	in.Analysis.Cells = append(append(in.Analysis.Cells, more...), podCells()...)
	in.Campaign.Name = "drawn"
	SortCells(&in)
	return Burnt(in, "")
}

// NullTest is a campaign whose networks were compared with themselves: of four
// pairs one was called different, by chance.
func NullTest() report.Input {
	in := Keep(Normal(), "host", "bridge", "macvlan")
	n := &stat.NullResult{Confidence: 0.95, False: 1, Expected: 0.3, NoiseFloor: 0.012, Detectable: 0.0171}
	var cells []summary.Cell
	for _, s := range in.Analysis.Cells {
		cells = append(cells, s)
		if s.Cell.IsBaseline() {
			continue
		}
		second := s
		second.Cell.Network = result.SecondName(s.Cell.Network)
		cells = append(cells, second)
		e := 1 + 0.003*float64(len(n.Pairs)-2)
		n.Pairs = append(n.Pairs, stat.NullPair{
			A: s.Cell, B: second.Cell, Ratio: Estimated(e, 0.009, 12, estimate.GeometricMean), P: 0.4,
			Different: len(n.Pairs) == 1, NoisePerBlock: 0.014, Detectable: 0.0171,
		})
	}
	in.Analysis.Cells, in.Analysis.NullTest = cells, n
	SortCells(&in)
	in.Tally = tallied(samplesOf(in, 12))
	return in
}
