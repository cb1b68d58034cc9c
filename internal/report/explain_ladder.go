package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// ladderTold is how the figures of a ladder, or of a sweep, are told: of what they are, and one of them.
type ladderTold struct {
	label string // "CPU time of both ends per packet"
	plus  func(stat.Estimate) string
}

func toldOf(l stat.Ladder) ladderTold { return toldAs(l.Metric, l.Work) }

// toldAs tells a cost by its metric, per unit of work.
func toldAs(metric, work string) ladderTold {
	p := perWorkOf(work)
	switch {
	case strings.HasPrefix(metric, "instructions_"):
		return ladderTold{"instructions per " + p.name, func(e stat.Estimate) string {
			return signed(e, unit.Estimate(p.factor*e.Value, p.factor*halfwidth(e), ""))
		}}
	case strings.HasPrefix(metric, "own_"):
		return ladderTold{"CPU time of both ends per " + p.name, p.plus}
	}
	return ladderTold{"CPU time of the machines per " + p.name, p.plus}
}

// signed puts the sign before a difference that has none.
func signed(e stat.Estimate, text string) string {
	if e.Value >= 0 {
		return "+" + text
	}
	return text
}

// ladderLines are a traffic's ladder, and what the stacks say of the same.
func (sc *screen) ladderLines(x ExplainedTraffic) []string {
	if x.Ladder == nil {
		return nil
	}
	l, told := *x.Ladder, toldOf(*x.Ladder)
	lines := append([]string{"", fmt.Sprintf("Step by step, %s: %s", x.Traffic, told.label)}, sc.textTable(*stepTable(l))...)
	for _, m := range ladderRemarks(l) {
		lines = append(lines, sc.wrap(m, "! ", "  ")...)
	}
	if len(l.Checks) > 0 {
		lines = append(append(lines, ""), sc.textTable(*checkTable(l))...)
	}
	for _, c := range l.Checks {
		if c.Disagree {
			lines = append(lines, sc.wrap(disagreeSentence(l, c), "! ", "  ")...)
		}
	}
	return lines
}

// stepTable is one step a row, and what they add up to beside what was measured
// directly.
func stepTable(l stat.Ladder) *table {
	told := toldOf(l)
	tab := &table{Columns: []column{{Head: "step", Wide: true}, {Head: "more", Number: true}, {Head: "share", Number: true}}}
	row := func(what string, e stat.Estimate) {
		share := ""
		if l.Sum.Value > 0 && apart(l.Sum) {
			share = partOf(e.Value / l.Sum.Value)
		}
		tab.Rows = append(tab.Rows, []cell{text(what), {Text: told.plus(e), Value: &e.Value}, text(share)})
	}
	for _, s := range l.Steps {
		row("+ "+strings.Join(s.Adds, ", "), s.More)
	}
	row("all steps", l.Sum)
	row("directly, less host", l.Direct)
	return tab
}

// ladderRemarks say where the steps do not add up to the direct difference, and
// what they do not tell apart.
func ladderRemarks(l stat.Ladder) []string {
	var out []string
	if low, high, ok := l.Direct.Interval(); ok && (l.Sum.Value < low || l.Sum.Value > high) {
		out = append(out, fmt.Sprintf("The steps do not add up to the direct difference: they are of the %s that have every network, that is of %s.",
			count(l.Sum.N, "block", "blocks"), count(l.Direct.N, "block", "blocks")))
	}
	if slices.ContainsFunc(l.Steps, func(s stat.LadderStep) bool { return len(s.Adds) > 1 }) {
		out = append(out, fmt.Sprintf("Not every step was measured apart: ladders: [%s] in the campaign adds the networks between.", l.Steps[len(l.Steps)-1].Network))
	}
	return out
}

// checkTable holds steps against stacks.
func checkTable(l stat.Ladder) *table {
	p := perWorkOf(l.Work)
	tab := &table{Columns: []column{{Head: "time per " + p.name}, {Head: bySteps, Number: true}, {Head: byStacks, Number: true}, {Head: "they"}}}
	for _, c := range l.Checks {
		verdict := "agree"
		if c.Disagree {
			verdict = "disagree"
		} else if _, _, ok := c.Difference.Interval(); !ok {
			verdict = "have one block"
		}
		tab.Rows = append(tab.Rows, []cell{text(componentWords(c)), {Text: p.plus(c.Steps), Value: &c.Steps.Value},
			{Text: p.plus(c.Stacks), Value: &c.Stacks.Value}, text(verdict)})
	}
	return tab
}

// componentWords are the components that a check is of.
func componentWords(c stat.LadderCheck) string { return strings.Join(c.Components, ", ") }

// disagreeSentence says what steps cost beside what the stacks see in their own
// functions, and where else the stacks see them.
func disagreeSentence(l stat.Ladder, c stat.LadderCheck) string {
	const most = 4
	p := perWorkOf(l.Work)
	var steps []string
	for _, s := range l.Steps {
		if slices.Contains(c.Networks, s.Network) {
			steps = append(steps, strings.Join(s.Adds, ", "))
		}
	}
	out := fmt.Sprintf("Ladder and stacks disagree on %s: the steps (%s) come to %s, the stacks see %s in these functions.",
		and(c.Components), and(steps), p.plus(c.Steps), p.plus(c.Stacks))
	if len(c.Elsewhere) == 0 {
		return out + " In no other component do the stacks tell these steps from noise."
	}
	var rest []string
	labels := componentLabels()
	for _, e := range c.Elsewhere[:min(most, len(c.Elsewhere))] {
		rest = append(rest, labels[e.Name]+" "+p.plus(e.Seconds))
	}
	return out + " On the way up these steps other components change as well: " + and(rest) + "."
}
