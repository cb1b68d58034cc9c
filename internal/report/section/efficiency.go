package section

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// efficiency is one table per group: networks × traffics. A traffic without a
// baseline shows its absolute values.
func efficiency(d *report.Document) []page.Element {
	var out []page.Element
	for _, g := range d.Groups {
		out = append(out, page.Element{Table: EfficiencyTable(d, g)})
	}
	return out
}

// EfficiencyTable is networks × traffics, with the baseline below.
func EfficiencyTable(d *report.Document, g *report.Group) *page.Table {
	t := &page.Table{Caption: g.Title(), Columns: []page.Column{{Head: "network"}}, Of: g.Of(result.Cell{})}
	relative, ranked := false, false
	for _, traffic := range g.Traffics {
		m, known := g.Primary(traffic)
		c := page.Column{Head: traffic.Traffic(), Number: true, Of: g.Of(traffic)}
		if known {
			c.Sub = m.Label
		}
		t.Columns = append(t.Columns, c)
		relative = relative || g.HasEfficiency(traffic)
	}
	for _, n := range g.Networks {
		row := []page.Field{page.NameOf(d.Name(n), report.OfNetwork(n, g.Clusters[n]))}
		for _, traffic := range g.Traffics {
			c := efficiencyField(d, g, n, traffic)
			ranked = ranked || (c.Rank != "" && c.Rank != linkRank)
			row = append(row, c)
		}
		t.Rows = append(t.Rows, row)
	}
	if t.Legend = relative; relative {
		t.Drawn = page.DrawnHeat
	}
	for _, cluster := range g.BaseClusters() {
		name := report.HostOf(cluster) + " (baseline)"
		if relative {
			name = report.HostOf(cluster) + " = 100 %"
		}
		t.Rows = append(t.Rows, baselineRow(d, g, cluster, name))
	}
	if ranked {
		t.Notes = append(t.Notes, "Behind a figure: its rank; 1st–3rd means 1st, 2nd or 3rd: the networks are tied.")
	}
	return t
}

func efficiencyField(d *report.Document, g *report.Group, network string, traffic result.Cell) page.Field {
	s, ok := g.Cell(network, traffic)
	switch {
	case !ok:
		return page.Text("")
	case report.StateOf(s) != report.StateMeasured:
		return page.Text(report.StateOf(s))
	case s.Efficiency != nil:
		e := *s.Efficiency
		c := page.Field{Text: report.Ratio(e), Value: &e.Value, Shade: page.ShadeOf(e.Value), Rank: rankIn(g, network, traffic)}
		if _, _, ok := e.Interval(); !ok {
			c.Text += fmt.Sprintf(" (n=%d)", e.N)
		}
		return c
	case g.HasEfficiency(traffic):
		return page.Text("no baseline")
	}
	return absoluteField(s, s.Primary)
}

// linkRank replaces the rank where all networks fill the link.
const linkRank = "link"

// rankIn is the rank of a network among those of its group; linkRank where all fill the
// link and cannot be ranked.
func rankIn(g *report.Group, network string, traffic result.Cell) string {
	for _, r := range g.Rankings[traffic] {
		if len(r.Ranked) < 2 {
			continue
		}
		if r.LinkBound {
			return linkRank
		}
		for _, n := range r.Ranked {
			if n.Network == network {
				return ranks(n.Rank, n.RankTo)
			}
		}
	}
	return ""
}

// baselineRow holds the baseline's absolute values, which are the 100 %.
func baselineRow(d *report.Document, g *report.Group, cluster, name string) []page.Field {
	row := []page.Field{page.NameOf(name, report.OfNetwork(result.HostNetwork, cluster))}
	for _, t := range g.Traffics {
		b, ok := g.Baselines[report.InCluster(t, cluster)]
		switch {
		case !ok:
			row = append(row, page.Text("none"))
		case report.StateOf(b) != report.StateMeasured:
			row = append(row, page.Text(report.StateOf(b)))
		default:
			row = append(row, absoluteField(b, b.Primary))
		}
	}
	return row
}

// absoluteField is a metric's value in its own unit.
func absoluteField(s summary.Cell, metric string) page.Field {
	e, ok := s.Absolute[metric]
	if !ok {
		return page.Text("")
	}
	m, _ := report.FindMetric(metric)
	return page.Field{Text: m.Format(e.Value, report.Halfwidth(e)), Value: &e.Value}
}
