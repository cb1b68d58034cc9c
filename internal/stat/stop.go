package stat

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/result"
)

// Progress is a cell's way to its target half-width.
type Progress struct {
	// Done reports that the cell needs no further block: it is inside its target,
	// it cannot be built here, or, a baseline, all that are compared with it are
	// done.
	Done bool `json:"done"`
	// Blocks is the number of blocks that count: those with both the cell and
	// its baseline.
	Blocks int `json:"blocks"`
	// RelativeHalfwidth is that of the efficiency; of the geometric mean where
	// the campaign has no baseline. Nil below two blocks.
	RelativeHalfwidth *float64 `json:"relative_halfwidth,omitempty"`
	// BlocksNeeded estimates how many blocks in all the target takes; 0 where
	// that cannot be said yet.
	BlocksNeeded int `json:"blocks_needed,omitempty"`
	// Why says in words why the cell is or is not done.
	Why string `json:"why"`
}

// Look judges every cell by all of some samples, as a Watch does after their last block.
func Look(samples []result.Sample, opt Options) map[result.Cell]Progress {
	w, last := NewWatch(opt), 0
	for i := range samples {
		w.Keep(&samples[i])
		last = max(last, samples[i].Block)
	}
	return w.Look(last)
}

func (c *dataset) hasDependents(d *cellData) bool { return len(c.dependents[d.cell]) > 0 }

// baselineProgress is done when all that lean on it are.
func (c *dataset) baselineProgress(d *cellData, of map[result.Cell]Progress) Progress {
	var all []result.Cell
	for _, e := range c.dependents[d.cell] {
		all = append(all, e.cell)
	}
	return ofDependents(len(d.ok), all, of)
}

// ofDependents is the progress of a baseline with so many measured blocks: it is done when
// all that are compared with it are.
func ofDependents(blocks int, dependents []result.Cell, of map[result.Cell]Progress) Progress {
	p := Progress{Done: true, Blocks: blocks, Why: "every cell that is compared with it is done"}
	for _, cell := range dependents {
		if q := of[cell]; !q.Done {
			p.Done, p.Why = false, "the baseline of "+cell.Network
			p.BlocksNeeded = max(p.BlocksNeeded, q.BlocksNeeded)
		}
	}
	return p
}

// progress applies the stopping rule to the logs that the cell is judged by.
func (c *dataset) progress(d *cellData) Progress {
	if d.unsupported != "" && len(d.ok) == 0 {
		return Progress{Done: true, Why: "unsupported: " + d.unsupported}
	}
	logs := c.judged(d)
	return c.judge(momentsOf(logs), c.targetMet(logs))
}

// judge is the stopping rule on the moments of logs whose interval was inside the target
// after met of them for the first time; 0: it never was.
func (c *dataset) judge(m moments, met int) Progress {
	p := Progress{Blocks: m.n}
	if m.n < 2 {
		p.Why = fmt.Sprintf("%d of the 2 blocks that an interval takes", m.n)
		return p
	}
	h := math.Sinh(m.halfwidth(c.tables))
	p.RelativeHalfwidth = &h
	target := c.opt.TargetRelativeHalfwidth
	if target <= 0 {
		p.Why = "the campaign names no target half-width"
		return p
	}
	switch {
	case met > 0 && m.n > met:
		p.Done = true
		p.Why = fmt.Sprintf("target ± %.3g %% met at block %d and one more measured", 100*target, met)
	case met > 0:
		p.BlocksNeeded = m.n + 1
		p.Why = "target met; one more block confirms it"
	case m.n < c.firstLook():
		p.BlocksNeeded = max(c.firstLook()+1, c.blocksNeeded(m))
		p.Why = fmt.Sprintf("%d of the %d blocks before the first look", m.n, c.firstLook())
	default:
		p.BlocksNeeded = c.blocksNeeded(m)
		p.Why = fmt.Sprintf("± %.3g %% where ± %.3g %% is asked for", 100*h, 100*target)
	}
	return p
}

// judged is the series that the stopping rule looks at: log efficiency, or the
// log of the primary metric where there is no baseline.
func (c *dataset) judged(d *cellData) []point {
	series, better := d.series(d.primary), c.better[d.primary]
	if b := c.usableBaseline(d); b != nil {
		return logRatios(series, b.series(d.primary), better)
	}
	return logs(series, better)
}

// usableBaseline is d's baseline; nil where it cannot be built here, so that
// it will never be measured.
func (c *dataset) usableBaseline(d *cellData) *cellData {
	b := c.baseline(d)
	if b == nil || b.unsupported != "" && len(b.ok) == 0 {
		return nil
	}
	return b
}

// fewestLooked is the fewest blocks at which the stopping rule looks, whatever
// the campaign says: the standard deviation of two says nearly nothing.
const fewestLooked = 3

// logTarget is the target on the logs: an interval from e^−h to e^h has the
// relative half-width sinh h.
func (c *dataset) logTarget() float64 { return math.Asinh(c.opt.TargetRelativeHalfwidth) }

func (c *dataset) firstLook() int { return max(c.opt.MinBlocks, fewestLooked) }

// targetMet is the number of blocks after which the interval was first inside
// the target; 0 when it never was. The looks are at every block from the first
// look on, in the order of the blocks.
//
// Stopping at the first interval that happens to be narrow enough picks blocks
// whose spread came out too small, so that intervals at 95 % would hold the
// truth in 92 % only. Two things correct it, as the tests show by simulation: one
// more block is measured after the target was met (Simons 1968), and the
// interval then reported is not narrower than the target (the fixed-width interval
// of Chow and Robbins 1965), see widen.
func (c *dataset) targetMet(logs []point) int {
	var r running
	for _, p := range logs {
		if r.take(p.value); c.reachesTarget(r.moments()) {
			return r.n
		}
	}
	return 0
}

// reachesTarget reports whether an interval is inside the target, at a look.
func (c *dataset) reachesTarget(m moments) bool {
	target := c.logTarget()
	return target > 0 && m.n >= c.firstLook() && m.halfwidth(c.tables) <= target
}

// stoppedLate reports that the rule stopped the cell, and not at its first look.
// A cell that went on after it was done has more blocks and needs no widening.
func (c *dataset) stoppedLate(logs []point) bool {
	met := c.targetMet(logs)
	return met > c.firstLook() && len(logs) == met+1
}

// blocksNeeded is the least number of blocks at which t·s/√n would be inside
// the target if the spread stays what it is, and one more.
func (c *dataset) blocksNeeded(m moments) int {
	target := c.logTarget()
	n := float64(max(m.n, c.firstLook()))
	for range 20 { // n = (t(n)·s/d)² settles in a few steps
		t := tQuantile(n-1, 1-(1-c.opt.Confidence)/2)
		next := math.Max(float64(c.firstLook()), math.Ceil(math.Pow(t*m.sd/target, 2)))
		if next == n {
			break
		}
		n = next
	}
	return int(math.Min(n, 1e6)) + 1
}
