package section

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/unit"
)

// answer says in a sentence or two per traffic which network leads, and which
// are tied.
func answer(d *report.Document) []page.Element {
	var out []page.Element
	if d.Analysis.NullTest != nil {
		return nil // nothing is asked of the networks
	}
	if m := Missing(d); len(m) > 0 {
		out = append(out, page.List(m))
	}
	for _, g := range d.Groups {
		var items page.Element
		for _, t := range g.Traffics {
			if s := Sentence(d, g, t); s != "" {
				items.List = append(items.List, label(g, t)+": "+s)
				items.ListOf = append(items.ListOf, g.Of(t))
			}
		}
		if len(items.List) > 0 {
			out = append(out, page.HeadOf(g.Title(), g.At("", result.Cell{})), items)
		}
	}
	for _, p := range Progress(d) {
		out = append(out, page.Para(p))
	}
	return out
}

// Missing says what this campaign does not have to give a full answer.
func Missing(d *report.Document) []string {
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
	case baselines == 0 && d.Planned(result.HostNetwork) > 0:
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

// Sentence is the answer for one traffic.
func Sentence(d *report.Document, g *report.Group, t result.Cell) string {
	rankings := g.Rankings[t]
	if len(rankings) == 0 || len(rankings[0].Ranked) < 2 {
		return lone(d, g, t)
	}
	s := ""
	for _, r := range rankings {
		switch {
		case r.LinkBound:
			s += "All networks fill the link, so this metric cannot rank them" + linkLimit(d, g, t) + ". "
		case len(rankings) > 1:
			m, _ := report.FindMetric(r.Metric)
			s += "By " + m.Label + ": " + order(d, g, t, r)
		default:
			s += order(d, g, t, r)
		}
	}
	return s
}

// lone is the answer where there is nothing to rank.
func lone(d *report.Document, g *report.Group, t result.Cell) string {
	s, plain := "", []string{}
	for _, n := range g.Networks {
		c, ok := g.Cell(n, t)
		if !ok || c.OK == 0 {
			continue
		}
		figure := figure(d, c)
		if c.Efficiency != nil && !c.LinkBound && figure == givesOf(c) {
			if len(plain) > 0 {
				figure = report.Ratio(*c.Efficiency) // of the same as the one before
			}
			plain = append(plain, d.Name(n)+" "+figure)
			continue
		}
		s += d.Name(n) + " " + figure + ". "
		if c.LinkBound {
			s += "It fills the link" + linkLimit(d, g, t) + ". "
		}
	}
	if len(plain) > 0 {
		s = strings.Join(plain, ", ") + ". " + s
	}
	return s
}

// givesOf is an efficiency in words.
func givesOf(c summary.Cell) string {
	return "gives " + report.Ratio(*c.Efficiency) + " of the bare network"
}

// figure is the value that a network is judged by, in words.
func figure(d *report.Document, c summary.Cell) string {
	if c.Efficiency != nil {
		s := givesOf(c)
		if c.Efficiency.Value > 1 && c.Loss != nil && c.Loss.Value > 0 {
			s += ", with " + unit.Percent(c.Loss.Value, report.Halfwidth(*c.Loss)) + " of the packets lost"
		}
		return s
	}
	e, ok := c.Absolute[c.Primary]
	if !ok {
		return "has no value for " + c.Primary
	}
	m, _ := report.FindMetric(c.Primary)
	return "gives " + m.Format(e.Value, report.Halfwidth(e))
}

// order says who leads, who is last, and who is tied.
func order(d *report.Document, g *report.Group, t result.Cell, r rank.Ranking) string {
	var first, last []rank.Ranked
	var busy []string
	for _, n := range r.Ranked {
		if n.Rank == 1 {
			first = append(first, n)
		}
		if n.RankTo == len(r.Ranked) {
			last = append(last, n)
		}
		if n.CPUBound {
			busy = append(busy, d.Name(n.Network))
		}
	}
	s := ""
	switch {
	case len(first) == len(r.Ranked):
		s = "All are tied: no significant difference. "
	case len(first) == 1:
		s = d.Name(first[0].Network) + " is 1st: it " + rankedFigure(d, g, t, r, first[0]) + ". "
	case len(first) > 1:
		var names []string
		for _, n := range first {
			names = append(names, d.Name(n.Network))
		}
		s = report.And(names) + " are tied for 1st; the first of them " + rankedFigure(d, g, t, r, first[0]) + ". "
	}
	if len(last) == 1 && len(r.Ranked) > 1 {
		s += d.Name(last[0].Network) + " is last: it " + rankedFigure(d, g, t, r, last[0]) + ". "
	}
	if tied := TieWords(d, r); len(tied) > 0 {
		s += "Tied: " + strings.Join(tied, "; ") + ". "
	}
	if len(busy) > 0 {
		s += "A core was at least 95 % busy with " + report.And(busy) + ": the processor is the limit. "
	}
	return s
}

// TieWords names each set of tied networks.
func TieWords(d *report.Document, r rank.Ranking) []string {
	var out []string
	for _, set := range report.Ties(r) {
		out = append(out, report.And(d.Names(set)))
	}
	return out
}

// rankedFigure is the figure of a ranked network: efficiency, where the
// ranking is by its metric.
func rankedFigure(d *report.Document, g *report.Group, t result.Cell, r rank.Ranking, n rank.Ranked) string {
	c, ok := g.Cell(n.Network, t)
	if ok && r.Metric == c.Primary {
		return figure(d, c)
	}
	m, _ := report.FindMetric(r.Metric)
	return "takes " + m.Format(n.Value.Value, report.Halfwidth(n.Value))
}

func linkLimit(d *report.Document, g *report.Group, t result.Cell) string {
	for _, n := range g.Networks {
		if c, ok := g.Cell(n, t); ok && c.LinkLimit != nil {
			return " (limit " + unit.Value(*c.LinkLimit, "bit/s") + ")"
		}
	}
	return ""
}

// Progress says which cells did not get to the target half-width, and how many
// more blocks that would take.
func Progress(d *report.Document) []string {
	target := d.Campaign.Sampling.TargetRelativeHalfwidth
	if target <= 0 {
		return nil
	}
	var open, unknown, all int
	var most summary.Cell
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
	s := fmt.Sprintf("%d of %s missed the target of ±%g %%.", open, report.Count(all, "cell", "cells"), 100*target)
	if more(most) > 0 {
		s += fmt.Sprintf(" %s, %s needs the most: about %s blocks (%d so far).", d.Name(most.Cell.Network), most.Cell.Traffic(),
			unit.Rough(most.Progress.BlocksNeeded), most.Progress.Blocks)
	}
	if unknown > 0 {
		s += fmt.Sprintf(" The number of blocks that is needed is not known yet for %s.", report.Count(unknown, "cell", "cells"))
	}
	raise := "max_blocks"
	if c := d.Campaign.Sampling; c.MaxSeconds > 0 && d.Tally.Blocks() < c.MaxBlocks {
		raise = "max_seconds"
	}
	return []string{s + " Raise sampling." + raise + ", or set a wider target."}
}

func more(s summary.Cell) int { return max(0, s.Progress.BlocksNeeded-s.Progress.Blocks) }

// label names a traffic and what it is judged by.
func label(g *report.Group, t result.Cell) string {
	if m, ok := g.Primary(t); ok {
		return t.Traffic() + ", " + m.Label
	}
	return t.Traffic()
}
