package section

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// ladder is, for each network whose way up from the bare one was measured, what
// each step costs, and what the sampled stacks say of the same.
func ladder(d *report.Document) []page.Element {
	return perTraffic(d, func(g *report.Group, t result.Cell) []page.Element {
		var out []page.Element
		for _, r := range d.Entries(g, t) {
			if r.Summary.Ladder != nil {
				out = append(out, ladderOf(g, t, r)...)
			}
		}
		return out
	}, "What a network costs more than the bare one, in steps: each is a network less the one below it, which lacks one thing, inside the blocks that have all of them. "+
		"Next to them is what the sampled stacks measured in the step's own functions. A step that makes other code run again costs more than those: a packet in a tunnel goes through IP twice.")
}

// ladderOf are the blocks of one network's ladder.
func ladderOf(g *report.Group, t result.Cell, r report.Entry) []page.Element {
	l, figures := *r.Summary.Ladder, FiguresOf(*r.Summary.Ladder)
	of := g.At(r.Summary.Cell.Network, t)
	steps := StepTable(l)
	steps.Caption, steps.Notes = fmt.Sprintf("%s: %s step by step, %s", t.Traffic(), r.Name, figures.Label), LadderRemarks(l)
	if len(l.Checks) == 0 {
		return tableOf(&of, steps)
	}
	checks := CheckTable(l)
	checks.Caption = fmt.Sprintf("%s: %s, steps compared with stacks", t.Traffic(), r.Name)
	var disagree []string
	for _, c := range l.Checks {
		if c.Disagree {
			disagree = append(disagree, DisagreeSentence(l, c))
		}
	}
	out := append(append(tableOf(&of, steps), page.Drawing(checksChart(l, &of, checks.Caption))), tableOf(&of, checks)...)
	if len(disagree) > 0 {
		out = append(out, page.Element{List: disagree, ListOf: slices.Repeat([]*result.Cell{&of}, len(disagree))})
	}
	return out
}

// The two ways to know what a component costs.
const (
	BySteps  = "by steps"
	ByStacks = "by stacks"
)

// checksChart draws what CheckTable says.
func checksChart(l summary.Ladder, of *result.Cell, title string) *page.Chart {
	p := PerWorkOf(l.Work)
	c := &page.Chart{Kind: page.DrawnBars, Title: title, Of: of, X: page.Axis{Title: "component"}, Y: page.Axis{Title: "more time per " + p.Name, Unit: "s"},
		Words: "Both ends together, with intervals: what the steps add, compared with what is seen in the step's own functions."}
	steps, stacks := page.Series{Name: BySteps, Tint: 1}, page.Series{Name: ByStacks, Tint: 2}
	for _, x := range l.Checks {
		c.Categories = append(c.Categories, page.Category{Name: ComponentWords(x)})
		steps.Add(p.Scaled(x.Steps))
		stacks.Add(p.Scaled(x.Stacks))
	}
	c.Series = []page.Series{steps, stacks}
	return c
}

// PartOf says a share of a total: "12.3 %".
func PartOf(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// StepTable is one step a row, and what they add up to beside what was measured
// directly.
func StepTable(l summary.Ladder) *page.Table {
	figures := FiguresOf(l)
	tab := &page.Table{Columns: []page.Column{{Head: "step", Wide: true}, {Head: "more", Number: true}, {Head: "share", Number: true}}}
	row := func(what string, e estimate.Estimate) {
		share := ""
		if l.Sum.Value > 0 && report.Apart(l.Sum) {
			share = PartOf(e.Value / l.Sum.Value)
		}
		tab.Rows = append(tab.Rows, []page.Field{page.Text(what), {Text: figures.Plus(e), Value: &e.Value}, page.Text(share)})
	}
	for _, s := range l.Steps {
		row("+ "+strings.Join(s.Adds, ", "), s.More)
	}
	row("all steps", l.Sum)
	row("directly, less host", l.Direct)
	return tab
}

// LadderRemarks say where the steps do not add up to the direct difference, and
// which steps they do not separate.
func LadderRemarks(l summary.Ladder) []string {
	var out []string
	if low, high, ok := l.Direct.Interval(); ok && (l.Sum.Value < low || l.Sum.Value > high) {
		out = append(out, fmt.Sprintf("The steps do not add up to the direct difference: they use the %s that have every network, that of all blocks %s.",
			report.Count(l.Sum.N, "block", "blocks"), report.Count(l.Direct.N, "block", "blocks")))
	}
	if slices.ContainsFunc(l.Steps, func(s summary.LadderStep) bool { return len(s.Adds) > 1 }) {
		out = append(out, fmt.Sprintf("Not every step was measured apart: ladders: [%s] in the campaign adds the networks between.", l.Steps[len(l.Steps)-1].Network))
	}
	return out
}

// CheckTable compares steps with stacks.
func CheckTable(l summary.Ladder) *page.Table {
	p := PerWorkOf(l.Work)
	tab := &page.Table{Columns: []page.Column{{Head: "time per " + p.Name}, {Head: BySteps, Number: true}, {Head: ByStacks, Number: true}, {Head: "they"}}}
	for _, c := range l.Checks {
		verdict := "agree"
		if c.Disagree {
			verdict = "disagree"
		} else if _, _, ok := c.Difference.Interval(); !ok {
			verdict = "have one block"
		}
		tab.Rows = append(tab.Rows, []page.Field{page.Text(ComponentWords(c)), {Text: p.Plus(c.Steps), Value: &c.Steps.Value},
			{Text: p.Plus(c.Stacks), Value: &c.Stacks.Value}, page.Text(verdict)})
	}
	return tab
}

// ComponentWords are the components that a check is of.
func ComponentWords(c summary.LadderCheck) string { return strings.Join(c.Components, ", ") }

// DisagreeSentence says what steps cost beside what the stacks see in their own
// functions, and where else the stacks see them.
func DisagreeSentence(l summary.Ladder, c summary.LadderCheck) string {
	const most = 4
	p := PerWorkOf(l.Work)
	var steps []string
	for _, s := range l.Steps {
		if slices.Contains(c.Networks, s.Network) {
			steps = append(steps, strings.Join(s.Adds, ", "))
		}
	}
	out := fmt.Sprintf("Ladder and stacks disagree on %s: the steps (%s) come to %s, the stacks see %s in these functions.",
		report.And(c.Components), report.And(steps), p.Plus(c.Steps), p.Plus(c.Stacks))
	if len(c.Elsewhere) == 0 {
		return out + " In no other component do the stacks tell these steps from noise."
	}
	var rest []string
	labels := ComponentLabels()
	for _, e := range c.Elsewhere[:min(most, len(c.Elsewhere))] {
		rest = append(rest, labels[e.Name]+" "+p.Plus(e.Seconds))
	}
	return out + " On the way up these steps other components change as well: " + report.And(rest) + "."
}
