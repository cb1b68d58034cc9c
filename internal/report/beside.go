package report

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// beside is the bars that publications show: every network beside the bare
// one, over message sizes, for each profile, protocol and MTU, in bandwidth and
// latency (Dakić et al. 2024, figures 2 to 33).
func beside(d *document) []block {
	var out []block
	for _, g := range d.groups {
		var own []block
		for _, f := range g.byMessage() {
			own = append(own, d.familyBars(g, f)...)
		}
		if len(own) > 0 {
			out = append(append(out, headOf(g.title(), g.at("", result.Cell{}))), own...)
		}
	}
	return d.orMissing("Nothing to draw: no cell has a throughput or a latency.", out)
}

// barMetrics are what bars are drawn of: of each kind the first that was measured.
func barMetrics() [][]string {
	return [][]string{
		{"throughput_bits_per_second"},
		{"latency_mean_seconds", "latency_p50_seconds"},
		{"requests_per_second"},
	}
}

// familyBars are the charts of one family of traffics.
func (d *document) familyBars(g *group, f family) []block {
	rows := d.allEntries(g, f.traffics)
	var out []block
	for _, choice := range barMetrics() {
		for _, name := range choice {
			if c := d.barChart(g, f, rows, name); c != nil {
				out = append(out, drawing(c))
				break
			}
		}
	}
	return out
}

// barChart is a metric of networks × message sizes; nil where none has it.
func (d *document) barChart(g *group, f family, rows []entry, metric string) *chart {
	m, _ := findMetric(metric)
	c := &chart{Kind: drawnBars, Title: "Physical to CNI: " + f.common.Traffic() + ", " + m.Label, Of: g.of(f.common),
		Words: "Median over blocks with its interval.",
		X:     axis{Title: "message size"}, Y: axis{Title: m.Label, Unit: m.Unit}}
	for _, t := range f.traffics {
		c.Categories = append(c.Categories, category{messageName(t), g.of(t)})
	}
	for _, r := range rows {
		s, any := r.series(), false
		for _, t := range f.traffics {
			sum, _ := d.summaryOf(g, r, t)
			e, ok := barEstimate(sum, metric)
			if !ok {
				s.addNothing()
				continue
			}
			any = true
			s.add(e)
		}
		if any {
			c.Series = append(c.Series, s)
		}
	}
	if len(c.Series) == 0 {
		return nil
	}
	if len(g.baselines) == 0 {
		c.Words += " The bare network was not measured, so there is nothing to compare them with."
	}
	return c
}

// barEstimate prefers merged histograms, as the latency section does.
func barEstimate(s stat.CellSummary, metric string) (stat.Estimate, bool) {
	if strings.HasPrefix(metric, "latency_") {
		return latencyOf(s, metric)
	}
	return absoluteOf(s, metric)
}

// messageName is a message size as a place along an axis.
func messageName(t result.Cell) string {
	switch {
	case t.MessageBytes == 0:
		return "as the tool has it"
	case t.ResponseBytes > 0 && t.ResponseBytes != t.MessageBytes:
		return fmt.Sprintf("%d/%d B", t.MessageBytes, t.ResponseBytes)
	}
	return fmt.Sprintf("%d B", t.MessageBytes)
}

// allEntries are the networks that have a value for any of some traffics, the
// baseline first, each with the first summary that it has.
func (d *document) allEntries(g *group, traffics []result.Cell) []entry {
	var out []entry
	seen := map[string]bool{}
	add := func(e entry) {
		if !seen[e.name] {
			seen[e.name] = true
			out = append(out, e)
		}
	}
	for _, t := range traffics {
		for _, cluster := range g.baseClusters() {
			if b, ok := g.baselines[inCluster(t, cluster)]; ok && b.OK > 0 {
				add(entry{hostOf(cluster) + " (baseline)", b})
			}
		}
	}
	for _, n := range g.networks {
		for _, t := range traffics {
			if s, ok := g.cell(n, t); ok && s.OK > 0 {
				add(entry{d.name(n), s})
			}
		}
	}
	return out
}

// summaryOf is what an entry's network, or the baseline, has for a traffic.
func (d *document) summaryOf(g *group, e entry, t result.Cell) (stat.CellSummary, bool) {
	if e.summary.Cell.IsBaseline() {
		if b, ok := g.baselines[inCluster(t, e.summary.Cell.Cluster)]; ok {
			return b, true
		}
	}
	return g.cell(e.summary.Cell.Network, t)
}
