package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// absolute is, for each traffic of each group, the metric that it is judged by
// with its interval, and a table of what else was measured.
func absolute(d *document) []block {
	return d.perTraffic(func(g *group, t result.Cell) []block {
		m, ok := g.primary(t)
		if !ok {
			return nil
		}
		out := []block{{Table: d.intervals(g, t, m, t.Traffic()+": "+m.Label, absoluteOf)}}
		if rest := d.others(g, t, m); rest != nil {
			rest.Of = g.of(t)
			out = append(out, block{Table: rest})
		}
		return out
	}, "Each figure is the median over blocks. The figure after ± is half the width of its interval.")
}

// perTraffic gathers blocks for each traffic, under a heading for each group
// that has any. Above all of them stand words that hold for all.
func (d *document) perTraffic(build func(*group, result.Cell) []block, words string) []block {
	var out []block
	for _, g := range d.groups {
		var own []block
		for _, t := range g.traffics {
			own = append(own, build(g, t)...)
		}
		if len(own) > 0 {
			if len(out) == 0 {
				out = append(out, para(words))
			}
			out = append(append(out, headOf(g.title(), g.at("", result.Cell{}))), own...)
		}
	}
	return out
}

// estimateOf finds a metric's estimate in a summary.
type estimateOf func(stat.CellSummary, string) (stat.Estimate, bool)

func absoluteOf(s stat.CellSummary, metric string) (stat.Estimate, bool) {
	e, ok := s.Absolute[metric]
	return e, ok
}

// entry is a row: a network, or the baseline.
type entry struct {
	name    string
	summary stat.CellSummary
}

// cell names the row.
func (e entry) cell() cell { return nameOf(e.name, e.of()) }

// of is what the row is about.
func (e entry) of() result.Cell {
	return ofNetwork(e.summary.Cell.Network, e.summary.Cell.Cluster)
}

// entries are the networks of a traffic that have a value, the baseline first.
func (d *document) entries(g *group, t result.Cell) []entry {
	var out []entry
	for _, cluster := range g.baseClusters() {
		if b, ok := g.baselines[inCluster(t, cluster)]; ok && b.OK > 0 {
			out = append(out, entry{hostOf(cluster) + " (baseline)", b})
		}
	}
	for _, n := range g.networks {
		if s, ok := g.cell(n, t); ok && s.OK > 0 {
			out = append(out, entry{d.name(n), s})
		}
	}
	return out
}

// intervals is a table of one metric: value, interval, the interval drawn, and
// the number of blocks.
func (d *document) intervals(g *group, t result.Cell, m unit.Metric, caption string, find estimateOf) *table {
	tab := &table{Caption: caption, Columns: []column{{Head: "network"}, {Head: m.Label, Number: true}, {Head: "interval", Number: true}, {Head: "drawn from 0"}, {Head: "blocks", Number: true}},
		Of: g.of(t), Drawn: drawnIntervals}
	most := 0.0
	rows := d.entries(g, t)
	for _, r := range rows {
		if e, ok := find(r.summary, m.Name); ok {
			most = max(most, e.Value)
			if _, high, ok := e.Interval(); ok {
				most = max(most, high)
			}
		}
	}
	for _, r := range rows {
		e, ok := find(r.summary, m.Name)
		if !ok {
			tab.Rows = append(tab.Rows, []cell{r.cell(), text("not measured"), text(""), text(""), text("")})
			continue
		}
		tab.Rows = append(tab.Rows, []cell{
			r.cell(), {Text: m.Format(e.Value, halfwidth(e)), Value: &e.Value}, intervalCell(m, e), barCell(m, e, most),
			text(fmt.Sprint(e.N)),
		})
	}
	return tab
}

func intervalCell(m unit.Metric, e stat.Estimate) cell {
	if low, high, ok := e.Interval(); ok {
		return text(m.FormatInterval(low, high))
	}
	if e.Needed > 0 {
		return text(fmt.Sprintf("takes %d blocks", e.Needed))
	}
	return text("none")
}

func barCell(m unit.Metric, e stat.Estimate, most float64) cell {
	if most <= 0 {
		return text("")
	}
	b := &bar{Low: e.Value / most, Mid: e.Value / most, High: e.Value / most, Label: m.Format(e.Value, halfwidth(e))}
	if low, high, ok := e.Interval(); ok {
		b.Low, b.High = low/most, high/most
	}
	return cell{Bar: b}
}

// others is a table of the remaining metrics of a traffic, without latency
// percentiles and CPU costs, which have sections of their own.
func (d *document) others(g *group, t result.Cell, primary unit.Metric) *table {
	rows := d.entries(g, t)
	shown := measuredBy(rows, unit.Metrics(), func(m unit.Metric) bool {
		return m.Name != primary.Name && !strings.HasPrefix(m.Name, "latency_")
	}, absoluteOf)
	if len(shown) == 0 {
		return nil
	}
	return d.metricTable(rows, shown, t.Traffic()+": what else was measured", absoluteOf)
}

// measuredBy lists those of some metrics that are wanted and that any row has.
func measuredBy(rows []entry, of []unit.Metric, wanted func(unit.Metric) bool, find estimateOf) []unit.Metric {
	var out []unit.Metric
	for _, m := range of {
		has := func(r entry) bool { _, ok := find(r.summary, m.Name); return ok }
		if wanted(m) && slices.ContainsFunc(rows, has) {
			out = append(out, m)
		}
	}
	return out
}

// metricTable is networks × metrics.
func (d *document) metricTable(rows []entry, shown []unit.Metric, caption string, find estimateOf) *table {
	tab := &table{Caption: caption, Columns: []column{{Head: "network"}}}
	for _, m := range shown {
		tab.Columns = append(tab.Columns, column{Head: m.Label, Number: true})
	}
	for _, r := range rows {
		row := []cell{r.cell()}
		for _, m := range shown {
			if e, ok := find(r.summary, m.Name); ok {
				row = append(row, cell{Text: m.Format(e.Value, halfwidth(e)), Value: &e.Value})
			} else {
				row = append(row, text("not measured"))
			}
		}
		tab.Rows = append(tab.Rows, row)
	}
	return tab
}
