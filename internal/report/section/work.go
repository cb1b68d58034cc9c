package section

import (
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/unit"
)

// PerWork formats times per unit of work: of a byte as per gigabyte.
type PerWork struct {
	Name   string
	Factor float64
}

// PerWorkOf is how times per unit of some work are shown.
func PerWorkOf(work string) PerWork {
	if work == "byte" {
		return PerWork{"GB", 1e9}
	}
	return PerWork{work, 1}
}

// Say is a time per unit of work, with its half-width.
func (p PerWork) Say(e estimate.Estimate) string {
	return unit.Estimate(p.Factor*e.Value, p.Factor*report.Halfwidth(e), "s")
}

// Plus says a difference with its sign.
func (p PerWork) Plus(e estimate.Estimate) string {
	if e.Value >= 0 {
		return "+" + p.Say(e)
	}
	return p.Say(e)
}

// Field is a time in a table.
func (p PerWork) Field(e estimate.Estimate) page.Field {
	return page.Field{Text: p.Say(e), Value: &e.Value}
}

// Scaled is a time of that unit of work.
func (p PerWork) Scaled(e estimate.Estimate) estimate.Estimate {
	if low, high, ok := e.Interval(); ok {
		low, high = p.Factor*low, p.Factor*high
		e.Low, e.High = &low, &high
	}
	e.Value *= p.Factor
	return e
}

// ComponentLabels maps the components of the kernel to their labels.
func ComponentLabels() map[string]string {
	out := map[string]string{}
	for _, c := range unit.Components() {
		out[c.Name] = c.Label
	}
	return out
}

// LadderFigures is how a report shows the figures of a ladder, or of a sweep: what they are, and one of them.
type LadderFigures struct {
	Label string // "CPU time of both ends per packet"
	Plus  func(estimate.Estimate) string
}

// FiguresOf is how the figures of a ladder are shown.
func FiguresOf(l summary.Ladder) LadderFigures { return FiguresAs(l.Metric, l.Work) }

// FiguresAs tells a cost by its metric, per unit of work.
func FiguresAs(metric, work string) LadderFigures {
	p := PerWorkOf(work)
	switch {
	case strings.HasPrefix(metric, "instructions_"):
		return LadderFigures{"instructions per " + p.Name, func(e estimate.Estimate) string {
			return signed(e, unit.Estimate(p.Factor*e.Value, p.Factor*report.Halfwidth(e), ""))
		}}
	case strings.HasPrefix(metric, "own_"):
		return LadderFigures{"CPU time of both ends per " + p.Name, p.Plus}
	}
	return LadderFigures{"CPU time of the machines per " + p.Name, p.Plus}
}

// signed puts the sign before a difference that has none.
func signed(e estimate.Estimate, text string) string {
	if e.Value >= 0 {
		return "+" + text
	}
	return text
}
