package rank

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// Goal is what a network is wanted for.
type Goal string

// The goals. Balanced is a question about the first three (see Recommend); it
// has no ranking of its own. HPC is the time of a parallel job (Question.Job).
const (
	Bandwidth Goal = "bandwidth"
	Latency   Goal = "latency"
	CPU       Goal = "cpu"
	Balanced  Goal = "balanced"
	HPC       Goal = "hpc"
)

// Goals lists what can be asked for.
func Goals() []Goal { return []Goal{Bandwidth, Latency, CPU, Balanced, HPC} }

// measuredGoals are the goals that metrics speak of.
func measuredGoals() []Goal { return []Goal{Bandwidth, Latency, CPU} }

// goalMetrics are the metrics that speak of a goal, the one to be taken first.
// Of latency it is the mean round trip: a percentile of several traffics would
// be a mean of percentiles.
func goalMetrics(g Goal, d *dataset.CellData) []string {
	switch g {
	case Bandwidth:
		if d.Primary == "throughput_bits_per_second" {
			return []string{d.Primary}
		}
	case Latency:
		return []string{"latency_mean_seconds", "latency_p50_seconds"}
	case CPU:
		var out []string
		for _, work := range []string{"transaction", "packet", "byte"} {
			for _, cost := range []string{"instructions", "own_cpu_seconds", "cpu_seconds"} {
				out = append(out, cost+"_per_"+work)
			}
		}
		return out
	}
	return nil
}

// Option is what can be chosen: a network with a profile.
type Option struct {
	Network string `json:"network"`
	Profile string `json:"profile"`
	// Cluster is the one that the network is of; absent where the testbed is none.
	Cluster string `json:"cluster,omitempty"`
}

func optionOf(c result.Cell) Option { return Option{c.Network, c.Profile, c.Cluster} }

func (o Option) compare(p Option) int {
	return cmp.Or(cmp.Compare(o.Network, p.Network), cmp.Compare(o.Profile, p.Profile), cmp.Compare(o.Cluster, p.Cluster))
}

// Setting is one of the situations that a goal is judged in.
type Setting struct {
	// Cell has every factor but network, profile and cluster.
	Cell result.Cell `json:"cell"`
	// Metric is what is judged.
	Metric string `json:"metric"`
}

// settingOf is the situation of a cell.
func settingOf(c result.Cell) result.Cell {
	c.Network, c.Profile, c.Cluster = "", "", ""
	return c
}

// GoalRanking orders networks and profiles for one goal, over all settings of a
// campaign that speak of it; each setting counts the same.
type GoalRanking struct {
	Goal     Goal      `json:"goal"`
	Settings []Setting `json:"settings"`
	// Base is what efficiencies are against: the bare network with this
	// profile, in each option's own cluster; nil where it was not measured in
	// every setting.
	Base *Option `json:"base,omitempty"`
	// Ranked, the best first; Pairs has every comparison.
	Ranked []GoalRanked `json:"ranked"`
	Pairs  []GoalPair   `json:"pairs,omitempty"`
	// LeftOut were not measured in every setting.
	LeftOut []LeftOut `json:"left_out,omitempty"`
	// LinkBound reports that all of them fill the link in every setting.
	LinkBound bool `json:"link_bound,omitempty"`

	implausible map[result.Cell]bool
	// given are the bare networks by cluster where they are no cells' series; nil: they are.
	given map[string]goalOption
}

// GoalRanked is a place in a GoalRanking.
type GoalRanked struct {
	Option
	// Rank and RankTo are the places that it may hold (see Ranked).
	Rank   int `json:"rank"`
	RankTo int `json:"rank_to"`
	// Efficiency is against the ranking's base, more is better; nil without one.
	Efficiency *estimate.Estimate `json:"efficiency,omitempty"`
	// AgainstFirst is against the first of the ranking, more is better; nil for
	// the first itself.
	AgainstFirst *estimate.Estimate `json:"against_first,omitempty"`
	LinkBound    bool               `json:"link_bound,omitempty"`
}

// GoalPair compares two options inside blocks.
type GoalPair struct {
	// Better has the better mean.
	Better Option `json:"better"`
	Worse  Option `json:"worse"`
	// Ratio is Better against Worse, at least 1.
	Ratio estimate.Estimate `json:"ratio"`
	// Low and High bound the ratio so that all pairs of the ranking are right
	// together with the confidence (Bonferroni); nil where there is no interval.
	Low  *float64 `json:"low_of_all,omitempty"`
	High *float64 `json:"high_of_all,omitempty"`
	// P, Adjusted and Significant are those of Pair; Why says why it was not tested.
	P           float64 `json:"p"`
	Adjusted    float64 `json:"adjusted"`
	Significant bool    `json:"significant"`
	Why         string  `json:"why,omitempty"`

	difference across
}

// LeftOut is an option that could not be ranked, and why.
type LeftOut struct {
	Option
	Why string `json:"why"`
}

// measuredOption is an option with the logs of what was measured of it.
type goalOption struct {
	Option
	logs      [][]estimate.Point // by setting, as goodness
	linkBound bool
}

// goal ranks what was measured for a goal in the wanted cells; an option with an
// implausible one is left out.
func goal(c *dataset.Dataset, g Goal, wanted func(result.Cell) bool, implausible map[result.Cell]bool) GoalRanking {
	out := GoalRanking{Goal: g, Ranked: []GoalRanked{}, implausible: implausible}
	byCell := map[result.Cell]*dataset.CellData{}
	var names []Option
	for _, d := range c.Cells {
		if d.Cell.IsBaseline() || result.IsLadderOnly(d.Cell.Network) || d.Cell.IsPair() || !wanted(d.Cell) {
			continue
		}
		byCell[d.Cell] = d
		if len(d.OK) > 0 {
			out.addSetting(d)
		}
		if o := optionOf(d.Cell); !slices.Contains(names, o) {
			names = append(names, o)
		}
	}
	slices.SortFunc(names, Option.compare)
	if len(out.Settings) == 0 {
		return out
	}
	var in []goalOption
	for _, o := range names {
		if why := out.lacks(o, byCell); why != "" {
			out.LeftOut = append(out.LeftOut, LeftOut{o, why})
			continue
		}
		in = append(in, measuredOption(c, o, out.Settings))
	}
	rankGoal(c, &out, in)
	return out
}

// addSetting notes that a cell speaks of the goal. Where networks differ in what
// was measured of them the metric that comes first counts.
func (r *GoalRanking) addSetting(d *dataset.CellData) {
	metrics := goalMetrics(r.Goal, d)
	at := slices.IndexFunc(metrics, func(m string) bool { return has(d, m) })
	if at < 0 {
		return
	}
	cell := settingOf(d.Cell)
	i := slices.IndexFunc(r.Settings, func(s Setting) bool { return s.Cell == cell })
	if i < 0 {
		r.Settings = append(r.Settings, Setting{cell, metrics[at]})
	} else if at < slices.Index(metrics, r.Settings[i].Metric) {
		r.Settings[i].Metric = metrics[at]
	}
}

// has reports whether any sample of the cell has a value of a metric above zero.
func has(d *dataset.CellData, metric string) bool {
	return slices.ContainsFunc(d.Series(metric), func(p estimate.Point) bool { return p.Value > 0 })
}

// lacks says in which settings an option was not measured; "" for none.
func (r *GoalRanking) lacks(o Option, byCell map[result.Cell]*dataset.CellData) string {
	var first string
	n := 0
	for _, s := range r.Settings {
		why := ""
		switch d := byCell[o.in(s.Cell)]; {
		case d == nil:
			why = "it is not in the campaign"
		case len(d.OK) == 0:
			why = dataset.NotMeasured(d)
		case r.implausible[d.Cell]:
			why = "it would be faster than the bare network, whose path it takes: something else than the network differed"
		case !has(d, s.Metric):
			why = "it has no " + s.Metric
		default:
			continue
		}
		if n++; n == 1 {
			first = s.Cell.Traffic() + ": " + why
		}
	}
	if n < 2 {
		return first
	}
	return fmt.Sprintf("%s; and %d more", first, n-1)
}

// in is the cell of an option in a setting; the baseline has a path of its own.
func (o Option) in(setting result.Cell) result.Cell {
	setting.Network, setting.Profile, setting.Cluster = o.Network, o.Profile, o.Cluster
	if o.Network == result.HostNetwork {
		return setting.Baseline()
	}
	return setting
}

// measuredOption gathers the logs of an option that lacks nothing; their blocks are
// numbered from 0 without gaps.
func measuredOption(c *dataset.Dataset, o Option, settings []Setting) goalOption {
	out := goalOption{Option: o, linkBound: true}
	for _, s := range settings {
		d := c.ByCell[o.in(s.Cell)]
		out.logs = append(out.logs, goodnessLogs(c, d, s.Metric))
		_, bound := c.LinkBound(d)
		out.linkBound = out.linkBound && bound
	}
	return out
}

// goodnessLogs are the logs of a metric by block, more is better; blocks are
// numbered from 0 without gaps.
func goodnessLogs(c *dataset.Dataset, d *dataset.CellData, metric string) []estimate.Point {
	ls := estimate.Logs(d.Series(metric), c.Better[metric])
	for i, p := range ls {
		ls[i].Block, _ = slices.BinarySearch(c.Blocks, p.Block)
	}
	return ls
}

// bases are the bare networks that the options are compared with, by cluster:
// with the profile that all have, or else with the node's own settings.
func bases(c *dataset.Dataset, in []goalOption, r *GoalRanking) (profile string, bases map[string]goalOption, ok bool) {
	profile = in[0].Profile
	for _, o := range in {
		if o.Profile != profile {
			profile = result.DefaultProfile
		}
	}
	settings := r.Settings
	if r.given != nil {
		return profile, r.given, !slices.ContainsFunc(in, func(o goalOption) bool { return r.given[o.Cluster].logs == nil })
	}
	bases = map[string]goalOption{}
	for _, with := range in {
		if _, have := bases[with.Cluster]; have {
			continue
		}
		o := Option{result.HostNetwork, profile, with.Cluster}
		for _, s := range settings {
			if d := c.ByCell[o.in(s.Cell)]; d == nil || !has(d, s.Metric) {
				return "", nil, false
			}
		}
		bases[with.Cluster] = measuredOption(c, o, settings)
	}
	return profile, bases, true
}

// String names the option; the profile only where it is not the node's own.
func (o Option) String() string {
	if o.Profile == "" || o.Profile == result.DefaultProfile {
		return o.Network
	}
	return strings.TrimSpace(o.Network + " with " + o.Profile)
}
