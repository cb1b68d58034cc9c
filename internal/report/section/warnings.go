package section

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
)

// warnings is every doubt about the numbers, with its cure, and the cells that
// it is about.
func warnings(d *report.Document) []page.Element {
	tab := &page.Table{Caption: "Doubts about the numbers, the gravest first", Columns: []page.Column{
		{Head: "warning"}, {Head: "cells", Number: true}, {Head: "what was seen", Wide: true}, {Head: "what to do", Wide: true}, {Head: "where", Wide: true}}}
	for _, w := range d.Analysis.Warnings {
		cells, where := fmt.Sprint(len(w.Cells)), d.Where(w.Cells)
		if len(w.Cells) == 0 {
			cells, where = "", "the whole campaign"
		}
		tab.Rows = append(tab.Rows, []page.Field{page.Text(string(w.Code)), page.Text(cells), page.Text(w.Message), page.Text(w.Cure), page.Text(where)})
	}
	var out []page.Element
	if len(tab.Rows) > 0 {
		out = append(out, page.Element{Table: tab})
	}
	if c := Changed(d); len(c) > 0 {
		out = append(out, page.Para("Settings that were different at the end of the campaign:"), page.List(c))
	}
	var said []string
	for _, w := range SampleWarnings(d) {
		said = append(said, w.What+" ("+report.Count(w.N, "sample", "samples")+")")
	}
	if len(said) > 0 {
		out = append(out, page.Para("Remarks of samples:"), page.List(said))
	}
	if len(out) == 0 {
		return []page.Element{page.Para("None.")}
	}
	return out
}

// Changed are the settings that were different at the end of the campaign.
func Changed(d *report.Document) []string {
	if d.Environment == nil {
		return nil
	}
	return d.Environment.Changed
}

// SampleWarnings are the doubts that samples carry themselves, with how many
// samples have each.
func SampleWarnings(d *report.Document) []Counted {
	n := d.Tally.Warnings
	var out []Counted
	for _, k := range report.SortedKeys(n) {
		out = append(out, Counted{k, n[k]})
	}
	slices.SortStableFunc(out, func(a, b Counted) int { return b.N - a.N })
	return out
}

// Counted is a remark, and how many samples have it.
type Counted struct {
	What string
	N    int
}

// WarningCounts says how many doubts there are, by their names.
func WarningCounts(d *report.Document) string {
	var parts []string
	for _, w := range d.Analysis.Warnings {
		s := string(w.Code)
		if len(w.Cells) > 0 {
			s += " (" + report.Count(len(w.Cells), "cell", "cells") + ")"
		}
		parts = append(parts, s)
	}
	if n := len(Changed(d)); n > 0 {
		parts = append(parts, fmt.Sprintf("settings changed (%d)", n))
	}
	if s := SampleWarnings(d); len(s) > 0 {
		parts = append(parts, fmt.Sprintf("remarks of samples (%d)", len(s)))
	}
	if len(parts) == 0 {
		return ""
	}
	return report.Count(len(parts), "warning", "warnings") + ": " + strings.Join(parts, ", ") + "."
}
