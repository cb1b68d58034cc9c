package section

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/unit"
)

// crossPair is a native traffic and a published tool's, with a check for each
// network and situation that has both.
type crossPair struct {
	native, classic result.Cell // of the first of them
	metric          unit.Metric
	checks          []stat.CrossCheck
}

// crossPairs gathers the checks by the two traffics that they compare.
func crossPairs(d *report.Document) []crossPair {
	var out []crossPair
	for _, x := range d.Analysis.CrossChecks {
		i := slices.IndexFunc(out, func(p crossPair) bool {
			return report.TrafficOf(p.native) == report.TrafficOf(x.Native) && report.TrafficOf(p.classic) == report.TrafficOf(x.Classic)
		})
		if i < 0 {
			m, _ := report.FindMetric(x.Metric)
			i, out = len(out), append(out, crossPair{native: x.Native, classic: x.Classic, metric: m})
		}
		out[i].checks = append(out[i].checks, x)
	}
	return out
}

// name says which traffics are compared.
func (p crossPair) name() string {
	return p.native.Traffic() + " / " + p.classic.Traffic() + ": " + p.metric.Label
}

// CellAt names where a cell was measured: its network, and what differs between
// the situations of the report.
func CellAt(d *report.Document, c result.Cell) string {
	if s := d.Short(report.SituationOf(c)); s != "" {
		return d.Name(c.Network) + " " + s
	}
	return d.Name(c.Network)
}

// crossCheck is a table for each pair, and one of all round trips.
func crossCheck(d *report.Document) []page.Element {
	var out []page.Element
	for i, p := range crossPairs(d) {
		if i == 0 {
			out = append(out, page.Para("The native engine and the published tools, each as it is, where the campaign has both with the same factors. A ratio is native / tool inside each block; the figure is the geometric mean over the blocks, as it is: of a latency less is faster. Single values are medians."))
		}
		out = append(out, page.Element{Table: crossTable(d, p)})
	}
	if t := roundTripTable(d); t != nil {
		out = append(out, *t)
	}
	return out
}

func crossTable(d *report.Document, p crossPair) *page.Table {
	tool := p.classic.Workload
	t := &page.Table{Caption: p.name(), Notes: []string{p.checks[0].Differs}, Columns: []page.Column{
		{Head: "network"}, {Head: p.native.Workload, Number: true}, {Head: tool, Number: true},
		{Head: p.native.Workload + " / " + tool, Number: true}, {Head: "interval", Number: true}, {Head: "blocks", Number: true}}}
	for _, x := range p.checks {
		row := []page.Field{page.NameOf(CellAt(d, x.Native), x.Native), valueOf(d, x.Native, p.metric), valueOf(d, x.Classic, p.metric)}
		if x.Ratio == nil {
			row = append(row, page.Text("none"), page.Text(""), page.Text("0"))
			t.Notes = append(t.Notes, CellAt(d, x.Native)+": "+x.NoRatio)
		} else {
			row = append(row, page.Field{Text: report.Ratio(*x.Ratio), Value: &x.Ratio.Value}, intervalField(asRatio(), *x.Ratio), page.Text(fmt.Sprint(x.Ratio.N)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// asRatio is how a ratio without a name is read: in percent.
func asRatio() unit.Metric { return unit.Metric{Name: "native_over_classic_ratio"} }

// valueOf is a cell's own value of a metric.
func valueOf(d *report.Document, c result.Cell, m unit.Metric) page.Field {
	s, _ := d.Analysis.Cell(c)
	e, ok := s.Absolute[m.Name]
	if !ok {
		return page.Text("not measured")
	}
	return page.Field{Text: m.Format(e.Value, report.Halfwidth(e)), Value: &e.Value}
}

func roundTripTable(d *report.Document) *page.Element {
	if len(d.Analysis.RoundTrips) == 0 {
		return nil
	}
	t := &page.Table{Caption: "Rate × mean round trip ÷ number under way: 100 % in a closed loop", Columns: []page.Column{
		{Head: "traffic and network"}, {Head: "product", Number: true}, {Head: "interval", Number: true}, {Head: "blocks", Number: true}, {Head: "check"}}}
	for _, r := range d.Analysis.RoundTrips {
		t.Rows = append(t.Rows, []page.Field{page.NameOf(r.Cell.Traffic()+", "+CellAt(d, r.Cell), r.Cell), {Text: report.Ratio(r.Product), Value: &r.Product.Value},
			intervalField(asRatio(), r.Product), page.Text(fmt.Sprint(r.Product.N)), page.Text(RoundTripVerdict(r))})
	}
	t.Notes = []string{fmt.Sprintf("ok: within %g %% of 100 %%. Near 50 %% a tool reports one-way times; below 100 %% the client waits between transactions.", 100*summary.RoundTripTolerance)}
	return &page.Element{Table: t}
}

// RoundTripVerdict is the verdict of a check, in words.
func RoundTripVerdict(r summary.RoundTripCheck) string {
	if r.OK {
		return "ok"
	}
	return fmt.Sprintf("not ok: %s off", unit.Percent(math.Abs(r.Product.Value-1), math.NaN()))
}

// CrossLines are the checks for a terminal: a short line for each pair, and
// one for all round trips.
func CrossLines(d *report.Document) []string {
	var out []string
	for _, p := range crossPairs(d) {
		var parts []string
		for _, x := range p.checks {
			value := "none"
			if x.Ratio != nil {
				value = report.Ratio(*x.Ratio)
			}
			parts = append(parts, CellAt(d, x.Native)+" "+value)
		}
		out = append(out, p.name()+": "+strings.Join(parts, ", "))
	}
	if n := len(d.Analysis.RoundTrips); n > 0 && len(out) > 0 {
		good := 0
		for _, r := range d.Analysis.RoundTrips {
			if r.OK {
				good++
			}
		}
		out = append(out, fmt.Sprintf("rate × mean round trip is the number under way in %d of %s", good, report.Count(n, "cell", "cells")))
	}
	return out
}
