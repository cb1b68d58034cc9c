package bench

import (
	"math"
	"time"

	"github.com/cnibench/cnibench/internal/plan"
)

// A campaign may have a time budget (sampling.max_seconds). It bounds the number of slices,
// the explaining windows and the number of blocks.

// blocksInBudget is how many blocks a time budget is to hold, whatever the noise: with
// 12, Student's factor at 95 % is 2.20; with 5 it is 2.78.
const blocksInBudget = 12

// explainShare is the part of a time budget that explaining windows after those of the first
// block may take, with these.
const explainShare = 1. / 3

// overBudget reports whether block n would overrun the time budget, taking its samples to
// last as long as those before. The first MinBlocks are always run.
func (r *run) overBudget(n, samples int, begin time.Time) bool {
	if r.Sampling.MaxSeconds <= 0 || n <= r.Plan.MinBlocks || r.samplesRun == 0 {
		return false
	}
	spent := time.Since(begin).Seconds()
	return spent*(1+float64(samples)/float64(r.samplesRun)) > r.Sampling.MaxSeconds/float64(r.of.number())
}

// sayOverrun says after the first block, which took so many seconds, that the blocks which
// are always measured take longer than the time budget.
func (r *run) sayOverrun(seconds float64) {
	most := r.Sampling.MaxSeconds / float64(r.of.number())
	if all := seconds * float64(r.Plan.MinBlocks); most > 0 && seconds > most/2 && all > most {
		r.Observer.Say("%d blocks are always measured, which takes longer than the time budget of %g s: the first took %.0f s", r.Plan.MinBlocks, r.Sampling.MaxSeconds, seconds)
	}
}

// slicesInBudget is the number of slices of a sample with which blocksInBudget blocks, or as
// many as the campaign asks for, fit into its time budget.
func (r *run) slicesInBudget() float64 {
	if r.Sampling.MaxSeconds <= 0 {
		return mostSlices
	}
	blocks := min(max(blocksInBudget, r.Plan.MinBlocks), max(1, r.Plan.MaxBlocks))
	every := max(1, r.Sampling.ExplainEvery)
	one, two := r.Sampling, r.Sampling
	one.Slices, two.Slices = 1, 2
	one.SlicedSeconds, two.SlicedSeconds = 0, 0
	one.ExplainSeconds, two.ExplainSeconds = 0, 0
	cells := 0                    // with slices
	var slice, rest time.Duration // of one block: a slice of each cell, and all else
	for _, c := range r.Plan.Cells {
		if r.unsupported[c] || !r.of.has(c) {
			continue
		}
		if sliced := SlicedTime(one, c); sliced > 0 {
			each := SlicedTime(two, c) - sliced
			slice += each
			rest += sliced - each - slicedOverhead // connections are opened side by side
			cells++
		} else {
			rest += r.Sampling.Warmup() + r.Sampling.Window() + Overhead
		}
	}
	if r.Sampling.Explain() > 0 && cells > 0 {
		explained := min((blocks+every-1)/every, max(1, r.mostWindows()/cells))
		rest += explainTime(r.Sampling) * time.Duration(cells*explained) / time.Duration(blocks)
	}
	block := r.Sampling.MaxSeconds / float64(r.of.number()) / float64(blocks)
	return (block - rest.Seconds()) / max(slice, time.Nanosecond).Seconds()
}

// explaining is whether the present block has explaining windows, and how many the blocks up to it
// have.
type explaining struct {
	now     bool
	windows int
}

// decideExplaining says whether the samples of a block have explaining windows: every so many
// blocks, as long as these windows keep within their share of the time budget. They tell where a
// cost arises, and the other blocks tell what it is. The first block always has them. Slots are
// all of the block, recorded or not, so that a resumed run decides as the one before.
func (r *run) decideExplaining(block int, slots []plan.Slot) {
	windows := 0
	for _, s := range slots {
		if SlicedTime(r.Sampling, s.Cell) > 0 {
			windows++
		}
	}
	r.explaining.now = r.Sampling.Explain() > 0 && !r.noProbes() && (block-1)%max(1, r.Sampling.ExplainEvery) == 0 &&
		(block == 1 || r.explaining.windows+windows <= r.mostWindows())
	if r.explaining.now {
		r.explaining.windows += windows
	}
}

// mostWindows is how many explaining windows a group's share of the time budget holds.
func (r *run) mostWindows() int {
	if r.Sampling.MaxSeconds <= 0 || r.Sampling.Explain() <= 0 {
		return math.MaxInt
	}
	return int(explainShare * r.Sampling.MaxSeconds / float64(r.of.number()) / explainTime(r.Sampling).Seconds())
}
