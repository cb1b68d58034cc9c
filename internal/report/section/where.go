package section

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// LeastShare is the share of a total below which a component has no column of
// its own where no network has more, of either sign.
const LeastShare = 0.01

// where is, for each traffic, what each network spends where in the kernel.
func where(d *report.Document) []page.Element {
	return perTraffic(d, func(g *report.Group, t result.Cell) []page.Element {
		var out []page.Element
		if tab := componentTable(d, g, t); tab != nil {
			out = append(append(out, page.Drawing(componentsChart(d, g, t))), tableOf(g.Of(t), tab)...)
		}
		return out
	}, "CPU time of both ends by sampled call chains of the kernel, less what the machine does while idle, as means over blocks: the components of a network add up to its total. "+
		"Each sample counts for the innermost function that a rule names, so that encapsulation is the tunnel's own functions, and the outer header's second way through IP and UDP is IP and UDP. "+
		"Time that other programs of the machine had is in no column.")
}

// attributed are the rows of a traffic with sampled stacks.
func attributed(d *report.Document, g *report.Group, t result.Cell) []report.Entry {
	return slices.DeleteFunc(d.Entries(g, t), func(e report.Entry) bool { return e.Summary.Attribution == nil })
}

// componentTable is networks × components, nil where no stacks were sampled.
func componentTable(d *report.Document, g *report.Group, t result.Cell) *page.Table {
	rows := attributed(d, g, t)
	if len(rows) == 0 {
		return nil
	}
	p := PerWorkOf(rows[0].Summary.Attribution.Work)
	tab := &page.Table{Caption: fmt.Sprintf("%s: CPU time per %s by component", t.Traffic(), p.Name), Columns: []page.Column{{Head: "network"}, {Head: "total", Number: true}}}
	for _, r := range rows {
		tab.Rows = append(tab.Rows, []page.Field{rowName(r), p.Field(r.Summary.Attribution.Total)})
	}
	var small []string
	for _, c := range unit.Components() {
		if !c.Charged {
			continue
		}
		has := func(r report.Entry) bool {
			part, ok := r.Summary.Attribution.Component(c.Name)
			return ok && (part.Share == nil || math.Abs(*part.Share) >= LeastShare)
		}
		if !slices.ContainsFunc(rows, has) {
			small = append(small, c.Label)
			continue
		}
		tab.Columns = append(tab.Columns, page.Column{Head: c.Label, Number: true})
		for i, r := range rows {
			part, _ := r.Summary.Attribution.Component(c.Name)
			tab.Rows[i] = append(tab.Rows[i], p.Field(part.Seconds))
		}
	}
	if len(small) > 0 {
		tab.Notes = append(tab.Notes, "Less than 1 % of every total, without a column: "+report.And(small)+".")
	}
	tab.Notes = append(tab.Notes, otherNote(rows)...)
	return tab
}

// componentsChart draws what componentTable says.
func componentsChart(d *report.Document, g *report.Group, t result.Cell) *page.Chart {
	rows := attributed(d, g, t)
	p := PerWorkOf(rows[0].Summary.Attribution.Work)
	c := &page.Chart{Kind: page.DrawnStack, Title: fmt.Sprintf("%s: CPU time per %s by component", t.Traffic(), p.Name), Of: g.Of(t),
		Words: "Both ends together, means over blocks: the parts add up to the total.", X: page.Axis{Title: "CPU time per " + p.Name, Unit: "s"}}
	c.Categories = categoriesOf(rows)
	for i, component := range unit.Components() {
		s, shown := page.Series{Name: component.Label, Tint: i + 1}, false
		for _, r := range rows {
			v := math.NaN()
			if part, ok := r.Summary.Attribution.Component(component.Name); ok && component.Charged {
				v = p.Factor * part.Seconds.Value
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
func otherNote(rows []report.Entry) []string {
	var notes []string
	most, elsewhere := math.NaN(), math.NaN()
	for _, r := range rows {
		if part, ok := r.Summary.Attribution.Component(unit.OtherComponent); ok && part.Share != nil && !(*part.Share <= most) {
			most = *part.Share
		}
		if e := r.Summary.Attribution.ElsewhereShare; e != nil && !(*e <= elsewhere) {
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
