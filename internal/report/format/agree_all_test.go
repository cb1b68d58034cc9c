package format

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/unit"
)

// checkRest holds what checkPage leaves: every other metric, every percentile and
// component, and what failed.
func checkRest(t *testing.T, s summary.Cell, row string, page figures, exacts map[[3]string]string) {
	t.Helper()
	caption := report.SituationOf(s.Cell).String() + "; " + s.Cell.Traffic() + ": "
	hold := func(table, column string, e estimate.Estimate, say func(estimate.Estimate) string) {
		t.Helper()
		key := [3]string{caption + table, row, column}
		if want := say(e); page[key] != want || exacts[key] != behind(e.Value) {
			t.Errorf("%v: page has %q (%s), JSON %s", key, page[key], exacts[key], want)
		}
	}
	for _, m := range unit.Metrics() {
		say := func(e estimate.Estimate) string { return m.Format(e.Value, report.Halfwidth(e)) }
		if strings.HasPrefix(m.Name, "latency_") {
			if e, ok := section.LatencyOf(s, m.Name); ok {
				hold("round-trip time", m.Label, e, say)
			}
			continue
		}
		if e, ok := s.Absolute[m.Name]; ok && m.Name != s.Primary {
			hold("what else was measured", m.Label, e, say)
		}
	}
	if a := s.Attribution; a != nil {
		p := section.PerWorkOf(a.Work)
		table := "CPU time per " + p.Name + " by component"
		hold(table, "total", a.Total, p.Say)
		for _, c := range unit.Components() {
			if _, shown := page[[3]string{caption + table, row, c.Label}]; shown {
				part, _ := a.Component(c.Name)
				hold(table, c.Label, part.Seconds, p.Say)
			}
		}
	}
}

// checkScreen compares the answer on one screen with the goals of the JSON: each
// network that the screen names has the figures and the ranks of every goal.
func checkScreen(t *testing.T, d *report.Document, r jsonReport, text string) {
	t.Helper()
	if len(r.Analysis.Goals) == 0 {
		return
	}
	lines := map[string]string{}
	for _, l := range strings.Split(text, "\n") {
		name, rest, ok := strings.Cut(l, "  ")
		if _, twice := lines[name]; ok && !twice {
			lines[name] = rest
		}
	}
	want := map[string][]string{}
	for _, g := range r.Analysis.Goals {
		for _, x := range g.Ranked {
			if x.Efficiency == nil {
				continue
			}
			name := d.Name(x.Network)
			want[name] = append(want[name], section.Change(g.Goal, *x.Efficiency))
		}
	}
	seen := 0
	for _, name := range slices.Sorted(maps.Keys(want)) {
		line, ok := lines[name]
		if !ok {
			continue // rows that have no room are counted on the screen
		}
		seen++
		for _, figure := range want[name] {
			if !strings.Contains(line, figure) {
				t.Errorf("%s: the screen has %q, the JSON %s", name, line, figure)
			}
		}
	}
	if seen == 0 && len(want) > 0 && !differInProfile(r) {
		t.Errorf("no network of the goals is on the screen: %s", text)
	}
}

// differInProfile tells that rows are of a network and a profile.
func differInProfile(r jsonReport) bool {
	profiles := map[string]bool{}
	for _, g := range r.Analysis.Goals {
		for _, x := range g.Ranked {
			profiles[x.Profile] = true
		}
	}
	return len(profiles) > 1
}

// checkTerminalCosts compares the costs of the long form with the JSON.
func checkTerminalCosts(t *testing.T, d *report.Document, r jsonReport, text string) {
	t.Helper()
	for _, g := range d.Groups {
		costs := section.CostSummary(d, g)
		if costs == nil {
			continue
		}
		_, rest, ok := strings.Cut(text, "\n"+g.Title()+"\n")
		_, rest, found := strings.Cut(rest, "\n"+costs.Caption+"\n")
		if !ok || !found {
			t.Errorf("%s: the terminal has no costs", g.Title())
			continue
		}
		rest, _, _ = strings.Cut(rest, "\n\n")
		for _, s := range r.Analysis.Cells {
			if s.OK == 0 || s.Cell.IsBaseline() || report.SituationOf(s.Cell) != g.Situation {
				continue
			}
			c, ok := section.MainCost(d.Entries(g, report.TrafficOf(s.Cell)))
			e, has := s.Absolute[c.Name]
			if !ok || !has {
				continue
			}
			at := strings.Index(rest, "\n"+d.Name(s.Cell.Network)+" ")
			if want := c.Format(c.Factor*e.Value, c.Factor*report.Halfwidth(e)); at < 0 || !strings.Contains(strings.SplitN(rest[at+1:], "\n", 2)[0], want) {
				t.Errorf("%s, %s %s: the terminal lacks %s of %s", g.Title(), s.Cell.Network, s.Cell.Traffic(), want, fmt.Sprintf("%.400q", rest))
			}
		}
	}
}
