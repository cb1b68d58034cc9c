package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/stat"
)

// goals is the answer in short: for each of bandwidth, latency and CPU cost the
// networks in their order, and a sentence.
func goals(d *document) []block {
	if len(d.Analysis.Goals) == 0 {
		return nil
	}
	var items []string
	for _, g := range d.Analysis.Goals {
		items = append(items, goalName(g.Goal)+": "+d.goalSentence(g))
		for _, l := range g.LeftOut {
			items = append(items, d.option(l.Option)+" has no place in "+goalName(g.Goal)+": "+l.Why)
		}
	}
	return []block{list(items), {Table: d.goalTable()}}
}

// goalName is a goal as a heading.
func goalName(g stat.Goal) string {
	switch g {
	case stat.Bandwidth:
		return "Bandwidth"
	case stat.Latency:
		return "Latency"
	case stat.CPU:
		return "CPU cost"
	}
	return clean(string(g))
}

// option names a network with its profile; the profile only where the report has
// several.
func (d *document) option(o stat.Option) string {
	if !d.severalProfiles() {
		return d.name(o.Network)
	}
	return d.name(o.Network) + " with " + o.Profile
}

// severalProfiles tells whether the goals have a profile to choose.
func (d *document) severalProfiles() bool {
	first := ""
	for _, g := range d.Analysis.Goals {
		for _, r := range g.Ranked {
			if first == "" {
				first = r.Profile
			}
			if r.Profile != first {
				return true
			}
		}
	}
	return false
}

// goalTable is options × goals: efficiency, or what is left of the first where
// there is no baseline, and the place.
func (d *document) goalTable() *table {
	t := &table{Caption: "Each goal over all that was measured of it", Columns: []column{{Head: "network"}}}
	var options []stat.Option
	var against []string
	for _, g := range d.Analysis.Goals {
		t.Columns = append(t.Columns, column{Head: goalName(g.Goal), Sub: count(len(g.Settings), "setting", "settings"), Number: true})
		for _, r := range g.Ranked {
			if !slices.Contains(options, r.Option) {
				options = append(options, r.Option)
			}
		}
		for _, l := range g.LeftOut {
			if !slices.Contains(options, l.Option) {
				options = append(options, l.Option)
			}
		}
		if g.Base == nil {
			against = append(against, goalName(g.Goal))
		}
	}
	for _, o := range options {
		row := []cell{nameOf(d.option(o), ofNetwork(o.Network, o.Cluster))}
		for _, g := range d.Analysis.Goals {
			row = append(row, goalCell(g, o))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Legend = len(against) < len(d.Analysis.Goals)
	if t.Legend {
		t.Notes = append(t.Notes, "100 % is the bare network (host), less is a cost; a span of places (1–3) is shared.")
	}
	if len(against) > 0 {
		t.Notes = append(t.Notes, and(against)+": no baseline; 100 % is the first.")
	}
	return t
}

func goalCell(g stat.GoalRanking, o stat.Option) cell {
	for _, r := range g.Ranked {
		if r.Option != o {
			continue
		}
		c := cell{Rank: places(stat.Ranked{Rank: r.Rank, RankTo: r.RankTo})}
		switch {
		case len(g.Ranked) < 2:
			c.Rank = ""
		case g.LinkBound:
			c.Rank = linkRank
		}
		switch e := shownGoal(g, r); {
		case e != nil:
			c.Text, c.Value, c.Shade = ratio(*e), &e.Value, shadeOf(e.Value)
		case g.Base == nil && r.AgainstFirst == nil:
			c.Text = "100 %"
		default:
			c.Text = "no block in common"
		}
		return c
	}
	return text("not ranked")
}

// shownGoal is the figure of a place: against the base, or else the first.
func shownGoal(g stat.GoalRanking, r stat.GoalRanked) *stat.Estimate {
	if g.Base != nil {
		return r.Efficiency
	}
	return r.AgainstFirst
}

// goalSentence says who leads, who is last, and who cannot be told apart.
func (d *document) goalSentence(g stat.GoalRanking) string {
	switch {
	case len(g.Ranked) == 0:
		return "no network was measured in every setting."
	case len(g.Ranked) == 1:
		return "only " + d.option(g.Ranked[0].Option) + d.goalFigure(g, g.Ranked[0]) + ": nothing to rank."
	case g.LinkBound:
		return "link-bound, cannot rank: all of them fill the link."
	}
	var first []string
	for i, r := range g.Ranked {
		if r.Rank != 1 {
			continue
		}
		name := d.option(r.Option)
		if i == 0 {
			name += d.goalFigure(g, r)
		}
		first = append(first, name)
	}
	last := g.Ranked[len(g.Ranked)-1]
	s := ""
	switch {
	case len(first) == len(g.Ranked):
		return "none can be told from the best: " + fewNames(first) + "."
	case len(first) == 1:
		s = first[0] + " is first"
	default:
		s = fewNames(first) + " share the first place"
	}
	if last.Rank == len(g.Ranked) {
		s += "; " + d.option(last.Option) + " is last" + d.goalFigure(g, last)
	}
	return s + "."
}

// goalFigure is a place's efficiency in brackets; "" where there is none.
func (d *document) goalFigure(g stat.GoalRanking, r stat.GoalRanked) string {
	if e := shownGoal(g, r); e != nil {
		return " (" + ratio(*e) + ")"
	}
	return ""
}

// fewNames names the first two, and counts the rest.
func fewNames(names []string) string {
	if len(names) > 3 {
		names = append(slices.Clone(names[:2]), fmt.Sprintf("%d more", len(names)-2))
	}
	return and(names)
}

// absentGoals says which of the goals nothing was measured of.
func (d *document) absentGoals() []string {
	cure := map[stat.Goal]string{
		stat.Bandwidth: "not measured; add tcp_stream to the workloads.",
		stat.Latency:   "not measured; add tcp_rr to the workloads.",
		stat.CPU:       "not measured; cnibench doctor says which probes work here.",
	}
	var out []string
	for _, want := range stat.Goals() {
		if want == stat.Balanced || slices.ContainsFunc(d.Analysis.Goals, func(g stat.GoalRanking) bool { return g.Goal == want }) {
			continue
		}
		out = append(out, goalName(want)+": "+cure[want])
	}
	return out
}

// warningCounts says how many doubts there are, by their names.
func (d *document) warningCounts() string {
	var parts []string
	for _, w := range d.Analysis.Warnings {
		s := string(w.Code)
		if len(w.Cells) > 0 {
			s += " (" + count(len(w.Cells), "cell", "cells") + ")"
		}
		parts = append(parts, s)
	}
	if n := len(d.changed()); n > 0 {
		parts = append(parts, fmt.Sprintf("settings changed (%d)", n))
	}
	if s := d.sampleWarnings(); len(s) > 0 {
		parts = append(parts, fmt.Sprintf("remarks of samples (%d)", len(s)))
	}
	if len(parts) == 0 {
		return ""
	}
	return count(len(parts), "warning", "warnings") + ": " + strings.Join(parts, ", ") + "."
}

// lackCounts says how many cells lack something, by state.
func (d *document) lackCounts() string {
	n := map[string]int{}
	for _, l := range d.lacks() {
		n[l.state] += len(l.cells)
	}
	var parts []string
	for _, state := range sortedKeys(n) {
		parts = append(parts, count(n[state], "cell", "cells")+" "+state)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "."
}
