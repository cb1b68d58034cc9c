package report

import (
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// latency is a table of percentiles for each traffic that has round trips.
func latency(d *document) []block {
	return d.orMissing("No round-trip time was measured: it takes a traffic of requests and answers, such as tcp_rr.", d.perTraffic(func(g *group, t result.Cell) []block {
		rows := d.entries(g, t)
		shown := measuredBy(rows, unit.Metrics(), func(m unit.Metric) bool { return strings.HasPrefix(m.Name, "latency_") }, latencyOf)
		if len(shown) == 0 {
			return nil
		}
		own := []block{drawing(percentilesChart(g, t, rows))}
		return append(own, tableOf(g.of(t), d.metricTable(rows, shown, t.Traffic()+": round-trip time", latencyOf))...)
	}, "Percentiles are those of the merged histograms where the samples have histograms, and otherwise the median over blocks of what the tool printed. Percentiles are never averaged."))
}

// percentilesChart draws the merged histograms.
func percentilesChart(g *group, t result.Cell, rows []entry) *chart {
	title := t.Traffic() + ": round-trip time by percentile"
	c := &chart{
		Kind: drawnLines, Title: title, Of: g.of(t),
		Words: "Lower is faster. The further a line bends upwards to the right, the worse its slowest round trips are.",
		X:     axis{Title: "percentile", Scale: scaleNines}, Y: axis{Title: "round-trip time", Unit: "s", Scale: scaleLog},
	}
	for _, r := range rows {
		if len(r.summary.Shape.Curve) == 0 {
			continue
		}
		s := r.series()
		for _, q := range r.summary.Shape.Curve {
			s.X, s.Y = append(s.X, 1-q.Share), append(s.Y, q.Seconds)
		}
		c.Series = append(c.Series, s)
	}
	if len(c.Series) == 0 {
		return missing(title, "No percentile plot: no sample has a histogram, so only the percentiles in the table are known.", c.Of)
	}
	c.Words += without(rows, func(r entry) bool { return len(r.summary.Shape.Curve) > 0 }, "which has no histogram")
	return c
}

// latencyOf prefers the percentile of the merged histograms.
func latencyOf(s stat.CellSummary, metric string) (stat.Estimate, bool) {
	if e, ok := s.Latency[metric]; ok {
		return e, true
	}
	return absoluteOf(s, metric)
}
