package report

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// cpu is, for each traffic, a table of costs for each kind of work that was
// measured, and one of the cores that the rates of links would take.
func cpu(d *document) []block {
	out := d.perTraffic(func(g *group, t result.Cell) []block {
		rows := d.entries(g, t)
		var own []block
		if c := modesChart(g, t, rows); c != nil {
			own = append(own, drawing(c))
		}
		for _, w := range costsByWork() {
			own = append(own, tableOf(g.of(t), d.costTable(rows, t, w))...)
		}
		return append(own, tableOf(g.of(t), coresTable(rows, t))...)
	}, "CPU time is that of the machines of both ends: user, system, irq and softirq, less what they did while nothing was measured. "+
		"Own CPU time is that of the two ends' processes, of those that carry their packets in user space, and of ksoftirqd alone: it does not see what others do on the machine, nor the softirqs of a real device. "+
		"Instructions and cycles are those of the machines, in user space and kernel, less the idle ones. "+
		"A segment is the received bytes over the MSS: TCP's packets are not counted. "+
		"An efficiency below 100 % costs more than the bare network.")
	out = d.orMissing("No CPU cost was measured: it takes the probe cpu, and traffic that was measured.", out)
	if len(out) > 0 && d.Environment != nil && len(d.Environment.Absent) > 0 {
		out = append(out, para("Not measured here:"), list(d.Environment.Absent))
	}
	return out
}

// tableOf is a table about some factors, if there is one.
func tableOf(of *result.Cell, t *table) []block {
	if t == nil {
		return nil
	}
	t.Of = of
	return []block{{Table: t}}
}

// costShown is a derived metric as the report shows it: times factor, under a
// name of its own where that is not 1.
type costShown struct {
	unit.Metric
	factor float64
}

// workCosts are the costs by one kind of work.
type workCosts struct {
	name  string
	costs []costShown
}

// costsByWork sorts the derived metrics by what they are divided by. CPU time is
// shown for amounts that people can picture.
func costsByWork() []workCosts {
	var out []workCosts
	for _, m := range stat.Derived() {
		name := m.Name[strings.LastIndex(m.Name, "_per_")+len("_per_"):]
		if len(out) == 0 || out[len(out)-1].name != name {
			out = append(out, workCosts{name: name})
		}
		c := costShown{m, 1}
		if strings.HasPrefix(m.Unit, "s/") {
			switch name {
			case "byte":
				c = costShown{unit.Metric{Name: m.Name, Label: strings.TrimSuffix(m.Label, "byte") + "GB", Unit: "s", Better: m.Better}, 1e9}
			case "transaction":
				c = costShown{unit.Metric{Name: m.Name, Label: strings.TrimSuffix(m.Label, "transaction") + "1,000 transactions", Unit: "s", Better: m.Better}, 1000}
			}
		}
		w := &out[len(out)-1]
		w.costs = append(w.costs, c)
	}
	return out
}

// costSummary is networks × traffics with one cost each: instructions, or CPU
// time where they were not counted, by the work that the traffic is told in. It
// is nil where no cost was measured.
func (d *document) costSummary(g *group) *table {
	tab := &table{Caption: "CPU cost, both ends together; more is in the full report", Columns: []column{{Head: "network"}}}
	rows := map[string][]cell{}
	var names []string
	for _, t := range g.traffics {
		entries := d.entries(g, t)
		c, ok := mainCost(entries)
		if !ok {
			continue
		}
		tab.Columns = append(tab.Columns, column{Head: t.Traffic(), Sub: c.Label, Number: true})
		for _, r := range entries {
			if rows[r.name] == nil {
				names, rows[r.name] = append(names, r.name), []cell{r.cell()}
			}
			row := padded(rows[r.name], len(tab.Columns)-1)
			if e, ok := absoluteOf(r.summary, c.Name); ok {
				row = append(row, cell{Text: c.Format(c.factor*e.Value, c.factor*halfwidth(e)), Value: &e.Value})
			}
			rows[r.name] = row
		}
	}
	if len(tab.Columns) == 1 {
		return nil
	}
	for _, n := range names {
		tab.Rows = append(tab.Rows, padded(rows[n], len(tab.Columns)))
	}
	return tab
}

// mainCost is the cost that tells most about a traffic among those measured.
func mainCost(rows []entry) (costShown, bool) {
	for _, work := range []string{"transaction", "packet", "byte"} {
		for _, cost := range []string{"instructions", "own_cpu_seconds", "cpu_seconds"} {
			for _, w := range costsByWork() {
				for _, c := range w.costs {
					has := func(r entry) bool { _, ok := absoluteOf(r.summary, c.Name); return ok }
					if c.Name == cost+"_per_"+work && slices.ContainsFunc(rows, has) {
						return c, true
					}
				}
			}
		}
	}
	return costShown{}, false
}

func padded(row []cell, columns int) []cell {
	for len(row) < columns {
		row = append(row, text("not measured"))
	}
	return row
}

// costTable is networks × costs, nil where none was measured.
func (d *document) costTable(rows []entry, t result.Cell, w workCosts) *table {
	tab := &table{Caption: t.Traffic() + ": CPU cost per " + w.name, Columns: []column{{Head: "network"}}}
	for _, r := range rows {
		tab.Rows = append(tab.Rows, []cell{r.cell()})
	}
	for _, c := range w.costs {
		has := func(r entry) bool { _, ok := absoluteOf(r.summary, c.Name); return ok }
		if !slices.ContainsFunc(rows, has) {
			continue
		}
		tab.Columns = append(tab.Columns, column{Head: c.Label, Number: true})
		for i, r := range rows {
			e, ok := absoluteOf(r.summary, c.Name)
			if !ok {
				tab.Rows[i] = append(tab.Rows[i], text("not measured"))
				continue
			}
			tab.Rows[i] = append(tab.Rows[i], cell{Text: c.Format(c.factor*e.Value, c.factor*halfwidth(e)), Value: &e.Value})
		}
		d.addEfficiency(tab, rows, c.Metric)
	}
	if len(tab.Columns) == 1 {
		return nil
	}
	return tab
}

// coresTable is networks × the rates of links, nil without any CPU time per byte.
func coresTable(rows []entry, t result.Cell) *table {
	tab := &table{Caption: t.Traffic() + ": cores needed", Columns: []column{{Head: "network"}}, Notes: []string{
		"Both ends together, at a rate of received payload. Extrapolated from CPU time per byte (cycles per byte over the cycles of a busy second) with these messages: the cost is taken to grow with the rate, offloads, clock and caches to stay as they were, and the work to spread over cores without a loss.",
	}}
	for _, r := range rows {
		row := []cell{r.cell()}
		for i, at := range r.summary.CoresAt {
			if len(tab.Columns) < i+2 {
				tab.Columns = append(tab.Columns, column{Head: "at " + unit.Round(at.BitsPerSecond, "bit/s"), Number: true})
			}
			row = append(row, cell{Text: unit.Estimate(at.Cores.Value, halfwidth(at.Cores), ""), Value: &at.Cores.Value})
		}
		tab.Rows = append(tab.Rows, row)
	}
	if len(tab.Columns) == 1 {
		return nil
	}
	for i, row := range tab.Rows {
		tab.Rows[i] = padded(row, len(tab.Columns))
	}
	return tab
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
