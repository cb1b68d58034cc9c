package section

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
)

// modesChart draws where CPU time went, by mode; nil where it was not measured.
func modesChart(g *report.Group, t result.Cell, rows []report.Entry) *page.Chart {
	c := &page.Chart{
		Kind: page.DrawnStack, Title: t.Traffic() + ": cores used, by mode of CPU time", Of: g.Of(t),
		Words: "Both ends together, less what they do while idle. Each part is the median over blocks of its own mode. More throughput takes more cores: read it beside the costs per byte or transaction.",
		X:     page.Axis{Title: "cores", Unit: "1"},
	}
	// The order of the stack: from the program down to the device.
	for _, mode := range []string{"user", "system", "softirq", "irq"} {
		has := func(r report.Entry) bool { _, ok := r.Summary.Shape.CPUCores[mode]; return ok }
		if !slices.ContainsFunc(rows, has) {
			continue
		}
		s := page.Series{Name: mode}
		for _, r := range rows {
			v := math.NaN()
			if e, ok := r.Summary.Shape.CPUCores[mode]; ok {
				v = e.Value
			}
			s.Y = append(s.Y, v)
		}
		c.Series = append(c.Series, s)
	}
	c.Categories = categoriesOf(rows)
	below := func(s page.Series) bool { return slices.ContainsFunc(s.Y, func(v float64) bool { return v < 0 }) }
	if slices.ContainsFunc(c.Series, below) {
		c.Words += " A part to the left of 0 is less than what the machine did while nothing was measured: others were busy on it."
	}
	if len(c.Series) == 0 {
		return nil
	}
	return c
}
