package report

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

func nan() float64 { return math.NaN() }

// step is one step of the colour scale of efficiency: from Least on.
type step struct {
	Step  int
	Least float64
	Text  string
}

// steps is the colour scale, the lowest first. It is fixed, so that a colour
// means the same in every report.
func steps() []step {
	return []step{
		{1, math.Inf(-1), "below 25 %"},
		{2, 0.25, "25 %"},
		{3, 0.50, "50 %"},
		{4, 0.70, "70 %"},
		{5, 0.80, "80 %"},
		{6, 0.90, "90 %"},
		{7, 0.95, "95 %"},
		{8, 0.98, "98 %"},
		{9, 1.02, "102 % and more"},
	}
}

func shadeOf(efficiency float64) int {
	shade := 0
	for _, s := range steps() {
		if efficiency >= s.Least {
			shade = s.Step
		}
	}
	return shade
}

// efficiency is one table per group: networks × traffics. A traffic without a
// baseline shows its absolute values.
func efficiency(d *document) []block {
	var out []block
	for _, g := range d.groups {
		out = append(out, block{Table: d.efficiencyTable(g)})
	}
	return out
}

func (d *document) efficiencyTable(g *group) *table {
	t := &table{Caption: g.title(), Columns: []column{{Head: "network"}}, Of: g.of(result.Cell{})}
	relative, ranked := false, false
	for _, traffic := range g.traffics {
		m, known := g.primary(traffic)
		c := column{Head: traffic.Traffic(), Number: true, Of: g.of(traffic)}
		if known {
			c.Sub = m.Label
		}
		t.Columns = append(t.Columns, c)
		relative = relative || g.hasEfficiency(traffic)
	}
	for _, n := range g.networks {
		row := []cell{nameOf(d.name(n), ofNetwork(n, g.clusters[n]))}
		for _, traffic := range g.traffics {
			c := d.efficiencyCell(g, n, traffic)
			ranked = ranked || (c.Rank != "" && c.Rank != linkRank)
			row = append(row, c)
		}
		t.Rows = append(t.Rows, row)
	}
	if t.Legend = relative; relative {
		t.Drawn = drawnHeat
	}
	for _, cluster := range g.baseClusters() {
		name := hostOf(cluster) + " (baseline)"
		if relative {
			name = hostOf(cluster) + " = 100 %"
		}
		t.Rows = append(t.Rows, d.baselineRow(g, cluster, name))
	}
	if ranked {
		t.Notes = append(t.Notes, "Behind a figure: its rank; 1–3 means 1st, 2nd or 3rd: the networks are tied.")
	}
	return t
}

func (d *document) efficiencyCell(g *group, network string, traffic result.Cell) cell {
	s, ok := g.cell(network, traffic)
	switch {
	case !ok:
		return text("")
	case state(s) != measured:
		return text(state(s))
	case s.Efficiency != nil:
		e := *s.Efficiency
		c := cell{Text: ratio(e), Value: &e.Value, Shade: shadeOf(e.Value), Rank: g.rank(network, traffic)}
		if _, _, ok := e.Interval(); !ok {
			c.Text += fmt.Sprintf(" (n=%d)", e.N)
		}
		return c
	case g.hasEfficiency(traffic):
		return text("no baseline")
	}
	return absoluteCell(s, s.Primary)
}

// linkRank stands for a place where all fill the link.
const linkRank = "link"

// rank is the place of a network among its like; linkRank says that all fill the
// link and have no places.
func (g *group) rank(network string, traffic result.Cell) string {
	for _, r := range g.rankings[traffic] {
		if len(r.Ranked) < 2 {
			continue
		}
		if r.LinkBound {
			return linkRank
		}
		for _, n := range r.Ranked {
			if n.Network == network {
				return places(n)
			}
		}
	}
	return ""
}

// baselineRow holds the baseline's absolute values, which are the 100 %.
func (d *document) baselineRow(g *group, cluster, name string) []cell {
	row := []cell{nameOf(name, ofNetwork(result.HostNetwork, cluster))}
	for _, t := range g.traffics {
		b, ok := g.baselines[inCluster(t, cluster)]
		switch {
		case !ok:
			row = append(row, text("none"))
		case state(b) != measured:
			row = append(row, text(state(b)))
		default:
			row = append(row, absoluteCell(b, b.Primary))
		}
	}
	return row
}

// absoluteCell is a metric's value in its own unit.
func absoluteCell(s stat.CellSummary, metric string) cell {
	e, ok := s.Absolute[metric]
	if !ok {
		return text("")
	}
	m, _ := findMetric(metric)
	return cell{Text: m.Format(e.Value, halfwidth(e)), Value: &e.Value}
}
