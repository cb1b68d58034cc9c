package report

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// failures is every cell of which something is missing, and why.
func failures(d *document) []block {
	tab := &table{Caption: "Cells of which something is missing", Columns: []column{
		{Head: "network"}, {Head: "traffic"}, {Head: "state"}, {Head: "reason", Wide: true},
		{Head: "failed", Number: true}, {Head: "made good", Number: true}, {Head: "measured", Number: true}}}
	if len(d.groups) > 1 {
		tab.Columns = append(tab.Columns, column{Head: "where", Wide: true})
	}
	add := func(s stat.CellSummary, reason string) {
		row := []cell{nameOf(d.name(s.Cell.Network), s.Cell), text(s.Cell.Traffic()), text(state(s)), text(reason),
			text(fmt.Sprint(s.Failed)), text(fmt.Sprint(s.Recovered)), text(fmt.Sprint(s.OK))}
		if len(d.groups) > 1 {
			row = append(row, text(d.short(placeOf(s.Cell))))
		}
		tab.Rows = append(tab.Rows, row)
	}
	for _, s := range d.Analysis.Cells {
		if reason := whyMissing(s); reason != "" {
			add(s, reason)
		}
	}
	for _, c := range d.unmeasured {
		add(stat.CellSummary{Cell: c}, noRecord)
	}
	if len(tab.Rows) == 0 && len(d.Analysis.Cells) == 0 {
		return nil // "nothing was measured" is the answer
	}
	if len(tab.Rows) == 0 {
		return []block{para("Nothing is missing: every planned cell was measured, and no sample failed.")}
	}
	return []block{{Table: tab}}
}

// noRecord is why a planned cell is absent.
const noRecord = "planned, but there is no record of it: the run was stopped before"

// whyMissing says why a cell is failed, in part failed, or unsupported; "" for
// one that is whole.
func whyMissing(s stat.CellSummary) string {
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

// lack is a state and a reason that several cells have in common.
type lack struct {
	state, reason string
	cells         []result.Cell
	failed        int // records
}

// records says how many samples failed for the reason.
func (l lack) records() string {
	if l.failed == 0 {
		return ""
	}
	return " (" + count(l.failed, "sample", "samples") + ")"
}

// lacks gathers the cells of which something is missing by state and reason,
// in the order of the cells.
func (d *document) lacks() []lack {
	var out []lack
	index := map[[2]string]int{}
	add := func(c result.Cell, state, reason string, records int) {
		key := [2]string{state, reason}
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, lack{state: state, reason: reason})
		}
		out[i].cells = append(out[i].cells, c)
		out[i].failed += records
	}
	for _, s := range d.Analysis.Cells {
		if s.Unsupported != "" {
			add(s.Cell, unsupported, s.Unsupported, 0)
		}
		for _, r := range s.Reasons {
			what := failed
			if s.OK > 0 {
				what = "in part failed"
			}
			add(s.Cell, what, r.Reason, r.Count)
		}
	}
	for _, c := range d.unmeasured {
		add(c, unmeasured, noRecord, 0)
	}
	return out
}
