package section

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// beside is the bars that publications show: every network beside the bare
// one, over message sizes, for each profile, protocol and MTU, in bandwidth and
// latency (Dakić et al. 2024, figures 2 to 33).
func beside(d *report.Document) []page.Element {
	var out []page.Element
	for _, g := range d.Groups {
		var own []page.Element
		for _, f := range byMessage(g) {
			own = append(own, familyBars(d, g, f)...)
		}
		if len(own) > 0 {
			out = append(append(out, page.HeadOf(g.Title(), g.At("", result.Cell{}))), own...)
		}
	}
	return orMissing(d, "Nothing to draw: no cell has a throughput or a latency.", out)
}

// BarMetrics are what bars are drawn of: of each kind the first that was measured.
func BarMetrics() [][]string {
	return [][]string{
		{"throughput_bits_per_second"},
		{"latency_mean_seconds", "latency_p50_seconds"},
		{"requests_per_second"},
	}
}

// familyBars are the charts of one family of traffics.
func familyBars(d *report.Document, g *report.Group, f family) []page.Element {
	rows := d.AllEntries(g, f.traffics)
	var out []page.Element
	for _, choice := range BarMetrics() {
		for _, name := range choice {
			if c := barChart(d, g, f, rows, name); c != nil {
				out = append(out, page.Drawing(c))
				break
			}
		}
	}
	return out
}

// barChart is a metric of networks × message sizes; nil where none has it.
func barChart(d *report.Document, g *report.Group, f family, rows []report.Entry, metric string) *page.Chart {
	m, _ := report.FindMetric(metric)
	c := &page.Chart{Kind: page.DrawnBars, Title: "Bare network and pod networks: " + f.common.Traffic() + ", " + m.Label, Of: g.Of(f.common),
		Words: "Median over blocks with its interval.",
		X:     page.Axis{Title: "message size"}, Y: page.Axis{Title: m.Label, Unit: m.Unit}}
	for _, t := range f.traffics {
		c.Categories = append(c.Categories, page.Category{Name: MessageName(t), Of: g.Of(t)})
	}
	for _, r := range rows {
		s, any := seriesOf(r), false
		for _, t := range f.traffics {
			sum, _ := d.SummaryOf(g, r, t)
			e, ok := BarEstimate(sum, metric)
			if !ok {
				s.AddNothing()
				continue
			}
			any = true
			s.Add(e)
		}
		if any {
			c.Series = append(c.Series, s)
		}
	}
	if len(c.Series) == 0 {
		return nil
	}
	if len(g.Baselines) == 0 {
		c.Words += " The bare network was not measured, so there is nothing to compare them with."
	}
	return c
}

// BarEstimate prefers merged histograms, as the latency section does.
func BarEstimate(s summary.Cell, metric string) (estimate.Estimate, bool) {
	if strings.HasPrefix(metric, "latency_") {
		return LatencyOf(s, metric)
	}
	return report.AbsoluteOf(s, metric)
}

// MessageName is a message size as a position along an axis.
func MessageName(t result.Cell) string {
	switch {
	case t.MessageBytes == 0:
		return "as the tool has it"
	case t.ResponseBytes > 0 && t.ResponseBytes != t.MessageBytes:
		return fmt.Sprintf("%d/%d B", t.MessageBytes, t.ResponseBytes)
	}
	return fmt.Sprintf("%d B", t.MessageBytes)
}
