// Package bench is the loop: build the testbed, measure block after block,
// record each sample as it comes, stop when the campaign's efficiencies are
// known well enough, take everything down.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// Store is where records go: a result.Dir.
type Store interface {
	Append(result.Sample) error
	SaveRaw(sample, end string, argv []string, stdout, stderr string) error
	SaveStacks(sample, end, folded string) error
	WriteJSON(name string, v any) error
}

// Observer receives the progress of a run; its methods must not block.
type Observer interface {
	// Begin gives the bounds of the number of samples, without those that were
	// there already.
	Begin(least, most int)
	// Sampled comes after each record; left is the number of samples that are
	// still planned, at the most.
	Sampled(s result.Sample, left int)
	// Say is a line for people.
	Say(format string, args ...any)
}

// Options is what a run needs.
type Options struct {
	Sampling campaign.Sampling
	Plan     plan.Plan
	Testbed  testbed.Testbed
	Store    Store
	Observer Observer
	// Version is that of this program, for the environment.
	Version string
	// Recorded are the records that a run into the same directory left; none
	// of their samples is measured again.
	Recorded []result.Sample
	// Before is the environment that such a run left; nil: none.
	Before *result.Environment
	// AllowElsewhere lets a run go on where the environment is another than Before;
	// otherwise it ends with an ElsewhereError.
	AllowElsewhere bool
	// IdleWindow is how long the probes are read on each machine, once a block,
	// while nothing is measured; 0 means DefaultIdleWindow.
	IdleWindow time.Duration
	// WithoutProbes names the probes (probe.Names) that are not read.
	WithoutProbes []string
	// KeepGoing makes a sample whose machine is lost (testbed.LostError) a failed one.
	// Otherwise it ends the run, which can be resumed when the machine is back.
	KeepGoing bool
	// StoppingRule ends cells early; nil: every cell is measured in every block.
	StoppingRule StoppingRule
	// OnlyOpen leaves out a baseline that needs no more by the rule; otherwise it is measured as
	// long as a cell that is compared with it.
	OnlyOpen bool
	// Settled is what the summary says where the rule leaves no cell; "": that of a campaign whose
	// efficiencies are known well enough.
	Settled string
	// Refused says why a cell is not measured, although the testbed may have it: it is recorded
	// as unsupported. "" or nil: it is measured.
	Refused func(result.Cell) string
}

// StoppingRule decides which cells need no more blocks. It receives each record once, so that
// its work after a block does not grow with the blocks before: it runs on the machine that
// measures.
type StoppingRule interface {
	// Keep takes a record, in the order in which they were made.
	Keep(*result.Sample)
	// Done says of cells whether they need no more, by their blocks up to n: 0 before the first. That
	// each has a least number of blocks is up to the rule.
	// A cell that it says nothing of stays as it is; one that needed no more may need more again.
	Done(n int) map[result.Cell]bool
}

// Summary is what a run came to.
type Summary struct {
	Blocks  int
	Records int // all, with those that were there before
	// Stopped says why no more blocks were measured.
	Stopped string
	// WallSeconds is the time that this run spent on its blocks from the third
	// on, and MeasuringSeconds the warm-ups and measured windows in it; both are
	// 0 when there was no such block.
	WallSeconds, MeasuringSeconds float64
	Environment                   result.Environment
}

// Overhead is what a sample takes in addition to its warm-up and window, for estimates
// made before anything was measured: connecting, the sender's tail, recording.
const Overhead = 150 * time.Millisecond

// Run measures a campaign. The records are in the store at any moment; on an
// error, or when ctx ends, the run can be resumed from them.
func Run(ctx context.Context, o Options) (sum Summary, err error) {
	r := newRun(o)
	for i := range o.Recorded {
		r.keep(&o.Recorded[i])
	}
	r.Recorded = nil // they are in what keep made of them
	unsupported, err := r.build(ctx, o.Plan.Cells)
	if err != nil {
		return Summary{Records: r.records}, fmt.Errorf("build the testbed: %w", err)
	}
	defer func() {
		// A cancelled run is still taken down, within a bound of its own.
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		if closeErr := o.Testbed.Close(down); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("take the testbed down: %w", closeErr))
		}
	}()
	before, err := o.Testbed.Environment(ctx)
	if err != nil {
		return Summary{Records: r.records}, fmt.Errorf("describe the testbed: %w", err)
	}
	before.Started, before.Version = time.Now().UTC(), o.Version
	if o.Before != nil {
		if other := result.Elsewhere(*o.Before, before); len(other) > 0 && len(o.Recorded) > 0 && !o.AllowElsewhere {
			return Summary{Records: r.records}, &ElsewhereError{Differs: other}
		}
		goOn(&before, *o.Before)
	}
	if err := o.Store.WriteJSON(result.EnvironmentFile, before); err != nil {
		return Summary{Records: r.records}, err
	}
	err = r.groups(ctx, unsupported)
	if err == nil {
		err = r.closeEnvironment(ctx, &before)
	}
	return r.summary(before), err
}

// run is the state of one run.
type run struct {
	Options
	// records is the number of records, lastBlock the last block that has one.
	records, lastBlock int
	// slots is what was recorded of each, by id.
	slots map[string]slotState
	// cannot are the cells with a record that says that they are unsupported.
	cannot map[result.Cell]bool
	// spread is by how much a cell's slices differ in the first block, as a share,
	// drains the longest that one took beyond its length. opens is the shortest time that
	// opening a connection took on a path (pathOf).
	spread     map[result.Cell]float64
	drains     map[result.Cell]time.Duration
	opens      map[result.Cell]time.Duration
	explaining explaining
	// retired are the cells that need no more samples: settled or unsupported.
	// Without OnlyOpen a settled baseline is still measured with the cells that are compared with
	// it; an unsupported cell never is.
	retired     map[result.Cell]bool
	unsupported map[result.Cell]bool
	// tools caches which tools a place has, by place.
	tools map[string]map[string]string
	// idles is what the probes read while nothing was measured, absent what they
	// cannot read here. loops is how fast the machines of a block are without such a window.
	idles, loops idles
	absent       []string
	// saying guards absent, which samples of one round add to.
	saying sync.Mutex
	// left is how many samples are still planned, at the most.
	left int
	// of is the group that is measured, later what is planned of those after it.
	of    group
	later int
	// blocksRun is the last block that is through, samplesRun how many samples were measured.
	blocksRun, samplesRun int
	stopped               string
	clock                 clock
}

func newRun(o Options) *run {
	return &run{Options: o, spread: map[result.Cell]float64{}, drains: map[result.Cell]time.Duration{}, opens: map[result.Cell]time.Duration{}, retired: map[result.Cell]bool{}, unsupported: map[result.Cell]bool{},
		cannot: map[result.Cell]bool{}, slots: map[string]slotState{}, tools: map[string]map[string]string{}}
}

// clock sums the time of the blocks from steadyBlock on: before it, agents
// start and caches are cold.
type clock struct {
	wall, measuring float64 // seconds
}

// steadyBlock is the first block whose time is counted.
const steadyBlock = 3

// slotState is what was recorded of a slot. A run of hundreds of thousands of samples
// keeps this of each and not the records, which are in the store.
type slotState struct {
	attempts int
	finished bool
}

// keep notes a record of this run, or of the one that it resumes.
func (r *run) keep(s *result.Sample) {
	r.records++
	r.lastBlock = max(r.lastBlock, s.Block)
	r.slots[s.ID] = slotState{attempts: r.slots[s.ID].attempts + 1, finished: plan.Finished(*s, r.Sampling.Retries)}
	if s.Status == result.StatusUnsupported {
		r.cannot[s.Cell] = true
	}
	r.noteSpread(s)
	if r.StoppingRule != nil {
		r.StoppingRule.Keep(s)
	}
}

// remaining are those of the slots that still need a sample, in their order.
func (r *run) remaining(slots []plan.Slot) []plan.Slot {
	return slices.DeleteFunc(slots, func(s plan.Slot) bool { return r.slots[s.ID].finished })
}

func (r *run) summary(env result.Environment) Summary {
	return Summary{
		Blocks: r.blocksRun, Records: r.records, Stopped: r.stopped, Environment: env,
		WallSeconds: r.clock.wall, MeasuringSeconds: r.clock.measuring,
	}
}

// blocks measures block after block. What is recorded already is passed over,
// and decisions are taken at the ends of blocks from the records alone, so that
// a resumed run takes those of the run before.
func (r *run) blocks(ctx context.Context) error {
	begin := time.Now()
	r.explaining = explaining{}
	r.settle(0)
	for n := 1; n <= r.Plan.MaxBlocks; n++ {
		slots := r.block(n)
		if len(slots) == 0 {
			r.stopped = r.settled()
			if n == 1 {
				r.stopped = "this testbed can build none of the cells"
			}
			return nil
		}
		r.decideExplaining(n, slots)
		todo := r.remaining(slots)
		if len(todo) > 0 && r.overBudget(n, len(todo), begin) {
			r.stopped = fmt.Sprintf("the time budget of %g s is used up", r.Sampling.MaxSeconds)
			return nil
		}
		blockBegin := time.Now()
		for _, turns := range r.inTurns(todo) {
			measure := r.round
			if turns.sliced {
				measure = r.batch
			}
			if err := measure(ctx, turns.slots); err != nil {
				return err
			}
		}
		if n >= steadyBlock {
			r.clock.wall += time.Since(blockBegin).Seconds()
		}
		r.blocksRun, r.samplesRun = n, r.samplesRun+len(todo)
		if n == 1 {
			r.sayOverrun(time.Since(begin).Seconds())
		}
		r.settle(n)
	}
	r.stopped = fmt.Sprintf("max_blocks (%d) is reached", r.Plan.MaxBlocks)
	return nil
}

// settled says that nothing is left to measure.
func (r *run) settled() string {
	switch {
	case r.Settled != "":
		return r.Settled
	case r.Sampling.Until == campaign.UntilRanks:
		return "every efficiency is inside its target half-width, and every rank is decided"
	}
	return "every efficiency is inside its target half-width"
}

// noProbes reports that every probe is left out.
func (r *run) noProbes() bool {
	return !slices.ContainsFunc(probe.Names(), func(name string) bool { return !slices.Contains(r.WithoutProbes, name) })
}

// settle retires the cells that are known well enough after block n, judged by
// the records of the blocks up to it, and those that a rule has wait before the first.
func (r *run) settle(n int) {
	if r.StoppingRule == nil {
		return
	}
	changed := false
	for cell, done := range r.StoppingRule.Done(n) {
		done = done || r.unsupported[cell]
		changed = changed || r.retired[cell] != done
		r.retired[cell] = done
	}
	if changed {
		r.left = r.planned(n+1, r.Plan.MaxBlocks) + r.later
	}
}

// block is what block n asks for of the cells that are still measured.
func (r *run) block(n int) []plan.Slot {
	slots := r.Plan.Block(n, func(cell int) bool { return !r.retired[r.Plan.Cells[cell]] })
	return slices.DeleteFunc(slots, func(s plan.Slot) bool {
		left := r.OnlyOpen && r.retired[s.Cell] && s.Cell.IsBaseline() && s.Round == 0
		return left || r.unsupported[s.Cell] || !r.of.has(s.Cell)
	})
}

// planned is the number of samples still to come in the given blocks, if no
// cell is retired before. Blocks without any record are all alike, except that pairs of
// nodes are measured in rounds, which are drawn for each block.
func (r *run) planned(from, to int) int {
	n, known := 0, min(to, r.lastBlock)
	if slices.ContainsFunc(r.Plan.Cells, result.Cell.IsPair) {
		known = to
	}
	for b := from; b <= known; b++ {
		n += len(r.remaining(r.block(b)))
	}
	if fresh := max(from, known+1); fresh <= to {
		n += (to - fresh + 1) * len(r.block(fresh))
	}
	return n
}
