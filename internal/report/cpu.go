package report

import (
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// cpu is a table of CPU costs for each traffic where CPU time was measured.
func cpu(d *document) []block {
	return d.perTraffic(func(g *group, t result.Cell) []block {
		rows := d.entries(g, t)
		shown := measuredBy(rows, stat.Derived(), func(unit.Metric) bool { return true }, absoluteOf)
		if len(shown) == 0 {
			return nil
		}
		tab := d.metricTable(rows, shown, t.Traffic()+": CPU cost", absoluteOf)
		for _, m := range shown {
			d.addEfficiency(tab, rows, m)
		}
		return []block{{Table: tab}}
	}, "CPU time is that of both ends: user, system, irq and softirq. An efficiency below 100 % costs more CPU than the bare network.")
}

// addEfficiency appends a column with the efficiency by a metric, where any
// row has it.
func (d *document) addEfficiency(tab *table, rows []entry, m unit.Metric) {
	if !slices.ContainsFunc(rows, func(r entry) bool { _, ok := r.summary.EfficiencyByMetric[m.Name]; return ok }) {
		return
	}
	tab.Columns = append(tab.Columns, column{Head: m.Label, Sub: "efficiency", Number: true})
	for i, r := range rows {
		c := text("")
		if e, ok := r.summary.EfficiencyByMetric[m.Name]; ok {
			c = cell{Text: ratio(e), Value: &e.Value, Shade: shadeOf(e.Value)}
		}
		tab.Rows[i] = append(tab.Rows[i], c)
	}
}
