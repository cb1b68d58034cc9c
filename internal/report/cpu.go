package report

import (
	"slices"

	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// cpu is a table of CPU costs for each traffic where CPU time was measured.
func cpu(d *document) []block {
	var out []block
	for _, g := range d.groups {
		for _, t := range g.traffics {
			rows := d.entries(g, t)
			var shown []unit.Metric
			for _, m := range stat.Derived() {
				if slices.ContainsFunc(rows, func(r entry) bool { _, ok := r.summary.Absolute[m.Name]; return ok }) {
					shown = append(shown, m)
				}
			}
			if len(shown) == 0 {
				continue
			}
			tab := d.metricTable(rows, shown, t.Traffic()+": CPU cost; "+g.title(), absoluteOf)
			for _, m := range shown {
				d.addEfficiency(tab, rows, m)
			}
			tab.Notes = []string{"CPU time is that of both ends: user, system, irq and softirq. An efficiency below 100 % costs more CPU than the bare network."}
			out = append(out, block{Table: tab})
		}
	}
	return out
}

// addEfficiency appends a column with the efficiency by a metric.
func (d *document) addEfficiency(tab *table, rows []entry, m unit.Metric) {
	tab.Columns = append(tab.Columns, column{Head: m.Label, Sub: "efficiency", Number: true})
	for i, r := range rows {
		c := text("")
		if e, ok := r.summary.EfficiencyByMetric[m.Name]; ok {
			c = cell{Text: ratio(e), Value: &e.Value, Shade: shadeOf(e.Value)}
		}
		tab.Rows[i] = append(tab.Rows[i], c)
	}
}
