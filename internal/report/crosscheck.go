package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// crossPair is a native traffic and a published tool's, with a check for each
// network and place that has both.
type crossPair struct {
	native, classic result.Cell // of the first of them
	metric          unit.Metric
	checks          []stat.CrossCheck
}

// crossPairs gathers the checks by what is held against what.
func (d *document) crossPairs() []crossPair {
	var out []crossPair
	for _, x := range d.Analysis.CrossChecks {
		i := slices.IndexFunc(out, func(p crossPair) bool {
			return trafficOf(p.native) == trafficOf(x.Native) && trafficOf(p.classic) == trafficOf(x.Classic)
		})
		if i < 0 {
			m, _ := findMetric(x.Metric)
			i, out = len(out), append(out, crossPair{native: x.Native, classic: x.Classic, metric: m})
		}
		out[i].checks = append(out[i].checks, x)
	}
	return out
}

// name says what is held against what.
func (p crossPair) name() string {
	return p.native.Traffic() + " / " + p.classic.Traffic() + ": " + p.metric.Label
}

// at names where a cell was measured: its network, and what differs between
// the places of the report.
func (d *document) at(c result.Cell) string {
	if s := d.short(placeOf(c)); s != "" {
		return d.name(c.Network) + " " + s
	}
	return d.name(c.Network)
}

// crossCheck is a table for each pair, and one of all round trips.
func crossCheck(d *document) []block {
	var out []block
	for i, p := range d.crossPairs() {
		if i == 0 {
			out = append(out, para("The native engine and the published tools, each as it is, where the campaign has both with the same factors. A ratio is native / tool inside each block; the figure is the geometric mean over the blocks, as it is: of a latency less is faster. Single values are medians."))
		}
		out = append(out, block{Table: d.crossTable(p)})
	}
	if t := d.roundTripTable(); t != nil {
		out = append(out, *t)
	}
	return out
}

func (d *document) crossTable(p crossPair) *table {
	tool := p.classic.Workload
	t := &table{Caption: p.name(), Notes: []string{p.checks[0].Differs}, Columns: []column{
		{Head: "network"}, {Head: p.native.Workload, Number: true}, {Head: tool, Number: true},
		{Head: p.native.Workload + " / " + tool, Number: true}, {Head: "interval", Number: true}, {Head: "blocks", Number: true}}}
	for _, x := range p.checks {
		row := []cell{nameOf(d.at(x.Native), x.Native), d.valueOf(x.Native, p.metric), d.valueOf(x.Classic, p.metric)}
		if x.Ratio == nil {
			row = append(row, text("none"), text(""), text("0"))
			t.Notes = append(t.Notes, d.at(x.Native)+": "+x.NoRatio)
		} else {
			row = append(row, cell{Text: ratio(*x.Ratio), Value: &x.Ratio.Value}, intervalCell(asRatio(), *x.Ratio), text(fmt.Sprint(x.Ratio.N)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// asRatio is how a ratio without a name is read: in percent.
func asRatio() unit.Metric { return unit.Metric{Name: "native_over_classic_ratio"} }

// valueOf is a cell's own value of a metric.
func (d *document) valueOf(c result.Cell, m unit.Metric) cell {
	s, _ := d.Analysis.Cell(c)
	e, ok := s.Absolute[m.Name]
	if !ok {
		return text("not measured")
	}
	return cell{Text: m.Format(e.Value, halfwidth(e)), Value: &e.Value}
}

func (d *document) roundTripTable() *block {
	if len(d.Analysis.RoundTrips) == 0 {
		return nil
	}
	t := &table{Caption: "Rate × mean round trip ÷ number under way: 100 % in a closed loop", Columns: []column{
		{Head: "traffic and network"}, {Head: "product", Number: true}, {Head: "interval", Number: true}, {Head: "blocks", Number: true}, {Head: "check"}}}
	for _, r := range d.Analysis.RoundTrips {
		t.Rows = append(t.Rows, []cell{nameOf(r.Cell.Traffic()+", "+d.at(r.Cell), r.Cell), {Text: ratio(r.Product), Value: &r.Product.Value},
			intervalCell(asRatio(), r.Product), text(fmt.Sprint(r.Product.N)), text(roundTripWord(r))})
	}
	t.Notes = []string{fmt.Sprintf("ok: within %g %% of 100 %%. Near 50 %% a tool tells one-way times; below 100 %% the client waits between transactions.", 100*stat.RoundTripTolerance)}
	return &block{Table: t}
}

func roundTripWord(r stat.RoundTripCheck) string {
	if r.OK {
		return "ok"
	}
	return fmt.Sprintf("not ok: %s off", unit.Percent(math.Abs(r.Product.Value-1), nan()))
}

// crossLines are the checks for a terminal: a short line for each pair, and
// one for all round trips.
func (d *document) crossLines() []string {
	var out []string
	for _, p := range d.crossPairs() {
		var parts []string
		for _, x := range p.checks {
			value := "none"
			if x.Ratio != nil {
				value = ratio(*x.Ratio)
			}
			parts = append(parts, d.at(x.Native)+" "+value)
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
		out = append(out, fmt.Sprintf("rate × mean round trip is the number under way in %d of %s", good, count(n, "cell", "cells")))
	}
	return out
}
