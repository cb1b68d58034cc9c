package paper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// Results are what was recorded, and what this cnibench could record at all.
type Results struct {
	Campaign    campaign.Campaign
	Environment *result.Environment
	Analysis    stat.Analysis
	// Collector is the one that made Analysis.
	Collector *stat.Collector
	// Known are the names that a campaign of this program may use.
	Known campaign.Known
	// Cut tells that the campaign is a part of a paper's, made for a time budget.
	Cut bool
	// CutOfAgents tells the same of the paper's kubernetes.yaml.
	CutOfAgents bool
	// Untaken maps a profile to those of its settings that did not take effect while
	// samples were taken, each with the reason.
	Untaken map[string][]string

	all     []result.Cell       // of Analysis, once asked for
	factors []factors           // of each of them
	places  map[result.Cell]int // in Analysis.Cells, of each without its conditions
}

// recorded are all cells that were analysed.
func (r *Results) recorded() []result.Cell {
	if r.all == nil {
		for _, s := range r.Analysis.Cells {
			r.all = append(r.all, s.Cell)
		}
	}
	return r.all
}

// blocks is the largest number of blocks of any cell.
func (r *Results) blocks() int {
	most := 0
	for _, s := range r.Analysis.Cells {
		most = max(most, s.OK)
	}
	return most
}

// confidence of the verdicts.
func (r *Results) confidence() float64 { return r.Analysis.Confidence }

// matching are the recorded cells that a selector of single values means.
func (r *Results) matching(s Selector) []summary.Cell {
	if r.factors == nil {
		for _, c := range r.Analysis.Cells {
			r.factors = append(r.factors, factorsOf(c.Cell))
		}
	}
	s = s.onHost()
	var out []summary.Cell
	for i, f := range r.factors {
		if s.matches(f) {
			out = append(out, r.Analysis.Cells[i])
		}
	}
	return out
}

// Why a cell has no value: leftOut where a run without a time budget would measure it, and what
// begins with unsupportedHere or has notInForce in it where this testbed cannot.
const (
	leftOut         = "the time budget left it out: run the whole without --for"
	noOtherSide     = unsupportedHere + "nothing that it is compared with can be measured"
	unsupportedHere = "unsupported here: "
	notInForce      = " did not take effect: "
)

// absent says why no recorded cell is as the selector says: it asks what this
// program knows first, then what was recorded.
func (r *Results) absent(s Selector) string {
	if name := s.unknown(); name != "" {
		return fmt.Sprintf("this cnibench has no factor %s", name)
	}
	if why := unknownName(s, r.Known); why != "" {
		return why
	}
	if r.Cut {
		return leftOut
	}
	return "it is not among the recorded cells: add it to the campaign"
}

// unknownName says which name in a selector this program does not have; "" where it has
// all.
func unknownName(s Selector, known campaign.Known) string {
	var workloads []string
	for _, w := range known.Workloads {
		workloads = append(workloads, w.Name)
	}
	for _, k := range []struct {
		factor string
		known  []string
	}{{"network", known.Networks}, {"link", known.Links}, {"profile", known.Profiles}, {"service_proxy", known.ServiceProxies}, {"workload", workloads}} {
		name, isText := s[k.factor].(string)
		if isText && name != "" && name != anyValue && !slices.Contains(k.known, name) {
			return fmt.Sprintf("this cnibench has no %s %s", strings.ReplaceAll(k.factor, "_", " "), name)
		}
	}
	return ""
}

// lacks says why a recorded cell has no value of a metric; "" where it has one.
func (r *Results) lacks(s summary.Cell, metric string) string {
	switch {
	case s.OK == 0 && s.Unsupported != "":
		return unsupportedHere + s.Unsupported
	case r.userSpace(s.Cell.Network) != "":
		return unsupportedHere + r.userSpace(s.Cell.Network)
	case s.OK == 0 && s.Failed > 0:
		return fmt.Sprintf("all %d samples failed: %s", s.Failed, s.Reasons[0].Reason)
	case s.OK == 0:
		return "nothing was measured of it"
	case len(r.Untaken[s.Cell.Profile]) > 0:
		return "profile " + s.Cell.Profile + notInForce + strings.Join(r.Untaken[s.Cell.Profile], "; ")
	case r.backgroundShort(s.Cell) != "":
		return unsupportedHere + r.backgroundShort(s.Cell)
	case r.Collector.Values(metric, s.Cell).N > 0:
		return ""
	}
	if why := r.absentProbe(metric); why != "" {
		return fmt.Sprintf("no sample has %s (%s)", metric, why)
	}
	return fmt.Sprintf("no sample has %s", metric)
}

// backgroundShort says that a cell's background streams brought less than the study's. Then path
// or CPUs were full, and how these divide themselves is what the cell shows.
func (r *Results) backgroundShort(c result.Cell) string {
	got := r.Collector.Values("background_throughput_bits_per_second", c)
	if c.BackgroundStreams == 0 || got.N == 0 {
		return ""
	}
	share, enough := workload.BackgroundShare(c.BackgroundStreams, got.Mean)
	if enough {
		return ""
	}
	return fmt.Sprintf("the background streams brought %.0f %% of what they ask for: the path or this machine's CPUs are full", 100*share)
}

// userSpace is UserSpace of a network in the recorded environment.
func (r *Results) userSpace(network string) string {
	if r.Environment == nil {
		return ""
	}
	return UserSpace(network, r.Environment.Networks[network])
}

// UserSpace says why samples of a network say nothing about the published one: its packets
// pass a program on this machine, and those passed the kernel. "" where these do as well.
func UserSpace(network string, facts result.NetworkFacts) string {
	if !facts.InUserSpace() {
		return ""
	}
	return fmt.Sprintf("packets of %s pass %s, and those of the published one passed the kernel", network, facts.Datapath)
}

// absentProbe is what the environment says of the probe that a metric comes from: the
// CPU's counters are no reason for a metric that needs none.
func (r *Results) absentProbe(metric string) string {
	if r.Environment == nil {
		return ""
	}
	sign := "probe "
	switch {
	case strings.HasPrefix(metric, "cycles") || strings.HasPrefix(metric, "instructions"):
		sign = "probe counters"
	case strings.Contains(metric, "_component_seconds"):
		sign = "probe stacks"
	case strings.HasPrefix(metric, "netfilter_"):
		sign = "probe netfilter"
	case strings.HasPrefix(metric, "cpu_"):
		sign = "probe cpu"
	case strings.HasPrefix(metric, "own_cpu"):
		sign = "probe process"
	}
	said := slices.DeleteFunc(slices.Clone(r.Environment.Absent), func(s string) bool { return !strings.HasPrefix(s, sign) })
	return strings.Join(said, "; ")
}

// metricOf is the metric that a claim or table means in a cell.
func metricOf(name string, s summary.Cell) string {
	if name == primaryMetric {
		return s.Primary
	}
	return name
}

// lowerIsBetter tells which way a metric is better; a metric that no list has
// is better when higher.
func lowerIsBetter(metric string) bool {
	m, ok := unit.FindMetric(metric)
	if ok {
		return m.Better == unit.Lower
	}
	return slices.ContainsFunc(slices.Concat(dataset.Derived(), unit.NodeMetrics()), func(d unit.Metric) bool { return d.Name == metric && d.Better == unit.Lower })
}
