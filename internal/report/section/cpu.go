package section

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/unit"
)

// cpu is, for each traffic, a table of costs for each kind of work that was
// measured, and one of the cores that the rates of links would take.
func cpu(d *report.Document) []page.Element {
	out := perTraffic(d, func(g *report.Group, t result.Cell) []page.Element {
		rows := d.Entries(g, t)
		var own []page.Element
		if c := modesChart(g, t, rows); c != nil {
			own = append(own, page.Drawing(c))
		}
		for _, w := range CostsByWork() {
			own = append(own, tableOf(g.Of(t), costTable(d, rows, t, w))...)
		}
		return append(own, tableOf(g.Of(t), coresTable(rows, t))...)
	}, "CPU time is that of the machines of both ends: user, system, irq and softirq, less what they did while nothing was measured. "+
		"Own CPU time is that of the two ends' processes, of those that carry their packets in user space, and of ksoftirqd alone: it does not see what others do on the machine, nor the softirqs of a real device. "+
		"Instructions and cycles are those of the machines, in user space and kernel, less the idle ones. "+
		"A segment is the received bytes over the MSS: TCP's packets are not counted. "+
		"An efficiency below 100 % costs more than the bare network.")
	out = orMissing(d, "No CPU cost was measured: it takes the probe cpu, and traffic that was measured.", out)
	if len(out) > 0 && d.Environment != nil && len(d.Environment.Absent) > 0 {
		out = append(out, page.Para("Not measured here:"), page.List(d.Environment.Absent))
	}
	return out
}

// CostShown is a derived metric as the report shows it: times factor, under a
// name of its own where that is not 1.
type CostShown struct {
	unit.Metric
	Factor float64
}

// WorkCosts are the costs by one kind of work.
type WorkCosts struct {
	Name  string
	Costs []CostShown
}

// CostsByWork sorts the derived metrics by what they are divided by. CPU time is
// shown for amounts that people can picture.
func CostsByWork() []WorkCosts {
	var out []WorkCosts
	for _, m := range dataset.Derived() {
		name := m.Name[strings.LastIndex(m.Name, "_per_")+len("_per_"):]
		if len(out) == 0 || out[len(out)-1].Name != name {
			out = append(out, WorkCosts{Name: name})
		}
		c := CostShown{m, 1}
		if strings.HasPrefix(m.Unit, "s/") {
			switch name {
			case "byte":
				c = CostShown{unit.Metric{Name: m.Name, Label: strings.TrimSuffix(m.Label, "byte") + "GB", Unit: "s", Better: m.Better}, 1e9}
			case "transaction":
				c = CostShown{unit.Metric{Name: m.Name, Label: strings.TrimSuffix(m.Label, "transaction") + "1,000 transactions", Unit: "s", Better: m.Better}, 1000}
			}
		}
		w := &out[len(out)-1]
		w.Costs = append(w.Costs, c)
	}
	return out
}

// CostSummary is networks × traffics with one cost each: instructions, or CPU
// time where they were not counted, by the work that the traffic is counted in. It
// is nil where no cost was measured.
func CostSummary(d *report.Document, g *report.Group) *page.Table {
	tab := &page.Table{Caption: "CPU cost, both ends together; more is in the full report", Columns: []page.Column{{Head: "network"}}}
	rows := map[string][]page.Field{}
	var names []string
	for _, t := range g.Traffics {
		entries := d.Entries(g, t)
		c, ok := MainCost(entries)
		if !ok {
			continue
		}
		tab.Columns = append(tab.Columns, page.Column{Head: t.Traffic(), Sub: c.Label, Number: true})
		for _, r := range entries {
			if rows[r.Name] == nil {
				names, rows[r.Name] = append(names, r.Name), []page.Field{rowName(r)}
			}
			row := padded(rows[r.Name], len(tab.Columns)-1)
			if e, ok := report.AbsoluteOf(r.Summary, c.Name); ok {
				row = append(row, page.Field{Text: c.Format(c.Factor*e.Value, c.Factor*report.Halfwidth(e)), Value: &e.Value})
			}
			rows[r.Name] = row
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

// MainCost is the cost that tells most about a traffic among those measured.
func MainCost(rows []report.Entry) (CostShown, bool) {
	for _, work := range []string{"transaction", "packet", "byte"} {
		for _, cost := range []string{"instructions", "own_cpu_seconds", "cpu_seconds"} {
			for _, w := range CostsByWork() {
				for _, c := range w.Costs {
					has := func(r report.Entry) bool { _, ok := report.AbsoluteOf(r.Summary, c.Name); return ok }
					if c.Name == cost+"_per_"+work && slices.ContainsFunc(rows, has) {
						return c, true
					}
				}
			}
		}
	}
	return CostShown{}, false
}

func padded(row []page.Field, columns int) []page.Field {
	for len(row) < columns {
		row = append(row, page.Text("not measured"))
	}
	return row
}

// costTable is networks × costs, nil where none was measured.
func costTable(d *report.Document, rows []report.Entry, t result.Cell, w WorkCosts) *page.Table {
	tab := &page.Table{Caption: t.Traffic() + ": CPU cost per " + w.Name, Columns: []page.Column{{Head: "network"}}}
	for _, r := range rows {
		tab.Rows = append(tab.Rows, []page.Field{rowName(r)})
	}
	for _, c := range w.Costs {
		has := func(r report.Entry) bool { _, ok := report.AbsoluteOf(r.Summary, c.Name); return ok }
		if !slices.ContainsFunc(rows, has) {
			continue
		}
		tab.Columns = append(tab.Columns, page.Column{Head: c.Label, Number: true})
		for i, r := range rows {
			e, ok := report.AbsoluteOf(r.Summary, c.Name)
			if !ok {
				tab.Rows[i] = append(tab.Rows[i], page.Text("not measured"))
				continue
			}
			tab.Rows[i] = append(tab.Rows[i], page.Field{Text: c.Format(c.Factor*e.Value, c.Factor*report.Halfwidth(e)), Value: &e.Value})
		}
		addEfficiency(d, tab, rows, c.Metric)
	}
	if len(tab.Columns) == 1 {
		return nil
	}
	return tab
}

// coresTable is networks × the rates of links, nil without any CPU time per byte.
func coresTable(rows []report.Entry, t result.Cell) *page.Table {
	tab := &page.Table{Caption: t.Traffic() + ": cores needed", Columns: []page.Column{{Head: "network"}}, Notes: []string{
		"Both ends together, at a rate of received payload. Extrapolated from CPU time per byte (cycles per byte over the cycles of a busy second) with these messages: the cost is taken to grow with the rate, offloads, clock and caches to stay as they were, and the work to spread over cores without a loss.",
	}}
	for _, r := range rows {
		row := []page.Field{rowName(r)}
		for i, at := range r.Summary.CoresAt {
			if len(tab.Columns) < i+2 {
				tab.Columns = append(tab.Columns, page.Column{Head: "at " + unit.Round(at.BitsPerSecond, "bit/s"), Number: true})
			}
			row = append(row, page.Field{Text: unit.Estimate(at.Cores.Value, report.Halfwidth(at.Cores), ""), Value: &at.Cores.Value})
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
func addEfficiency(d *report.Document, tab *page.Table, rows []report.Entry, m unit.Metric) {
	if !slices.ContainsFunc(rows, func(r report.Entry) bool { _, ok := r.Summary.EfficiencyByMetric[m.Name]; return ok }) {
		return
	}
	tab.Columns = append(tab.Columns, page.Column{Head: m.Label, Sub: "efficiency", Number: true})
	for i, r := range rows {
		c := page.Text("")
		if e, ok := r.Summary.EfficiencyByMetric[m.Name]; ok {
			c = page.Field{Text: report.Ratio(e), Value: &e.Value, Shade: page.ShadeOf(e.Value)}
		}
		tab.Rows[i] = append(tab.Rows[i], c)
	}
}
