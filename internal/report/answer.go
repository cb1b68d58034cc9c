package report

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// answer says in a sentence or two per traffic which network leads, and which
// are tied.
func answer(d *document) []block {
	var out []block
	if d.Analysis.NullTest != nil {
		return nil // nothing is asked of the networks
	}
	if m := d.missing(); len(m) > 0 {
		out = append(out, list(m))
	}
	for _, g := range d.groups {
		var items block
		for _, t := range g.traffics {
			if s := d.sentence(g, t); s != "" {
				items.List = append(items.List, g.label(t)+": "+s)
				items.ListOf = append(items.ListOf, g.of(t))
			}
		}
		if len(items.List) > 0 {
			out = append(out, headOf(g.title(), g.at("", result.Cell{})), items)
		}
	}
	for _, p := range d.progress() {
		out = append(out, para(p))
	}
	return out
}

// missing says what this campaign does not have to give a full answer.
func (d *document) missing() []string {
	var out []string
	if len(d.Analysis.Cells) == 0 {
		return []string{"There are no records: nothing was measured. Start or resume the campaign with cnibench run."}
	}
	ok, baselines, networks := 0, 0, map[string]bool{}
	for _, s := range d.Analysis.Cells {
		if s.OK > 0 {
			ok++
			if s.Cell.IsBaseline() {
				baselines++
			} else {
				networks[s.Cell.Network] = true
			}
		}
	}
	switch {
	case ok == 0:
		out = append(out, "No cell could be measured: every sample failed or is unsupported; the reasons are below.")
	case baselines == 0 && d.planned(result.HostNetwork) > 0:
		out = append(out, "The bare network (host) has no sample yet, so there are only absolute values.")
	case baselines == 0:
		out = append(out, "The bare network (host) was not measured, so networks are compared with the first one only. Add host to the campaign's networks.")
	case len(networks) == 0 && len(d.Analysis.Factors) == 0:
		out = append(out, "Only the bare network (host) was measured, at one level of every factor: there is nothing to compare. Add a network, or a second profile, MTU or message size.")
	}
	if d.Environment == nil {
		out = append(out, "There is no environment.json: the run ended before its testbed was up.")
	} else if d.Environment.Finished.IsZero() {
		out = append(out, "The run did not finish. Resume it with cnibench run --resume.")
	}
	return out
}

// sentence is the answer for one traffic.
func (d *document) sentence(g *group, t result.Cell) string {
	rankings := g.rankings[t]
	if len(rankings) == 0 || len(rankings[0].Ranked) < 2 {
		return d.lone(g, t)
	}
	s := ""
	for _, r := range rankings {
		switch {
		case r.LinkBound:
			s += "All networks fill the link, so this metric cannot rank them" + d.linkLimit(g, t) + ". "
		case len(rankings) > 1:
			m, _ := findMetric(r.Metric)
			s += "By " + m.Label + ": " + d.order(g, t, r)
		default:
			s += d.order(g, t, r)
		}
	}
	return s
}

// lone is the answer where there is nothing to rank.
func (d *document) lone(g *group, t result.Cell) string {
	s, plain := "", []string{}
	for _, n := range g.networks {
		c, ok := g.cell(n, t)
		if !ok || c.OK == 0 {
			continue
		}
		figure := d.figure(c)
		if c.Efficiency != nil && !c.LinkBound && figure == givesOf(c) {
			if len(plain) > 0 {
				figure = ratio(*c.Efficiency) // of the same as the one before
			}
			plain = append(plain, d.name(n)+" "+figure)
			continue
		}
		s += d.name(n) + " " + figure + ". "
		if c.LinkBound {
			s += "It fills the link" + d.linkLimit(g, t) + ". "
		}
	}
	if len(plain) > 0 {
		s = strings.Join(plain, ", ") + ". " + s
	}
	return s
}

// givesOf is an efficiency in words.
func givesOf(c stat.CellSummary) string {
	return "gives " + ratio(*c.Efficiency) + " of the bare network"
}

// figure is the value that a network is judged by, in words.
func (d *document) figure(c stat.CellSummary) string {
	if c.Efficiency != nil {
		s := givesOf(c)
		if c.Efficiency.Value > 1 && c.Loss != nil && c.Loss.Value > 0 {
			s += ", with " + unit.Percent(c.Loss.Value, halfwidth(*c.Loss)) + " of the packets lost"
		}
		return s
	}
	e, ok := c.Absolute[c.Primary]
	if !ok {
		return "has no value for " + c.Primary
	}
	m, _ := findMetric(c.Primary)
	return "gives " + m.Format(e.Value, halfwidth(e))
}

// order says who leads, who is last, and who is tied.
func (d *document) order(g *group, t result.Cell, r stat.Ranking) string {
	var first, last []stat.Ranked
	var busy []string
	for _, n := range r.Ranked {
		if n.Rank == 1 {
			first = append(first, n)
		}
		if n.RankTo == len(r.Ranked) {
			last = append(last, n)
		}
		if n.CPUBound {
			busy = append(busy, d.name(n.Network))
		}
	}
	s := ""
	switch {
	case len(first) == len(r.Ranked):
		s = "All are tied: no significant difference. "
	case len(first) == 1:
		s = d.name(first[0].Network) + " is 1st: it " + d.rankedFigure(g, t, r, first[0]) + ". "
	case len(first) > 1:
		var names []string
		for _, n := range first {
			names = append(names, d.name(n.Network))
		}
		s = and(names) + " are tied for 1st; the first of them " + d.rankedFigure(g, t, r, first[0]) + ". "
	}
	if len(last) == 1 && len(r.Ranked) > 1 {
		s += d.name(last[0].Network) + " is last: it " + d.rankedFigure(g, t, r, last[0]) + ". "
	}
	if tied := d.tieWords(r); len(tied) > 0 {
		s += "Tied: " + strings.Join(tied, "; ") + ". "
	}
	if len(busy) > 0 {
		s += "A core was at least 95 % busy with " + and(busy) + ": the processor is the limit. "
	}
	return s
}

func (d *document) tieWords(r stat.Ranking) []string {
	var out []string
	for _, set := range ties(r) {
		out = append(out, and(d.names(set)))
	}
	return out
}

// rankedFigure is the figure of a ranked network: efficiency, where the
// ranking is by the metric that it is of.
func (d *document) rankedFigure(g *group, t result.Cell, r stat.Ranking, n stat.Ranked) string {
	c, ok := g.cell(n.Network, t)
	if ok && r.Metric == c.Primary {
		return d.figure(c)
	}
	m, _ := findMetric(r.Metric)
	return "takes " + m.Format(n.Value.Value, halfwidth(n.Value))
}

func (d *document) linkLimit(g *group, t result.Cell) string {
	for _, n := range g.networks {
		if c, ok := g.cell(n, t); ok && c.LinkLimit != nil {
			return " (limit " + unit.Value(*c.LinkLimit, "bit/s") + ")"
		}
	}
	return ""
}

// progress says which cells did not get to the target half-width, and how many
// more blocks that would take.
func (d *document) progress() []string {
	target := d.Campaign.Sampling.TargetRelativeHalfwidth
	if target <= 0 {
		return nil
	}
	var open, unknown, all int
	var most stat.CellSummary
	for _, s := range d.Analysis.Cells {
		if s.Cell.IsBaseline() || s.OK == 0 {
			continue
		}
		all++
		if s.Progress.Done {
			continue
		}
		open++
		if s.Progress.BlocksNeeded <= s.Progress.Blocks {
			unknown++
		} else if more(s) > more(most) {
			most = s
		}
	}
	if open == 0 {
		return nil
	}
	s := fmt.Sprintf("%d of %s missed the target of ±%g %%.", open, count(all, "cell", "cells"), 100*target)
	if more(most) > 0 {
		s += fmt.Sprintf(" %s, %s needs the most: about %s blocks (%d so far).", d.name(most.Cell.Network), most.Cell.Traffic(),
			unit.Rough(most.Progress.BlocksNeeded), most.Progress.Blocks)
	}
	if unknown > 0 {
		s += fmt.Sprintf(" The number that %s needs is not known yet.", count(unknown, "cell", "cells"))
	}
	raise := "max_blocks"
	if c := d.Campaign.Sampling; c.MaxSeconds > 0 && d.Tally.Blocks() < c.MaxBlocks {
		raise = "max_seconds"
	}
	return []string{s + " Raise sampling." + raise + ", or set a wider target."}
}

func more(s stat.CellSummary) int { return max(0, s.Progress.BlocksNeeded-s.Progress.Blocks) }
