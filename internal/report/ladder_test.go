package report

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/stat"
)

// ladderFigure is a figure of a ladder, as the long form names it.
type ladderFigure struct {
	metric string
	e      stat.Estimate
}

func ladderFigures(l *stat.Ladder) []ladderFigure {
	if l == nil {
		return nil
	}
	out := []ladderFigure{{"ladder_sum", l.Sum}, {"ladder_direct", l.Direct}}
	for _, s := range l.Steps {
		out = append(out, ladderFigure{"ladder_step", s.More})
	}
	for _, c := range l.Checks {
		out = append(out, ladderFigure{"ladder_by_steps", c.Steps}, ladderFigure{"ladder_by_stacks", c.Stacks})
	}
	return out
}

// checkLadders holds every figure of the JSON's ladders against the page's tables
// (Markdown's are the same) and against the terminal's.
func checkLadders(t *testing.T, d *document, r jsonReport, page figures, exacts map[[3]string]string, texts, terminal string) {
	t.Helper()
	for _, s := range r.Analysis.Cells {
		if s.Ladder == nil {
			continue
		}
		l, name := *s.Ladder, d.name(s.Cell.Network)
		told, p := toldOf(l), perWorkOf(l.Work)
		caption := placeOf(s.Cell).String() + "; " + s.Cell.Traffic() + ": " + name
		hold := func(table, row, column, want string, e stat.Estimate) {
			t.Helper()
			key := [3]string{caption + table, row, column}
			if page[key] != spaced(want) || exacts[key] != behind(e.Value) {
				t.Errorf("%v: the page has %q (%s), JSON %s", key, page[key], exacts[key], want)
			}
			if !strings.Contains(terminal, want) {
				t.Errorf("%v: the terminal lacks %s", key, want)
			}
		}
		steps := " step by step, " + told.label
		for _, x := range l.Steps {
			hold(steps, "+ "+strings.Join(x.Adds, ", "), "more", told.plus(x.More), x.More)
		}
		hold(steps, "all steps", "more", told.plus(l.Sum), l.Sum)
		hold(steps, "directly, less host", "more", told.plus(l.Direct), l.Direct)
		for _, c := range l.Checks {
			hold(", steps beside stacks", componentWords(c), bySteps, p.plus(c.Steps), c.Steps)
			hold(", steps beside stacks", componentWords(c), byStacks, p.plus(c.Stacks), c.Stacks)
			says := "Ladder and stacks disagree on " + and(c.Components)
			if n := strings.Count(texts, says); c.Disagree && n < 2 {
				t.Errorf("%s: %q stands %d times in HTML and Markdown", caption, says, n)
			}
		}
	}
}
