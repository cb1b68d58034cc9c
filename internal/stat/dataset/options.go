package dataset

import (
	"github.com/cnibench/cnibench/internal/result"
)

// Options say how the samples are judged. The zero value is usable.
type Options struct {
	// Confidence of every interval and of every decision; 0 means 0.95.
	Confidence float64
	// TargetRelativeHalfwidth is the relative half-width at which a cell is
	// measured well enough; 0 means that the campaign names none.
	TargetRelativeHalfwidth float64
	// UntilRanked keeps a cell going when its target is met and its rank is open: see
	// stopping.Watch.
	UntilRanked bool
	// MinBlocks and MaxBlocks bound the number of blocks; 0 means unbounded.
	MinBlocks, MaxBlocks int
	// LinkRate returns the rate of a link in bit/s where it is known; nil: none is.
	LinkRate func(link string) (bitsPerSecond float64, ok bool)
	// Primary names the metric that a cell is judged by. Where it is nil or
	// gives "", the first metric of unit.Metrics that the cell has and that has
	// a better side is taken.
	Primary func(result.Cell) string
	// Ladder gives the steps from the bare network up to one, the lowest first; nil:
	// no network has any.
	Ladder func(network string) []Step
	// Instructions gives how many a cell takes per packet or transaction, as counted
	// under emulation; nil, or not ok: that is not known.
	Instructions func(result.Cell) (perWork float64, ok bool)
	// Environment is where the samples were made. Its zero value is an unknown one.
	Environment result.Environment
	// Seed of the block bootstrap.
	Seed uint64
	// Blocks keeps the values of each block (summary.Cell.Blocks).
	Blocks bool
}

func (o Options) withDefaults() Options {
	if !(o.Confidence > 0 && o.Confidence < 1) {
		o.Confidence = 0.95
	}
	if o.LinkRate == nil {
		o.LinkRate = func(string) (float64, bool) { return 0, false }
	}
	if o.Instructions == nil {
		o.Instructions = func(result.Cell) (float64, bool) { return 0, false }
	}
	if o.Ladder == nil {
		o.Ladder = func(string) []Step { return nil }
	}
	if o.Primary == nil {
		o.Primary = func(result.Cell) string { return "" }
	}
	return o
}

// Step is a network of a ladder, which has one thing more than the one below it.
type Step struct {
	Network string
	// Adds names that thing.
	Adds string
	// Components are those of sampled stacks whose functions only the step runs.
	Components []string
}
