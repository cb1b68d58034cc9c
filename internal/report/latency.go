package report

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// latency is a table of percentiles for each traffic that has round trips.
func latency(d *document) []block {
	var out []block
	for _, g := range d.groups {
		for _, t := range g.traffics {
			rows := d.entries(g, t)
			var shown []unit.Metric
			for _, m := range unit.Metrics() {
				if strings.HasPrefix(m.Name, "latency_") && slices.ContainsFunc(rows, func(r entry) bool { _, ok := latencyOf(r.summary, m.Name); return ok }) {
					shown = append(shown, m)
				}
			}
			if len(shown) == 0 {
				continue
			}
			tab := d.metricTable(rows, shown, t.Traffic()+": round-trip time; "+g.title(), latencyOf)
			tab.Notes = []string{"Percentiles are those of the merged histograms where the samples have histograms, and otherwise the median over blocks of what the tool printed. Percentiles are never averaged."}
			out = append(out, block{Table: tab})
		}
	}
	return out
}

// latencyOf prefers the percentile of the merged histograms.
func latencyOf(s stat.CellSummary, metric string) (stat.Estimate, bool) {
	if e, ok := s.Latency[metric]; ok {
		return e, true
	}
	return absoluteOf(s, metric)
}
