package format

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// promFamilies keeps metrics with their series in the order in which they first came.
type promFamilies struct {
	campaign string
	list     []*dto.MetricFamily
}

// add appends one series. Labels that are empty are left out.
func (f *promFamilies) add(name, help string, value float64, labels ...[2]string) {
	name = "cnibench_" + promName(name)
	i := slices.IndexFunc(f.list, func(x *dto.MetricFamily) bool { return x.GetName() == name })
	if i < 0 {
		i, f.list = len(f.list), append(f.list, &dto.MetricFamily{Name: &name, Help: new(page.Clean(help)), Type: dto.MetricType_GAUGE.Enum()})
	}
	series := &dto.Metric{Gauge: &dto.Gauge{Value: &value}, Label: []*dto.LabelPair{promLabel("campaign", f.campaign)}}
	for _, l := range labels {
		if l[1] != "" {
			series.Label = append(series.Label, promLabel(l[0], l[1]))
		}
	}
	f.list[i].Metric = append(f.list[i].Metric, series)
}

func promLabel(name, value string) *dto.LabelPair {
	return &dto.LabelPair{Name: new(promName(name)), Value: new(page.Clean(value))}
}

// estimate appends a value, and its bounds where it has any.
func (f *promFamilies) estimate(name, help string, e estimate.Estimate, labels ...[2]string) {
	f.add(name, help+".", e.Value, labels...)
	if low, high, ok := e.Interval(); ok {
		f.add("low_"+name, help+": the low end of the interval.", low, labels...)
		f.add("high_"+name, help+": the high end of the interval.", high, labels...)
	}
}

// writePrometheus writes Prometheus' text format, for node_exporter's textfile
// collector or a push gateway. What was not measured has no series. Gauges,
// without times: they say what a campaign came to.
//
// Source: prometheus.io/docs/instrumenting/exposition_formats.
func writePrometheus(w io.Writer, d *report.Document, _ screen.Options) error {
	f := &promFamilies{campaign: d.Title()}
	promCampaign(d, f)
	for _, s := range d.Analysis.Cells {
		promCell(d, f, s)
	}
	for _, c := range d.Unmeasured {
		promCell(d, f, summary.Cell{Cell: c})
	}
	for _, g := range d.Analysis.Goals {
		for _, r := range g.Ranked {
			labels := [][2]string{{"goal", string(g.Goal)}, {"network", r.Network}, {"profile", r.Profile}}
			f.add("goal_rank", "The best rank that a network may have in a goal.", float64(r.Rank), labels...)
			f.add("goal_rank_to", "The worst rank that a network may have in a goal.", float64(r.RankTo), labels...)
			if r.Efficiency != nil {
				f.estimate("goal_efficiency_ratio", "A network against the bare network, over all settings of a goal", *r.Efficiency, labels...)
			}
		}
	}
	b := bufio.NewWriter(w)
	for _, m := range section.Missing(d) {
		fmt.Fprintf(b, "# %s\n", page.Clean(m))
	}
	for _, x := range f.list {
		if _, err := expfmt.MetricFamilyToText(b, x); err != nil {
			return err
		}
	}
	return b.Flush()
}

// promCampaign is what holds for all cells.
func promCampaign(d *report.Document, f *promFamilies) {
	info := [][2]string{{"version", d.Version}}
	if e := d.Environment; e != nil {
		info = append(info, [2]string{"testbed", e.Testbed}, [2]string{"kernel", e.Host.Kernel}, [2]string{"cpu_model", e.Host.CPUModel}, [2]string{"measured_by", e.Version})
	}
	f.add("info", "What was measured where; always 1.", 1, info...)
	if d.Environment != nil && !d.Environment.Finished.IsZero() {
		f.add("finished_timestamp_seconds", "When the campaign ended.", float64(d.Environment.Finished.Unix()))
	}
	f.add("blocks", "Blocks with a measured sample.", float64(d.Tally.Blocks()))
	f.add("samples", "Samples by their status.", float64(d.Tally.OK), [2]string{"status", result.StatusOK})
	f.add("samples", "", float64(d.Tally.Failed), [2]string{"status", result.StatusFailed})
	for _, w := range d.Analysis.Warnings {
		f.add("warning_cells", "Cells that a warning is about; 0 is the whole campaign.", float64(len(w.Cells)), [2]string{"code", string(w.Code)})
	}
}

// promCell is what is known of one cell.
func promCell(d *report.Document, f *promFamilies, s summary.Cell) {
	var labels [][2]string
	for _, c := range csvFactors() {
		labels = append(labels, [2]string{c.name, c.value(s.Cell)})
	}
	with := func(more ...[2]string) [][2]string { return append(slices.Clone(labels), more...) }
	f.add("cell", "1 for each cell, by its state.", 1, with([2]string{"state", report.StateOf(s)}, [2]string{"model_of", d.Model(s.Cell.Network)}, [2]string{"reason", section.WhyMissing(s)})...)
	f.add("cell_blocks", "Measured blocks of a cell.", float64(s.OK), labels...)
	f.add("cell_failed_samples", "Failed samples of a cell.", float64(s.Failed), labels...)
	for _, from := range []map[string]estimate.Estimate{s.Absolute, s.Latency} {
		for _, name := range report.SortedKeys(from) {
			m, _ := report.FindMetric(name)
			f.estimate(name, m.Label, from[name], with([2]string{"statistic", promStatistic(from[name].Method)})...)
		}
	}
	for _, name := range report.SortedKeys(s.EfficiencyByMetric) {
		f.estimate("efficiency_ratio", "A cell against the bare network by a metric, more is better", s.EfficiencyByMetric[name],
			with([2]string{"metric", name}, [2]string{"primary", boolean(name == s.Primary)})...)
	}
	group := s.Cell
	group.Network, group.Cluster = "", ""
	for _, r := range d.Analysis.Rankings {
		for _, n := range r.Ranked {
			if r.Group == group && n.Network == s.Cell.Network {
				f.add("rank", "The best rank that a network may have in a group of cells that differ in nothing else, by a metric.", float64(n.Rank), with([2]string{"metric", r.Metric})...)
				f.add("rank_to", "The worst rank that a network may have in a group of cells that differ in nothing else, by a metric.", float64(n.RankTo), with([2]string{"metric", r.Metric})...)
			}
		}
	}
}

// promStatistic is a method as a label: how often it came about is no part of
// its name.
func promStatistic(m estimate.Method) string {
	switch m {
	case estimate.Median:
		return "median"
	case estimate.MergedPercentile:
		return "merged_histograms"
	}
	return string(m)
}

// promName makes s a name: what a name may not have becomes an underscore.
func promName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
}
