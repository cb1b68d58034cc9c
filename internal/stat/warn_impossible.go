package stat

import (
	"fmt"
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// Answers that cannot be true. Each is a sign that something else than the network
// differed between cells: a condition of the experiment.

const (
	// beyondBaseline is how much better than its baseline a cell's whole interval
	// must be before it is not believed: some networks cost next to nothing.
	beyondBaseline = 0.01
	// fewestInHalf is the number of blocks in each half that are compared.
	fewestInHalf = 4
	// countedApart is how far counted instructions must be apart before times must
	// be in the same order.
	countedApart = 0.05
)

// impossible reports that a cell is faster than its baseline, whose path its own
// contains: between nodes a pod's packets take the way of its node's. Inside a node
// they need not pass the node's own stack, a program at the sockets passes by the
// stack altogether, and with BIG TCP there are fewer segments than the baseline's.
func (c *dataset) impossible(s CellSummary) bool {
	if s.Efficiency == nil || s.Cell.Placement != result.InterHost || accelerated(s.Cell.Network) || s.LinkBound {
		return false
	}
	low, _, ok := s.Efficiency.Interval()
	return ok && low > 1+beyondBaseline
}

// accelerated recognises a network whose pods send in another way than the baseline's nodes.
func accelerated(network string) bool {
	return strings.Contains(network, "+sockmap") || strings.Contains(network, "+bigtcp")
}

// believe notes the cells whose answer cannot be true: goals are not ranked by them.
func (c *dataset) believe(a Analysis) {
	c.implausible = map[result.Cell]bool{}
	for _, s := range a.Cells {
		if c.impossible(s) {
			c.implausible[s.Cell] = true
		}
	}
}

func (c *dataset) warnImpossible(a Analysis) Warning {
	var f finding
	uncontrolled := false
	for _, s := range a.Cells {
		if c.impossible(s) {
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
func (c *dataset) warnHalves(Analysis) Warning {
	type halves struct {
		d      *cellData
		change float64
	}
	var all []halves
	var ps []float64
	for _, d := range c.cells {
		b := c.usableBaseline(d)
		if b == nil {
			continue
		}
		points := c.judged(d)
		half := len(points) / 2
		if half < fewestInHalf {
			continue
		}
		first, second := momentsOf(points[:half]), momentsOf(points[len(points)-half:])
		all, ps = append(all, halves{d, math.Expm1(second.mean - first.mean)}), append(ps, welchP(first, second))
	}
	var f finding
	for i, p := range holm(ps) {
		if p < 1-c.opt.Confidence {
			f.add(all[i].d.cell, math.Abs(all[i].change), all[i].change)
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
func welchP(a, b moments) float64 {
	va, vb := a.sd*a.sd/float64(a.n), b.sd*b.sd/float64(b.n)
	if va+vb == 0 {
		return 1
	}
	df := (va + vb) * (va + vb) / (va*va/float64(a.n-1) + vb*vb/float64(b.n-1))
	return tTest((a.mean-b.mean)/math.Sqrt(va+vb), df)
}

// warnOrder compares orders that were measured with those of counted instructions,
// where both ends share one CPU: then time follows the instructions.
func (c *dataset) warnOrder(a Analysis) Warning {
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
			fewer, known := c.opt.Instructions(better)
			more, both := c.opt.Instructions(worse)
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
