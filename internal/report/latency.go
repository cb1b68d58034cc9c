package report

import (
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// latency is a table of percentiles for each traffic that has round trips.
func latency(d *document) []block {
	return d.perTraffic(func(g *group, t result.Cell) []block {
		rows := d.entries(g, t)
		shown := measuredBy(rows, unit.Metrics(), func(m unit.Metric) bool { return strings.HasPrefix(m.Name, "latency_") }, latencyOf)
		if len(shown) == 0 {
			return nil
		}
		return []block{{Table: d.metricTable(rows, shown, t.Traffic()+": round-trip time", latencyOf)}}
	}, "Percentiles are those of the merged histograms where the samples have histograms, and otherwise the median over blocks of what the tool printed. Percentiles are never averaged.")
}

// latencyOf prefers the percentile of the merged histograms.
func latencyOf(s stat.CellSummary, metric string) (stat.Estimate, bool) {
	if e, ok := s.Latency[metric]; ok {
		return e, true
	}
	return absoluteOf(s, metric)
}
