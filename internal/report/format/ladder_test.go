package format

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/explain"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// ladderFigure is a figure of a ladder, as the long form names it.
type ladderFigure struct {
	metric string
	e      estimate.Estimate
}

func ladderFigures(l *summary.Ladder) []ladderFigure {
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

// checkLadders compares every figure of the JSON's ladders with the page's tables
// (Markdown's are the same) and with the terminal's.
func checkLadders(t *testing.T, d *report.Document, r jsonReport, page figures, exacts map[[3]string]string, texts, terminal string) {
	t.Helper()
	for _, s := range r.Analysis.Cells {
		if s.Ladder == nil {
			continue
		}
		l, name := *s.Ladder, d.Name(s.Cell.Network)
		figures, p := section.FiguresOf(l), section.PerWorkOf(l.Work)
		caption := report.SituationOf(s.Cell).String() + "; " + s.Cell.Traffic() + ": " + name
		hold := func(table, row, column, want string, e estimate.Estimate) {
			t.Helper()
			key := [3]string{caption + table, row, column}
			if page[key] != spaced(want) || exacts[key] != behind(e.Value) {
				t.Errorf("%v: the page has %q (%s), JSON %s", key, page[key], exacts[key], want)
			}
			if !strings.Contains(terminal, want) {
				t.Errorf("%v: the terminal lacks %s", key, want)
			}
		}
		steps := " step by step, " + figures.Label
		for _, x := range l.Steps {
			hold(steps, "+ "+strings.Join(x.Adds, ", "), "more", figures.Plus(x.More), x.More)
		}
		hold(steps, "all steps", "more", figures.Plus(l.Sum), l.Sum)
		hold(steps, "directly, less host", "more", figures.Plus(l.Direct), l.Direct)
		for _, c := range l.Checks {
			hold(", steps compared with stacks", section.ComponentWords(c), section.BySteps, p.Plus(c.Steps), c.Steps)
			hold(", steps compared with stacks", section.ComponentWords(c), section.ByStacks, p.Plus(c.Stacks), c.Stacks)
			says := "Ladder and stacks disagree on " + report.And(c.Components)
			if n := strings.Count(texts, says); c.Disagree && n < 2 {
				t.Errorf("%s: %q occurs %d times in HTML and Markdown", caption, says, n)
			}
		}
	}
}

func explainText(t *testing.T, in report.Input, opt screen.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := explain.Write(&b, in, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
