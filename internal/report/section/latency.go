package section

import (
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/unit"
)

// latency is a table of percentiles for each traffic that has round trips.
func latency(d *report.Document) []page.Element {
	return orMissing(d, "No round-trip time was measured: it takes a traffic of requests and answers, such as tcp_rr.", perTraffic(d, func(g *report.Group, t result.Cell) []page.Element {
		rows := d.Entries(g, t)
		shown := measuredBy(rows, unit.Metrics(), func(m unit.Metric) bool { return strings.HasPrefix(m.Name, "latency_") }, LatencyOf)
		if len(shown) == 0 {
			return nil
		}
		own := []page.Element{page.Drawing(percentilesChart(g, t, rows))}
		return append(own, tableOf(g.Of(t), metricTable(d, rows, shown, t.Traffic()+": round-trip time", LatencyOf))...)
	}, "Percentiles are those of the merged histograms where the samples have histograms, and otherwise the median over blocks of what the tool printed. Percentiles are never averaged."))
}

// percentilesChart draws the merged histograms.
func percentilesChart(g *report.Group, t result.Cell, rows []report.Entry) *page.Chart {
	title := t.Traffic() + ": round-trip time by percentile"
	c := &page.Chart{
		Kind: page.DrawnLines, Title: title, Of: g.Of(t),
		Words: "Lower is faster. The further a line bends upwards to the right, the worse its slowest round trips are.",
		X:     page.Axis{Title: "percentile", Scale: page.ScaleNines}, Y: page.Axis{Title: "round-trip time", Unit: "s", Scale: page.ScaleLog},
	}
	for _, r := range rows {
		if len(r.Summary.Shape.Curve) == 0 {
			continue
		}
		s := seriesOf(r)
		for _, q := range r.Summary.Shape.Curve {
			s.X, s.Y = append(s.X, 1-q.Share), append(s.Y, q.Seconds)
		}
		c.Series = append(c.Series, s)
	}
	if len(c.Series) == 0 {
		return page.Missing(title, "No percentile plot: no sample has a histogram, so only the percentiles in the table are known.", c.Of)
	}
	c.Words += without(rows, func(r report.Entry) bool { return len(r.Summary.Shape.Curve) > 0 }, "which has no histogram")
	return c
}

// LatencyOf prefers the percentile of the merged histograms.
func LatencyOf(s summary.Cell, metric string) (estimate.Estimate, bool) {
	if e, ok := s.Latency[metric]; ok {
		return e, true
	}
	return report.AbsoluteOf(s, metric)
}
