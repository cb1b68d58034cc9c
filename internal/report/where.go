package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// leastShare is the share of a total below which a component has no column of
// its own where no network has more, of either sign.
const leastShare = 0.01

// where is, for each traffic, what each network spends where in the kernel.
func where(d *document) []block {
	return d.perTraffic(func(g *group, t result.Cell) []block {
		var out []block
		if tab := d.componentTable(g, t); tab != nil {
			out = append(append(out, drawing(d.componentsChart(g, t))), tableOf(g.of(t), tab)...)
		}
		return out
	}, "CPU time of both ends by sampled call chains of the kernel, less what the machine does while idle, as means over blocks: the components of a network add up to its total. "+
		"Each sample counts for the innermost function that a rule names, so that encapsulation is the tunnel's own functions, and the outer header's second way through IP and UDP is IP and UDP. "+
		"Time that other programs of the machine had is in no column.")
}

// perWork formats times per unit of work: of a byte as per gigabyte.
type perWork struct {
	name   string
	factor float64
}

func perWorkOf(work string) perWork {
	if work == "byte" {
		return perWork{"GB", 1e9}
	}
	return perWork{work, 1}
}

func (p perWork) say(e stat.Estimate) string {
	return unit.Estimate(p.factor*e.Value, p.factor*halfwidth(e), "s")
}

// plus says a difference with its sign.
func (p perWork) plus(e stat.Estimate) string {
	if e.Value >= 0 {
		return "+" + p.say(e)
	}
	return p.say(e)
}

// cell is a time in a table.
func (p perWork) cell(e stat.Estimate) cell {
	return cell{Text: p.say(e), Value: &e.Value}
}

// attributed are the rows of a traffic with sampled stacks.
func (d *document) attributed(g *group, t result.Cell) []entry {
	return slices.DeleteFunc(d.entries(g, t), func(e entry) bool { return e.summary.Attribution == nil })
}

// componentTable is networks × components, nil where no stacks were sampled.
func (d *document) componentTable(g *group, t result.Cell) *table {
	rows := d.attributed(g, t)
	if len(rows) == 0 {
		return nil
	}
	p := perWorkOf(rows[0].summary.Attribution.Work)
	tab := &table{Caption: fmt.Sprintf("%s: CPU time per %s by component", t.Traffic(), p.name), Columns: []column{{Head: "network"}, {Head: "total", Number: true}}}
	for _, r := range rows {
		tab.Rows = append(tab.Rows, []cell{r.cell(), p.cell(r.summary.Attribution.Total)})
	}
	var small []string
	for _, c := range unit.Components() {
		if !c.Charged {
			continue
		}
		has := func(r entry) bool {
			part, ok := r.summary.Attribution.Component(c.Name)
			return ok && (part.Share == nil || math.Abs(*part.Share) >= leastShare)
		}
		if !slices.ContainsFunc(rows, has) {
			small = append(small, c.Label)
			continue
		}
		tab.Columns = append(tab.Columns, column{Head: c.Label, Number: true})
		for i, r := range rows {
			part, _ := r.summary.Attribution.Component(c.Name)
			tab.Rows[i] = append(tab.Rows[i], p.cell(part.Seconds))
		}
	}
	if len(small) > 0 {
		tab.Notes = append(tab.Notes, "Less than 1 % of every total, without a column: "+and(small)+".")
	}
	tab.Notes = append(tab.Notes, otherNote(rows)...)
	return tab
}

// componentsChart draws what componentTable says.
func (d *document) componentsChart(g *group, t result.Cell) *chart {
	rows := d.attributed(g, t)
	p := perWorkOf(rows[0].summary.Attribution.Work)
	c := &chart{Kind: drawnStack, Title: fmt.Sprintf("%s: CPU time per %s by component", t.Traffic(), p.name), Of: g.of(t),
		Words: "Both ends together, means over blocks: the parts add up to the total.", X: axis{Title: "CPU time per " + p.name, Unit: "s"}}
	c.Categories = categoriesOf(rows)
	for i, component := range unit.Components() {
		s, shown := series{Name: component.Label, Tint: i + 1}, false
		for _, r := range rows {
			v := math.NaN()
			if part, ok := r.summary.Attribution.Component(component.Name); ok && component.Charged {
				v = p.factor * part.Seconds.Value
				shown = shown || part.Seconds.Value > 0
			}
			s.Y = append(s.Y, v)
		}
		if shown {
			c.Series = append(c.Series, s)
		}
	}
	return c
}

// otherNote says how much no rule names, and how busy others were.
func otherNote(rows []entry) []string {
	var notes []string
	most, elsewhere := math.NaN(), math.NaN()
	for _, r := range rows {
		if part, ok := r.summary.Attribution.Component(unit.OtherComponent); ok && part.Share != nil && !(*part.Share <= most) {
			most = *part.Share
		}
		if e := r.summary.Attribution.ElsewhereShare; e != nil && !(*e <= elsewhere) {
			elsewhere = *e
		}
	}
	if !math.IsNaN(most) {
		notes = append(notes, fmt.Sprintf("No rule names at most %s of a total (other).", unit.Share(most)))
	}
	if !math.IsNaN(elsewhere) {
		notes = append(notes, fmt.Sprintf("Other programs had at most %s of the machine's busy time.", unit.Share(elsewhere)))
	}
	return notes
}
