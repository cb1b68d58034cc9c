package section

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// absolute is, for each traffic of each group, the metric that it is judged by
// with its interval, and a table of what else was measured.
func absolute(d *report.Document) []page.Element {
	return perTraffic(d, func(g *report.Group, t result.Cell) []page.Element {
		m, ok := g.Primary(t)
		if !ok {
			return nil
		}
		out := []page.Element{{Table: intervals(d, g, t, m, t.Traffic()+": "+m.Label, report.AbsoluteOf)}}
		if rest := others(d, g, t, m); rest != nil {
			rest.Of = g.Of(t)
			out = append(out, page.Element{Table: rest})
		}
		return out
	}, "Each figure is the median over blocks. The figure after ± is half the width of its interval.")
}

// intervals is a table of one metric: value, interval, the interval drawn, and
// the number of blocks.
func intervals(d *report.Document, g *report.Group, t result.Cell, m unit.Metric, caption string, find report.EstimateOf) *page.Table {
	tab := &page.Table{Caption: caption, Columns: []page.Column{{Head: "network"}, {Head: m.Label, Number: true}, {Head: "interval", Number: true}, {Head: "drawn from 0"}, {Head: "blocks", Number: true}},
		Of: g.Of(t), Drawn: page.DrawnIntervals}
	most := 0.0
	rows := d.Entries(g, t)
	for _, r := range rows {
		if e, ok := find(r.Summary, m.Name); ok {
			most = max(most, e.Value)
			if _, high, ok := e.Interval(); ok {
				most = max(most, high)
			}
		}
	}
	for _, r := range rows {
		e, ok := find(r.Summary, m.Name)
		if !ok {
			tab.Rows = append(tab.Rows, []page.Field{rowName(r), page.Text("not measured"), page.Text(""), page.Text(""), page.Text("")})
			continue
		}
		tab.Rows = append(tab.Rows, []page.Field{
			rowName(r), {Text: m.Format(e.Value, report.Halfwidth(e)), Value: &e.Value}, intervalField(m, e), barField(m, e, most),
			page.Text(fmt.Sprint(e.N)),
		})
	}
	return tab
}

func intervalField(m unit.Metric, e estimate.Estimate) page.Field {
	if low, high, ok := e.Interval(); ok {
		return page.Text(m.FormatInterval(low, high))
	}
	if e.Needed > 0 {
		return page.Text(fmt.Sprintf("takes %d blocks", e.Needed))
	}
	return page.Text("none")
}

func barField(m unit.Metric, e estimate.Estimate, most float64) page.Field {
	if most <= 0 {
		return page.Text("")
	}
	b := &page.Bar{Low: e.Value / most, Mid: e.Value / most, High: e.Value / most, Label: m.Format(e.Value, report.Halfwidth(e))}
	if low, high, ok := e.Interval(); ok {
		b.Low, b.High = low/most, high/most
	}
	return page.Field{Bar: b}
}

// others is a table of the remaining metrics of a traffic, without latency
// percentiles and CPU costs, which have sections of their own.
func others(d *report.Document, g *report.Group, t result.Cell, primary unit.Metric) *page.Table {
	rows := d.Entries(g, t)
	shown := measuredBy(rows, unit.Metrics(), func(m unit.Metric) bool {
		return m.Name != primary.Name && !strings.HasPrefix(m.Name, "latency_")
	}, report.AbsoluteOf)
	if len(shown) == 0 {
		return nil
	}
	return metricTable(d, rows, shown, t.Traffic()+": what else was measured", report.AbsoluteOf)
}
