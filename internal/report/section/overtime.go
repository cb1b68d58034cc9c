package section

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
)

// overTime draws, for each traffic, what it is judged by block after block, and
// the throughput inside the measured window.
func overTime(d *report.Document) []page.Element {
	return orMissing(d, "Nothing to draw over time: nothing was measured.", perTraffic(d, func(g *report.Group, t result.Cell) []page.Element {
		rows := d.Entries(g, t)
		if len(rows) == 0 {
			return nil
		}
		return []page.Element{page.Drawing(blocksChart(g, t, rows)), page.Drawing(windowChart(g, t, rows))}
	}, "Block by block: lines that go up and down together are the machine, not the networks. Inside the measured window: the median over blocks of each interval, and the middle half of the blocks as a band."))
}

// blocksChart draws the values behind the estimates.
func blocksChart(g *report.Group, t result.Cell, rows []report.Entry) *page.Chart {
	title := t.Traffic() + ": block by block"
	m, ok := g.Primary(t)
	if !ok && len(rows) > 0 { // only the baseline was measured
		m, _ = report.FindMetric(rows[0].Summary.Primary)
	}
	c := &page.Chart{Kind: page.DrawnLines, Title: title, Of: g.Of(t), Words: "Each block's own " + m.Label + ".",
		X: page.Axis{Title: "block", Scale: page.ScaleFree}, Y: page.Axis{Title: m.Label, Unit: m.Unit, Scale: page.ScaleFree}}
	most := 0
	for _, r := range rows {
		values := r.Summary.Shape.Blocks
		if len(values) == 0 {
			continue
		}
		most = max(most, len(values))
		s := seriesOf(r)
		for _, v := range values {
			s.X, s.Y = append(s.X, float64(v.Block)), append(s.Y, v.Value)
		}
		c.Series = append(c.Series, s)
	}
	if most < 2 {
		return page.Missing(title, "Nothing to draw over blocks: it takes two with a value.", c.Of)
	}
	return c
}

// windowChart draws what happened inside the measured window.
func windowChart(g *report.Group, t result.Cell, rows []report.Entry) *page.Chart {
	title := t.Traffic() + ": inside the measured window"
	c := &page.Chart{Kind: page.DrawnLines, Title: title, Of: g.Of(t), Words: "Throughput over the measured window, median and middle half of the blocks.",
		X: page.Axis{Title: "time in the window", Unit: "s", Scale: page.ScaleFree}, Y: page.Axis{Title: "throughput", Unit: "bit/s", Scale: page.ScaleFree}}
	for _, r := range rows {
		w := r.Summary.Shape.Window
		if w == nil {
			continue
		}
		s := seriesOf(r)
		for i := range w.MedianBitsPerSecond {
			s.X = append(s.X, (float64(i)+0.5)*w.IntervalSeconds)
		}
		s.Y, s.Low, s.High = w.MedianBitsPerSecond, w.LowBitsPerSecond, w.HighBitsPerSecond
		c.Series = append(c.Series, s)
		c.Words = fmt.Sprintf("Throughput over the measured window, in intervals of %g s: median and middle half of the blocks.", w.IntervalSeconds)
	}
	if len(c.Series) == 0 {
		return page.Missing(title, "Nothing to draw inside the window: this workload records no series.", c.Of)
	}
	c.Words += without(rows, func(r report.Entry) bool { return r.Summary.Shape.Window != nil }, "which has no series")
	return c
}
