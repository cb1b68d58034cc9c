// Package report is what all reports of a campaign are made from: its records and
// their analysis, sorted for showing, and the words that name networks, situations and
// cells. It computes no statistic and reads no file: every figure comes from stat.
//
// A report is sections (package section) made of elements (package page) that know no
// format; each format (package format) writes the elements in its own way, so that all
// say the same.
package report

import (
	"slices"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/flame"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// Input is what a report is made from. Only Analysis is needed; the report names
// what else is absent.
type Input struct {
	Campaign campaign.Campaign
	Plan     plan.Plan
	// Environment is nil where the run ended before its testbed stood.
	Environment *result.Environment
	// Tally is what the report says of the records in addition to their analysis.
	Tally    Tally
	Analysis stat.Analysis
	Flames   Flames
	// Dir is the result directory, for the paths and commands that the report
	// names; "" leaves them out.
	Dir string
	// Version is that of this program.
	Version string
}

// Document is the input, sorted for showing.
type Document struct {
	Input
	Groups []*Group
	// Unmeasured are the planned cells that have no record at all.
	Unmeasured []result.Cell
}

// New sorts an input for showing.
func New(in Input) *Document {
	d := &Document{Input: in}
	all := slices.Clone(in.Analysis.Cells)
	for _, c := range in.Plan.Cells {
		if _, ok := in.Analysis.Cell(c); !ok {
			d.Unmeasured = append(d.Unmeasured, c)
			all = append(all, summary.Cell{Cell: c})
		}
	}
	slices.SortFunc(d.Unmeasured, result.Cell.Compare)
	slices.SortFunc(all, func(a, b summary.Cell) int { return a.Cell.Compare(b.Cell) })
	byCell, leanedOn := map[result.Cell]summary.Cell{}, map[result.Cell]bool{}
	for _, s := range all {
		byCell[s.Cell] = s
		if !s.Cell.IsBaseline() {
			leanedOn[s.Cell.Baseline()] = true
		}
	}
	bySituation := map[Situation]*Group{}
	for _, s := range all {
		if leanedOn[s.Cell] {
			continue // shown as the baseline of others
		}
		if s.Cell.IsPair() {
			continue // shown as a mesh
		}
		p := SituationOf(s.Cell)
		g := bySituation[p]
		if g == nil {
			g = &Group{Situation: p, Clusters: map[string]string{}, cells: map[result.Cell]summary.Cell{}, Baselines: map[result.Cell]summary.Cell{}, Rankings: map[result.Cell][]rank.Ranking{}}
			bySituation[p] = g
			d.Groups = append(d.Groups, g)
		}
		g.add(s, byCell)
	}
	for _, r := range in.Analysis.Rankings {
		if g := bySituation[SituationOf(r.Group)]; g != nil {
			t := TrafficOf(r.Group)
			g.Rankings[t] = append(g.Rankings[t], r)
		}
	}
	for _, g := range d.Groups {
		g.sort()
	}
	return d
}

// The states of a cell.
const (
	StateMeasured    = "measured"
	StateUnsupported = "unsupported"
	StateFailed      = "failed"
	StateUnmeasured  = "not measured"
)

// StateOf is the state of a cell: one of the constants above.
func StateOf(s summary.Cell) string {
	switch {
	case s.OK > 0:
		return StateMeasured
	case s.Unsupported != "":
		return StateUnsupported
	case s.Failed > 0:
		return StateFailed
	}
	return StateUnmeasured
}

// Flames is the kernel's stacks of a campaign.
type Flames struct {
	Graphs []flame.Graph
	// Alike says what the cells of one graph do not have in common; "" where each
	// is of one cell.
	Alike string
	// Trouble says why some stacks are not in the graphs; "" where all are.
	Trouble string
}

// Networks are those of the report in the order of their colours.
func (d *Document) Networks() []string {
	out := []string{result.HostNetwork}
	for _, g := range d.Groups {
		for _, n := range g.Networks {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}
