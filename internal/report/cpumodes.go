package report

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// modesChart draws where CPU time went, by mode; nil where it was not measured.
func modesChart(g *group, t result.Cell, rows []entry) *chart {
	c := &chart{
		Kind: drawnStack, Title: t.Traffic() + ": cores used, by mode of CPU time", Of: g.of(t),
		Words: "Both ends together, less what they do while idle. Each part is the median over blocks of its own mode. More throughput takes more cores: read it beside the costs per byte or transaction.",
		X:     axis{Title: "cores", Unit: "1"},
	}
	// The order of the stack: from the program down to the device.
	for _, mode := range []string{"user", "system", "softirq", "irq"} {
		has := func(r entry) bool { _, ok := r.summary.Shape.CPUCores[mode]; return ok }
		if !slices.ContainsFunc(rows, has) {
			continue
		}
		s := series{Name: mode}
		for _, r := range rows {
			v := math.NaN()
			if e, ok := r.summary.Shape.CPUCores[mode]; ok {
				v = e.Value
			}
			s.Y = append(s.Y, v)
		}
		c.Series = append(c.Series, s)
	}
	c.Categories = categoriesOf(rows)
	below := func(s series) bool { return slices.ContainsFunc(s.Y, func(v float64) bool { return v < 0 }) }
	if slices.ContainsFunc(c.Series, below) {
		c.Words += " A part to the left of 0 is less than what the machine did while nothing was measured: others were busy on it."
	}
	if len(c.Series) == 0 {
		return nil
	}
	return c
}
