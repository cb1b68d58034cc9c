package report

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/result"
)

// overTime draws, for each traffic, what it is judged by block after block, and
// the throughput inside the measured window.
func overTime(d *document) []block {
	return d.orMissing("Nothing to draw over time: nothing was measured.", d.perTraffic(func(g *group, t result.Cell) []block {
		rows := d.entries(g, t)
		if len(rows) == 0 {
			return nil
		}
		return []block{drawing(blocksChart(g, t, rows)), drawing(windowChart(g, t, rows))}
	}, "Block by block: lines that go up and down together are the machine, not the networks. Inside the measured window: the median over blocks of each interval, and the middle half of the blocks as a band."))
}

// blocksChart draws the values behind the estimates.
func blocksChart(g *group, t result.Cell, rows []entry) *chart {
	title := t.Traffic() + ": block by block"
	m, ok := g.primary(t)
	if !ok && len(rows) > 0 { // only the baseline was measured
		m, _ = findMetric(rows[0].summary.Primary)
	}
	c := &chart{Kind: drawnLines, Title: title, Of: g.of(t), Words: "Each block's own " + m.Label + ".",
		X: axis{Title: "block", Scale: scaleFree}, Y: axis{Title: m.Label, Unit: m.Unit, Scale: scaleFree}}
	most := 0
	for _, r := range rows {
		values := r.summary.Shape.Blocks
		if len(values) == 0 {
			continue
		}
		most = max(most, len(values))
		s := r.series()
		for _, v := range values {
			s.X, s.Y = append(s.X, float64(v.Block)), append(s.Y, v.Value)
		}
		c.Series = append(c.Series, s)
	}
	if most < 2 {
		return missing(title, "Nothing to draw over blocks: it takes two with a value.", c.Of)
	}
	return c
}

// windowChart draws what happened inside the measured window.
func windowChart(g *group, t result.Cell, rows []entry) *chart {
	title := t.Traffic() + ": inside the measured window"
	c := &chart{Kind: drawnLines, Title: title, Of: g.of(t), Words: "Throughput over the measured window, median and middle half of the blocks.",
		X: axis{Title: "time in the window", Unit: "s", Scale: scaleFree}, Y: axis{Title: "throughput", Unit: "bit/s", Scale: scaleFree}}
	for _, r := range rows {
		w := r.summary.Shape.Window
		if w == nil {
			continue
		}
		s := r.series()
		for i := range w.MedianBitsPerSecond {
			s.X = append(s.X, (float64(i)+0.5)*w.IntervalSeconds)
		}
		s.Y, s.Low, s.High = w.MedianBitsPerSecond, w.LowBitsPerSecond, w.HighBitsPerSecond
		c.Series = append(c.Series, s)
		c.Words = fmt.Sprintf("Throughput over the measured window, in intervals of %g s: median and middle half of the blocks.", w.IntervalSeconds)
	}
	if len(c.Series) == 0 {
		return missing(title, "Nothing to draw inside the window: this workload records no series.", c.Of)
	}
	c.Words += without(rows, func(r entry) bool { return r.summary.Shape.Window != nil }, "which has no series")
	return c
}
