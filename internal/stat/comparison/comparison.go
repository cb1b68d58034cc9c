// Package comparison compares two result sets, cell by cell, and the environments that they
// were measured in. It is pure.
package comparison

import (
	"math"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// Side is one of two result sets.
type Side struct {
	Samples     []result.Sample
	Environment result.Environment
}

// Options say how two result sets are compared.
type Options struct {
	dataset.Options
	// Threshold is the relative difference that matters, 0.03 for 3 %.
	Threshold float64
	// Tools names the programs that make a cell's traffic, none where cnibench itself
	// does. Nil: every difference between tools matters for every cell.
	Tools func(result.Cell) []string
	// KnownTools are all that Tools can name. Any other tool matters for every cell.
	KnownTools []string
	// Plugins names the CNI plugins that a network of the lab uses; known is false for
	// a network that is not in the program's list. Nil: every plugin matters for every
	// cell but the baseline's.
	Plugins func(network string) (names []string, known bool)
}

// Verdict is the result for a cell that both sides have.
type Verdict string

// The verdicts.
const (
	// Worse and Better: beyond the threshold, and beyond chance.
	Worse  Verdict = "worse"
	Better Verdict = "better"
	// Same: the whole interval is inside the threshold.
	Same Verdict = "no difference beyond the threshold"
	// CannotTell: neither of these is shown.
	CannotTell Verdict = "cannot tell"
	// Broken: the base measured the cell, every sample of the new side failed.
	Broken Verdict = "broken"
)

// Cell is one cell on both sides.
type Cell struct {
	Cell   result.Cell `json:"cell"`
	Metric string      `json:"metric"`
	// Change is new against base, above 1 better and below 1 worse whichever way
	// the metric is better; nil where one side has nothing.
	Change *estimate.Estimate `json:"change,omitempty"`
	// ByEfficiency reports that the efficiencies were compared, from which the
	// machine's own change cancels; else the absolute values were.
	ByEfficiency bool `json:"by_efficiency"`
	// Base and New are the geometric means of the metric, base units.
	Base *estimate.Estimate `json:"base,omitempty"`
	New  *estimate.Estimate `json:"new,omitempty"`
	// BaseValues and NewValues are the metric in each measured block, for tools
	// that compare for themselves (benchstat).
	BaseValues []float64 `json:"base_values,omitempty"`
	NewValues  []float64 `json:"new_values,omitempty"`
	// P is Welch's p-value, Adjusted that after Holm over all cells.
	P        float64 `json:"p"`
	Adjusted float64 `json:"adjusted"`
	Verdict  Verdict `json:"verdict"`
	// Why adds to CannotTell and Broken.
	Why string `json:"why,omitempty"`
	// Needs is what the next run takes to decide a cell that CannotTell; nil where
	// nothing can be estimated.
	Needs *Needs `json:"needs,omitempty"`

	x, y estimate.Moments // of the logs that were compared, base and new
}

// Comparison compares two result sets.
type Comparison struct {
	Confidence float64 `json:"confidence"`
	Threshold  float64 `json:"threshold"`
	// Cells that both sides have, in the order of result.Cell.Compare.
	Cells []Cell `json:"cells"`
	// OnlyBase and OnlyNew are cells of one side alone.
	OnlyBase []result.Cell `json:"only_base,omitempty"`
	OnlyNew  []result.Cell `json:"only_new,omitempty"`
	// Differences names what differs between the environments and matters for a
	// compared cell, "kernel: 6.1 → 6.18". Where it matters for some cells only, these
	// are named.
	Differences []string `json:"differences,omitempty"`
	// Harmless names what differs and matters for no compared cell.
	Harmless []string `json:"harmless_differences,omitempty"`
	// Regression: at least one cell is Worse or Broken (exit status 3).
	Regression bool `json:"regression"`
}

// Compare compares the next side, the new one, with the base, cell by cell. The probability
// that it calls any cell different without a true difference is at most
// 1 − Confidence over all cells together.
func Compare(base, next Side, opt Options) Comparison {
	b, n := dataset.Collect(base.Samples, opt.Options), dataset.Collect(next.Samples, opt.Options)
	out := Comparison{Confidence: b.Options.Confidence, Threshold: opt.Threshold}
	var ps []float64
	for _, d := range b.Cells {
		e := n.ByCell[d.Cell]
		if e == nil {
			out.OnlyBase = append(out.OnlyBase, d.Cell)
			continue
		}
		cell := compareCell(b, n, d, e)
		out.Cells = append(out.Cells, cell)
		ps = append(ps, cell.P)
	}
	for _, e := range n.Cells {
		if b.ByCell[e.Cell] == nil {
			out.OnlyNew = append(out.OnlyNew, e.Cell)
		}
	}
	for i, adjusted := range estimate.Holm(ps) {
		c := &out.Cells[i]
		c.Adjusted = adjusted
		if c.Verdict == "" {
			c.Verdict = judge(*c.Change, adjusted < 1-out.Confidence, opt.Threshold)
		}
		out.Regression = out.Regression || c.Verdict == Worse || c.Verdict == Broken
	}
	out.needs(secondsPerBlock(next.Samples))
	out.differences(base.Environment, next.Environment, opt)
	return out
}

// judge says what a change and its significance mean.
func judge(change estimate.Estimate, beyondChance bool, threshold float64) Verdict {
	low, high, ok := change.Interval()
	limit := math.Log1p(threshold)
	log := math.Log(change.Value)
	switch {
	case !ok:
		return CannotTell
	case beyondChance && log > limit:
		return Better
	case beyondChance && log < -limit:
		return Worse
	case math.Log(low) >= -limit && math.Log(high) <= limit:
		return Same
	}
	return CannotTell
}

// compareCell compares one cell. A verdict is set only where nothing can be
// tested; P is then 1, so that the cell costs the others little.
func compareCell(b, n *dataset.Dataset, d, e *dataset.CellData) Cell {
	out := Cell{Cell: d.Cell, Metric: d.Primary, P: 1}
	out.Base, out.New = meanOf(b, d, d.Primary), meanOf(n, e, d.Primary)
	out.BaseValues, out.NewValues = estimate.Values(d.Series(d.Primary)), estimate.Values(e.Series(d.Primary))
	switch {
	case len(d.OK) == 0:
		out.Verdict, out.Why = CannotTell, "base: "+whyUnmeasured(d)
		return out
	case len(e.OK) == 0 && e.Failed > 0 && e.Unsupported == "":
		out.Verdict, out.Why = Broken, "new: "+whyUnmeasured(e)
		return out
	case len(e.OK) == 0:
		out.Verdict, out.Why = CannotTell, "new: "+whyUnmeasured(e)
		return out
	}
	better := b.Better[d.Primary]
	x, y := estimate.Logs(d.Series(d.Primary), better), estimate.Logs(e.Series(d.Primary), better)
	if db, eb := b.UsableBaseline(d), n.UsableBaseline(e); db != nil && eb != nil {
		rx := estimate.LogRatios(d.Series(d.Primary), db.Series(d.Primary), better)
		ry := estimate.LogRatios(e.Series(d.Primary), eb.Series(d.Primary), better)
		if len(rx) >= 2 && len(ry) >= 2 {
			x, y, out.ByEfficiency = rx, ry, true
		}
	}
	if len(x) == 0 || len(y) == 0 {
		out.Verdict, out.Why = CannotTell, "nothing above zero was measured on one side"
		return out
	}
	out.x, out.y = estimate.MomentsOf(x), estimate.MomentsOf(y)
	change, p := welch(out.x, out.y, b.Options.Confidence)
	out.Change, out.P = &change, p
	if change.Low == nil {
		out.Verdict, out.Why = CannotTell, "an interval takes 2 blocks on each side"
	}
	return out
}

// meanOf is the geometric mean of a metric; nil of nothing.
func meanOf(c *dataset.Dataset, d *dataset.CellData, metric string) *estimate.Estimate {
	ls := estimate.Logs(d.Series(metric), 0)
	if len(ls) == 0 {
		return nil
	}
	e := c.Tables.GeometricMean(ls)
	return &e
}

// whyUnmeasured says why a cell has no value.
func whyUnmeasured(d *dataset.CellData) string { return dataset.NoEfficiency(d, d) }

// welch compares two means of logs without taking their spreads for equal
// (Welch 1947), with Satterthwaite's degrees of freedom.
func welch(x, y estimate.Moments, confidence float64) (estimate.Estimate, float64) {
	diff := y.Mean - x.Mean
	e := estimate.Estimate{Value: math.Exp(diff), N: min(x.N, y.N), Method: estimate.WelchRatio}
	if x.N < 2 || y.N < 2 {
		e.Needed = 2
		return e, 1
	}
	vx, vy := x.SD*x.SD/float64(x.N), y.SD*y.SD/float64(y.N)
	if vx+vy == 0 { // no spread at all: equal is equal and other is other
		e.Bound(e.Value, e.Value, confidence)
		if diff == 0 {
			return e, 1
		}
		return e, 0
	}
	dof := (vx + vy) * (vx + vy) / (vx*vx/float64(x.N-1) + vy*vy/float64(y.N-1))
	h := estimate.TQuantile(dof, 1-(1-confidence)/2) * math.Sqrt(vx+vy)
	e.Bound(math.Exp(diff-h), math.Exp(diff+h), confidence)
	return e, estimate.TTest(diff/math.Sqrt(vx+vy), dof)
}

func orUnknown(s string) string {
	if s == "" {
		return "(unknown)"
	}
	return s
}
