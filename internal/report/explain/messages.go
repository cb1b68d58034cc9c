package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/job"
	"github.com/cnibench/cnibench/internal/unit"
)

// messageWords say what the model and its two numbers mean.
const messageWords = "By Hockney's model a message of n bytes takes α + n/β from one end to the other. α is what a message takes however short it is; β is the rate at which further bytes follow. " +
	"The times are half of tcp_rr's round trips. The intervals contain the noise between blocks, and not that times may not be a straight line."

// jobWords say what a prediction leaves out.
const jobWords = "Predicted is what the algorithm's messages take by the model, one step after the other. It leaves out computing, late ranks, CPUs that ranks share, and links that several messages use at the same time. The ratio is measured by predicted, inside blocks."

// messageLines are the models of what messages cost, and what they predict.
func messageLines(sc screen.Screen, d *report.Document) []string {
	all := d.Analysis.Hockneys
	if len(all) == 0 {
		return nil
	}
	lines := []string{"", sc.Bold("What a message costs")}
	lines = append(append(lines, sc.Wrap(messageWords, "", "")...), "")
	lines = append(lines, sc.Table(*messageTable(d, all))...)
	for _, h := range all {
		if words := misfitWords(d, h); words != "" {
			lines = append(lines, sc.Wrap(words, "! ", "  ")...)
		}
	}
	if len(d.Analysis.Jobs) == 0 {
		return lines
	}
	lines = append(lines, "", sc.Bold("What that predicts for operations"+commonRanks(d.Analysis.Jobs)))
	lines = append(lines, sc.Wrap(jobWords, "", "")...)
	for _, t := range jobTables(d, d.Analysis.Jobs) {
		lines = append(append(lines, ""), sc.Wrap(t.Caption, "", "")...)
		lines = append(lines, sc.Table(t)...)
	}
	for _, words := range jobRemarks(d.Analysis.Jobs) {
		lines = append(lines, sc.Wrap(words, "! ", "  ")...)
	}
	return lines
}

// modelName names a network, its situation where there are several, and the conditions.
func modelName(d *report.Document, c result.Cell, situations int) string {
	name := d.Name(c.Network)
	if situations > 1 {
		name += ", " + report.SituationOf(c).String()
	}
	return name
}

// situationsOf is how many different situations some cells were measured in.
func situationsOf(cells []result.Cell) int {
	var seen []report.Situation
	for _, c := range cells {
		p := report.SituationOf(c)
		if c.IsBaseline() { // its path is its own
			p.Path = result.PathPodToPod
		}
		if !slices.Contains(seen, p) {
			seen = append(seen, p)
		}
	}
	return len(seen)
}

func messageTable(d *report.Document, all []job.Hockney) *page.Table {
	var cells []result.Cell
	for _, h := range all {
		cells = append(cells, h.Cell)
	}
	situations := situationsOf(cells)
	tab := &page.Table{Columns: []page.Column{{Head: "network"}, {Head: "α", Number: true}, {Head: "β", Number: true, Joined: true}, {Head: "sizes"}, {Head: "blocks", Number: true}, {Head: "model off by", Sub: "at most", Number: true}, {Head: "held-out sizes", Sub: "off by at most", Number: true}}}
	for _, h := range all {
		beta := page.Text("not known")
		if h.Beta != nil {
			beta = page.Field{Text: withWidth(*h.Beta, "B/s"), Value: &h.Beta.Value}
		}
		within, heldOut := worst(h, func(s job.HockneySize) *estimate.Estimate { return &s.OfModel }), worst(h, func(s job.HockneySize) *estimate.Estimate { return s.HeldOut })
		tab.Rows = append(tab.Rows, []page.Field{
			page.Text(modelName(d, h.Cell, situations) + conditionWords(h.Cell)), {Text: withWidth(h.Alpha, "s"), Value: &h.Alpha.Value}, beta,
			page.Text(fmt.Sprintf("%d to %d B (%d)", h.Sizes[0].MessageBytes, h.Sizes[len(h.Sizes)-1].MessageBytes, len(h.Sizes))),
			page.Text(fmt.Sprint(h.Alpha.N)), page.Text(within), page.Text(heldOut),
		})
	}
	return tab
}

// conditionWords are where the ends of a model run, as tcp_rr may be measured with
// several.
func conditionWords(c result.Cell) string {
	return ", CPUs " + cmp.Or(c.CPUs, result.CPUsFree)
}

func withWidth(e estimate.Estimate, of string) string {
	return unit.Estimate(e.Value, report.Halfwidth(e), of)
}

// worst is the largest share that a model is off by at any size.
func worst(h job.Hockney, of func(job.HockneySize) *estimate.Estimate) string {
	most, at := -1.0, 0
	for _, s := range h.Sizes {
		e := of(s)
		if e == nil || !(e.Value > 0) {
			continue
		}
		if off := math.Abs(e.Value - 1); off > most {
			most, at = off, s.MessageBytes
		}
	}
	if most < 0 {
		return "not known"
	}
	return fmt.Sprintf("%s (%d B)", unit.Percent(most, math.NaN()), at)
}

// misfitWords say at which sizes the model is off by more than its noise, and what that
// means; "" where there is none.
func misfitWords(d *report.Document, h job.Hockney) string {
	var out []string
	if h.Misfit {
		var sizes []string
		for _, s := range h.Sizes {
			if s.Misfit {
				sizes = append(sizes, fmt.Sprintf("%s at %d B", unit.Change(s.OfModel.Value, report.Halfwidth(s.OfModel)), s.MessageBytes))
			}
		}
		out = append(out, fmt.Sprintf("%s: the times are not a straight line: measured less predicted is %s. Use the model between sizes that it fits, and measure the others.", d.Name(h.Cell.Network), report.And(sizes)))
	}
	if low, _, ok := h.Alpha.Interval(); ok && low <= 0 {
		out = append(out, fmt.Sprintf("%s: α is not significantly above 0: measure smaller messages.", d.Name(h.Cell.Network)))
	}
	if h.Beta == nil {
		out = append(out, fmt.Sprintf("%s: what a byte adds is not significantly above 0, so β is not known: measure larger messages.", d.Name(h.Cell.Network)))
	}
	return strings.Join(out, " ")
}

// jobTables are one for each network and situation, in the order of their models.
func jobTables(d *report.Document, all []job.Prediction) []page.Table {
	var cells []result.Cell
	for _, p := range all {
		cells = append(cells, p.Cell)
	}
	situations := situationsOf(cells)
	var out []page.Table
	for _, h := range d.Analysis.Hockneys {
		tab := page.Table{Caption: modelName(d, h.Cell, situations) + conditionWords(h.Cell) + ":",
			Columns: []page.Column{{Head: "operation"}, {Head: "predicted", Number: true}, {Head: "measured", Number: true, Joined: true}, {Head: "ratio", Number: true, Joined: true}}}
		for _, p := range all {
			if p.By != h.Cell {
				continue
			}
			tab.Rows = append(tab.Rows, []page.Field{
				page.Text(operationWords(p.Cell, all)),
				{Text: withWidth(p.Predicted, "s"), Value: &p.Predicted.Value}, {Text: withWidth(p.Measured, "s"), Value: &p.Measured.Value},
				{Text: unit.Estimate(p.Ratio.Value, report.Halfwidth(p.Ratio), ""), Value: &p.Ratio.Value},
			})
		}
		if len(tab.Rows) > 0 {
			out = append(out, tab)
		}
	}
	return out
}

// operationWords are a cell's traffic, without what all operations have in common: CPUs
// and numbers of ranks.
func operationWords(c result.Cell, all []job.Prediction) string {
	for _, name := range []string{"cpus", "ranks", "ranks_per_node"} {
		f, _ := result.FindFactor(name)
		if !slices.ContainsFunc(all, func(p job.Prediction) bool { return f.Compare(p.Cell, c) != 0 }) {
			f.Copy(&c, result.Cell{})
		}
	}
	return report.TrafficOf(c).Traffic()
}

// commonRanks are the ranks that all operations have; "" where they differ.
func commonRanks(all []job.Prediction) string {
	common := result.Cell{Ranks: all[0].Cell.Ranks, RanksPerNode: all[0].Cell.RanksPerNode}
	for _, p := range all {
		if p.Cell.Ranks != common.Ranks || p.Cell.RanksPerNode != common.RanksPerNode {
			return ""
		}
	}
	return " with " + common.Traffic()
}

// jobRemarks say what of the measured times the predictions cannot have.
func jobRemarks(all []job.Prediction) []string {
	var out []string
	shared := 0.0
	other, perNode := false, false
	for _, p := range all {
		if p.RanksPerCPU != nil {
			shared = max(shared, *p.RanksPerCPU)
		}
		other = other || !p.SameConditions
		perNode = perNode || p.Cell.RanksPerNode > 1
	}
	if shared > 1 {
		out = append(out, fmt.Sprintf("Up to %s ranks shared a CPU, and the predictions give each its own: operations take longer for that alone. Compare networks with each other; ratios to the prediction belong to this machine.", unit.Value(shared, "")))
	}
	if other {
		out = append(out, "Some operations were measured under other conditions (CPUs, congestion_control) than the round trips of their model: name the same for both in the campaign.")
	}
	if perNode {
		out = append(out, "With several ranks on a node some messages stay inside it; the predictions are of messages between nodes for all.")
	}
	return out
}
