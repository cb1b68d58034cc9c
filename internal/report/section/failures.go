package section

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// failures is every cell of which something is missing, and why.
func failures(d *report.Document) []page.Element {
	tab := &page.Table{Caption: "Cells of which something is missing", Columns: []page.Column{
		{Head: "network"}, {Head: "traffic"}, {Head: "state"}, {Head: "reason", Wide: true},
		{Head: "failed", Number: true}, {Head: "made good", Number: true}, {Head: "measured", Number: true}}}
	if len(d.Groups) > 1 {
		tab.Columns = append(tab.Columns, page.Column{Head: "where", Wide: true})
	}
	add := func(s summary.Cell, reason string) {
		row := []page.Field{page.NameOf(d.Name(s.Cell.Network), s.Cell), page.Text(s.Cell.Traffic()), page.Text(report.StateOf(s)), page.Text(reason),
			page.Text(fmt.Sprint(s.Failed)), page.Text(fmt.Sprint(s.Recovered)), page.Text(fmt.Sprint(s.OK))}
		if len(d.Groups) > 1 {
			row = append(row, page.Text(d.Short(report.SituationOf(s.Cell))))
		}
		tab.Rows = append(tab.Rows, row)
	}
	for _, s := range d.Analysis.Cells {
		if reason := WhyMissing(s); reason != "" {
			add(s, reason)
		}
	}
	for _, c := range d.Unmeasured {
		add(summary.Cell{Cell: c}, NoRecord)
	}
	if len(tab.Rows) == 0 && len(d.Analysis.Cells) == 0 {
		return nil // "nothing was measured" is the answer
	}
	if len(tab.Rows) == 0 {
		return []page.Element{page.Para("Nothing is missing: every planned cell was measured, and no sample failed.")}
	}
	return []page.Element{{Table: tab}}
}

// NoRecord is why a planned cell is absent.
const NoRecord = "planned, but there is no record of it: the run was stopped before"

// WhyMissing says why a cell is failed, in part failed, or unsupported; "" for
// one that is whole.
func WhyMissing(s summary.Cell) string {
	var parts []string
	if s.Unsupported != "" {
		parts = append(parts, s.Unsupported)
	}
	for _, r := range s.Reasons {
		reason := r.Reason
		if r.Count > 1 {
			reason += fmt.Sprintf(" (%d ×)", r.Count)
		}
		parts = append(parts, reason)
	}
	return strings.Join(parts, "; ")
}

// Lack is a state and a reason that several cells have in common.
type Lack struct {
	State, Reason string
	Cells         []result.Cell
	failed        int // records
}

// Records says how many samples failed for the reason.
func (l Lack) Records() string {
	if l.failed == 0 {
		return ""
	}
	return " (" + report.Count(l.failed, "sample", "samples") + ")"
}

// Lacks gathers the cells of which something is missing by state and reason,
// in the order of the cells.
func Lacks(d *report.Document) []Lack {
	var out []Lack
	index := map[[2]string]int{}
	add := func(c result.Cell, state, reason string, records int) {
		key := [2]string{state, reason}
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, Lack{State: state, Reason: reason})
		}
		out[i].Cells = append(out[i].Cells, c)
		out[i].failed += records
	}
	for _, s := range d.Analysis.Cells {
		if s.Unsupported != "" {
			add(s.Cell, report.StateUnsupported, s.Unsupported, 0)
		}
		for _, r := range s.Reasons {
			what := report.StateFailed
			if s.OK > 0 {
				what = "in part failed"
			}
			add(s.Cell, what, r.Reason, r.Count)
		}
	}
	for _, c := range d.Unmeasured {
		add(c, report.StateUnmeasured, NoRecord, 0)
	}
	return out
}

// LackCounts says how many cells lack something, by state.
func LackCounts(d *report.Document) string {
	n := map[string]int{}
	for _, l := range Lacks(d) {
		n[l.State] += len(l.Cells)
	}
	var parts []string
	for _, state := range report.SortedKeys(n) {
		parts = append(parts, report.Count(n[state], "cell", "cells")+" "+state)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "."
}
