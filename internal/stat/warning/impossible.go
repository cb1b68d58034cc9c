package warning

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stopping"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// Answers that cannot be true. Each is a sign that something else than the network
// differed between cells: a condition of the experiment.

const (
	// fewestInHalf is the number of blocks in each half that are compared.
	fewestInHalf = 4
	// countedApart is how far counted instructions must be apart before times must
	// be in the same order.
	countedApart = 0.05
)

func warnImpossible(c *dataset.Dataset, a Answers) Warning {
	var f finding
	uncontrolled := false
	implausible := summary.Impossible(a.Cells)
	for _, s := range a.Cells {
		if implausible[s.Cell] {
			f.add(s.Cell, s.Efficiency.Value, s.Efficiency.Value)
			uncontrolled = uncontrolled || s.Cell.CPUs == "" || s.Cell.CongestionControl == "" && !s.Cell.Datagrams()
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	w := Warning{Code: Impossible, Cells: f.cells,
		Message: fmt.Sprintf("faster than the bare network in %s, most %s: %.0f %% of it. Their packets take the bare network's path and more, so something else than the network differed; these cells are not ranked", counted(len(f.cells), "cell"), named(f.worst), 100*f.value),
		Cure:    "look for a condition that changes from cell to cell: loss, MTU, CPU frequency, other load; measure with smaller slices (sampling.slice_seconds)"}
	if uncontrolled {
		w.Cure = "control the conditions: congestion_control: [cubic] where the machine's own is bbr without fq, and cpus: [same] or [apart] where the scheduler moved the ends"
	}
	return w
}

// warnHalves compares the efficiencies of the first half of the blocks with those of
// the second by Welch's t test, Holm-corrected over the cells.
func warnHalves(c *dataset.Dataset, a Answers) Warning {
	type halves struct {
		d      *dataset.CellData
		change float64
	}
	var all []halves
	var ps []float64
	for _, d := range c.Cells {
		b := c.UsableBaseline(d)
		if b == nil {
			continue
		}
		points := stopping.Judged(c, d)
		half := len(points) / 2
		if half < fewestInHalf {
			continue
		}
		first, second := estimate.MomentsOf(points[:half]), estimate.MomentsOf(points[len(points)-half:])
		all, ps = append(all, halves{d, math.Expm1(second.Mean - first.Mean)}), append(ps, welchP(first, second))
	}
	var f finding
	for i, p := range estimate.Holm(ps) {
		if p < 1-c.Options.Confidence {
			f.add(all[i].d.Cell, math.Abs(all[i].change), all[i].change)
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: HalvesDisagree, Cells: f.cells,
		Message: fmt.Sprintf("the first and the second half of the blocks disagree on the efficiency of %s, most on %s: %+.1f %%", counted(len(f.cells), "cell"), named(f.worst), 100*f.value),
		Cure:    "a condition changed in mid-campaign, and hit the network and its baseline differently: look at settings_changed and not_idle, and measure again"}
}

// welchP is the p-value of Welch's t test for two means.
func welchP(a, b estimate.Moments) float64 {
	va, vb := a.SD*a.SD/float64(a.N), b.SD*b.SD/float64(b.N)
	if va+vb == 0 {
		return 1
	}
	df := (va + vb) * (va + vb) / (va*va/float64(a.N-1) + vb*vb/float64(b.N-1))
	return estimate.TTest((a.Mean-b.Mean)/math.Sqrt(va+vb), df)
}

// warnOrder compares orders that were measured with those of counted instructions,
// where both ends share one CPU: then time follows the instructions.
func warnOrder(c *dataset.Dataset, a Answers) Warning {
	var f finding
	against := ""
	for _, r := range a.Rankings {
		if r.Group.CPUs != result.CPUsSame || r.LinkBound {
			continue
		}
		for _, p := range r.Pairs {
			if !p.Significant {
				continue
			}
			better, worse := r.Group, r.Group
			better.Network, worse.Network = p.Better, p.Worse
			fewer, known := c.Options.Instructions(better)
			more, both := c.Options.Instructions(worse)
			if known && both && fewer > more*(1+countedApart) {
				before := f.by
				f.add(better, p.Ratio.Value, p.Ratio.Value)
				if f.by > before {
					against = p.Worse
				}
			}
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: OrderContradicts, Cells: f.cells,
		Message: fmt.Sprintf("the order contradicts the counted instructions (docs/instructions.md) in %s, most %s: %.1f %% better than %s, which takes fewer instructions", counted(len(f.cells), "comparison"), named(f.worst), 100*(f.value-1), against),
		Cure:    "instructions are not times, but with both ends on one CPU they give the order of most pairs: look for caches, batches (GRO, NAPI) or a kernel other than the one they were counted on"}
}
