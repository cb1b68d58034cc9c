package report

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// ladder is, for each network whose way up from the bare one was measured, what
// each step costs, and what the sampled stacks say of the same.
func ladder(d *document) []block {
	return d.perTraffic(func(g *group, t result.Cell) []block {
		var out []block
		for _, r := range d.entries(g, t) {
			if r.summary.Ladder != nil {
				out = append(out, ladderOf(g, t, r)...)
			}
		}
		return out
	}, "What a network costs more than the bare one, in steps: each is a network less the one below it, which lacks one thing, inside the blocks that have all of them. "+
		"Beside them stands what sampled stacks charge the step's own functions with. A step that makes other code run again costs more than those: a packet in a tunnel goes through IP twice.")
}

// ladderOf are the blocks of one network's ladder.
func ladderOf(g *group, t result.Cell, r entry) []block {
	l, told := *r.summary.Ladder, toldOf(*r.summary.Ladder)
	of := g.at(r.summary.Cell.Network, t)
	steps := stepTable(l)
	steps.Caption, steps.Notes = fmt.Sprintf("%s: %s step by step, %s", t.Traffic(), r.name, told.label), ladderRemarks(l)
	if len(l.Checks) == 0 {
		return tableOf(&of, steps)
	}
	checks := checkTable(l)
	checks.Caption = fmt.Sprintf("%s: %s, steps beside stacks", t.Traffic(), r.name)
	var disagree []string
	for _, c := range l.Checks {
		if c.Disagree {
			disagree = append(disagree, disagreeSentence(l, c))
		}
	}
	out := append(append(tableOf(&of, steps), drawing(checksChart(l, &of, checks.Caption))), tableOf(&of, checks)...)
	if len(disagree) > 0 {
		out = append(out, block{List: disagree, ListOf: slices.Repeat([]*result.Cell{&of}, len(disagree))})
	}
	return out
}

// The two ways to know what a component costs.
const (
	bySteps  = "by steps"
	byStacks = "by stacks"
)

// checksChart draws what checkTable says.
func checksChart(l stat.Ladder, of *result.Cell, title string) *chart {
	p := perWorkOf(l.Work)
	c := &chart{Kind: drawnBars, Title: title, Of: of, X: axis{Title: "component"}, Y: axis{Title: "more time per " + p.name, Unit: "s"},
		Words: "Both ends together, with intervals: what the steps add beside what is seen in the step's own functions."}
	steps, stacks := series{Name: bySteps, Tint: 1}, series{Name: byStacks, Tint: 2}
	for _, x := range l.Checks {
		c.Categories = append(c.Categories, category{Name: componentWords(x)})
		steps.add(p.scaled(x.Steps))
		stacks.add(p.scaled(x.Stacks))
	}
	c.Series = []series{steps, stacks}
	return c
}

// scaled is a time of what perWork is of.
func (p perWork) scaled(e stat.Estimate) stat.Estimate {
	if low, high, ok := e.Interval(); ok {
		low, high = p.factor*low, p.factor*high
		e.Low, e.High = &low, &high
	}
	e.Value *= p.factor
	return e
}
