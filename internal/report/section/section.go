// Package section has the sections of a run's report. One section is one file, with
// files named after it where it is long, and one line of List.
package section

import (
	"slices"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// Section is one part of a report.
type Section struct {
	// ID names the section in links.
	ID, Title string
	// Build gives its elements; none leave the section out.
	Build func(*report.Document) []page.Element
	// Folded sections are shown in Markdown only when opened.
	Folded bool
	// Drawn sections have nothing but charts, and words about them: they are
	// left out where nothing can be drawn.
	Drawn bool
}

// List is every section, in the order of the report.
func List() []Section {
	return []Section{
		{ID: "noise", Title: "This machine's noise", Build: Noise},
		{ID: "goals", Title: "In short", Build: goals},
		{ID: "answer", Title: "The answer", Build: answer},
		{ID: "mesh", Title: "Pairs of nodes", Build: Mesh},
		{ID: "efficiency", Title: "Efficiency against the bare network", Build: efficiency},
		{ID: "figures", Title: "Pod networks compared with the bare network", Build: beside, Drawn: true},
		{ID: "absolute", Title: "Absolute values", Build: absolute, Folded: true},
		{ID: "latency", Title: "Latency percentiles", Build: latency, Folded: true},
		{ID: "time", Title: "Over time", Build: overTime, Drawn: true},
		{ID: "scaling", Title: "Scaling with streams", Build: scaling, Drawn: true},
		{ID: "cpu", Title: "CPU cost", Build: cpu, Folded: true},
		{ID: "where", Title: "Where the CPU time goes", Build: where, Folded: true},
		{ID: "ladder", Title: "Step by step from the bare network", Build: ladder, Folded: true},
		{ID: "flame", Title: "Flame graphs", Build: flames, Drawn: true},
		{ID: "setup", Title: "Set-up time of pods", Build: setup, Drawn: true},
		{ID: "cross-check", Title: "Cross-checks", Build: crossCheck, Folded: true},
		{ID: "warnings", Title: "Warnings", Build: warnings},
		{ID: "failures", Title: "Failed, unsupported and not measured", Build: failures},
		{ID: "environment", Title: "Environment", Build: environment, Folded: true},
		{ID: "method", Title: "Method", Build: method, Folded: true},
		{ID: "repeat", Title: "How to repeat this", Build: repeat, Folded: true},
	}
}

// orMissing are the elements of a section, or where it has none, why.
func orMissing(d *report.Document, why string, elements []page.Element) []page.Element {
	if len(elements) == 0 && len(d.Analysis.Cells) > 0 {
		return []page.Element{page.Drawing(page.Missing("", why, nil))}
	}
	return elements
}

// without says which networks a chart lacks, and why; "" where it has all.
func without(rows []report.Entry, has func(report.Entry) bool, why string) string {
	var names []string
	for _, r := range rows {
		if !has(r) {
			names = append(names, r.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " Not drawn: " + report.And(names) + ", " + why + "."
}

// seriesOf is a series of a network or the baseline, without values.
func seriesOf(e report.Entry) page.Series {
	of := e.Of()
	return page.Series{Name: e.Name, Network: of.Network, Of: &of}
}

// perTraffic gathers elements for each traffic, under a heading for each group
// that has any. Words that are true of all come first.
func perTraffic(d *report.Document, build func(*report.Group, result.Cell) []page.Element, words string) []page.Element {
	var out []page.Element
	for _, g := range d.Groups {
		var own []page.Element
		for _, t := range g.Traffics {
			own = append(own, build(g, t)...)
		}
		if len(own) > 0 {
			if len(out) == 0 {
				out = append(out, page.Para(words))
			}
			out = append(append(out, page.HeadOf(g.Title(), g.At("", result.Cell{}))), own...)
		}
	}
	return out
}

// rowName is the first field of an entry's row.
func rowName(e report.Entry) page.Field { return page.NameOf(e.Name, e.Of()) }

// measuredBy lists those of some metrics that are wanted and that any row has.
func measuredBy(rows []report.Entry, of []unit.Metric, wanted func(unit.Metric) bool, find report.EstimateOf) []unit.Metric {
	var out []unit.Metric
	for _, m := range of {
		has := func(r report.Entry) bool { _, ok := find(r.Summary, m.Name); return ok }
		if wanted(m) && slices.ContainsFunc(rows, has) {
			out = append(out, m)
		}
	}
	return out
}

// metricTable is networks × metrics.
func metricTable(d *report.Document, rows []report.Entry, shown []unit.Metric, caption string, find report.EstimateOf) *page.Table {
	tab := &page.Table{Caption: caption, Columns: []page.Column{{Head: "network"}}}
	for _, m := range shown {
		tab.Columns = append(tab.Columns, page.Column{Head: m.Label, Number: true})
	}
	for _, r := range rows {
		row := []page.Field{rowName(r)}
		for _, m := range shown {
			if e, ok := find(r.Summary, m.Name); ok {
				row = append(row, page.Field{Text: m.Format(e.Value, report.Halfwidth(e)), Value: &e.Value})
			} else {
				row = append(row, page.Text("not measured"))
			}
		}
		tab.Rows = append(tab.Rows, row)
	}
	return tab
}

// tableOf is a table about some factors, if there is one.
func tableOf(of *result.Cell, t *page.Table) []page.Element {
	if t == nil {
		return nil
	}
	t.Of = of
	return []page.Element{{Table: t}}
}

// categoriesOf are the rows of a chart of stacks.
func categoriesOf(rows []report.Entry) []page.Category {
	var out []page.Category
	for _, r := range rows {
		of := r.Of()
		out = append(out, page.Category{Name: r.Name, Of: &of})
	}
	return out
}

// Elements are the section's elements without empty ones, of clean text; charts
// only where they can be drawn.
func (s Section) Elements(d *report.Document, draw bool) []page.Element {
	if s.Drawn && !draw {
		return nil
	}
	var out []page.Element
	for _, b := range s.Build(d) {
		empty := b.Head == "" && b.Para == "" && len(b.List) == 0 && b.Table == nil && b.Code == "" && b.Chart == nil
		if !empty && (draw || b.Chart == nil) {
			out = append(out, b.MapText(page.Clean))
		}
	}
	return out
}
