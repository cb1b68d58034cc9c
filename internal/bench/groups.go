package bench

import (
	"context"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// group is one of the groups of cells that a testbed cannot have at the same time.
// The zero value is all cells.
type group struct {
	at, n int
	of    func(result.Cell) int
}

func (g group) has(cell result.Cell) bool { return g.of == nil || g.of(cell) == g.at }

func (g group) number() int { return max(1, g.n) }

// groups measures one group after the other. Where one cannot be had, its samples
// are failed with the reason, and the next is measured.
func (r *run) groups(ctx context.Context, unsupported map[result.Cell]string) error {
	switcher, ok := r.Testbed.(testbed.Grouper)
	var all group
	if ok {
		if all.n, all.of = switcher.Groups(); all.n == 1 {
			all = group{}
		}
	}
	if all.n == 0 {
		if err := r.retireUnsupported(ctx, unsupported); err != nil {
			return err
		}
	}
	r.left = r.planned(1, r.Plan.MaxBlocks)
	r.Observer.Begin(r.planned(1, r.Plan.MinBlocks), r.left)
	if all.n == 0 {
		return r.blocks(ctx)
	}
	for at := range all.n {
		r.later = 0
		for next := at + 1; next < all.n; next++ {
			r.of = group{next, all.n, all.of}
			r.later += r.planned(1, r.Plan.MaxBlocks)
		}
		r.of = group{at, all.n, all.of}
		if err := r.group(ctx, switcher); err != nil {
			return err
		}
	}
	return nil
}

// group measures the present group.
func (r *run) group(ctx context.Context, switcher testbed.Grouper) error {
	if r.planned(1, r.Plan.MaxBlocks) == 0 {
		return nil // a run before has measured it
	}
	printed, err := switcher.Switch(ctx, r.of.at)
	for _, p := range printed {
		if err := r.Store.SaveRaw(p.Name, "command", p.Argv, p.Stdout, p.Stderr); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return r.failGroup(err)
	}
	cells := slices.DeleteFunc(slices.Clone(r.Plan.Cells), func(c result.Cell) bool { return !r.of.has(c) })
	unsupported, err := r.build(ctx, cells)
	if err == nil {
		err = r.retireUnsupported(ctx, unsupported)
	}
	if err != nil {
		return err
	}
	r.blocksRun, r.samplesRun, r.idles, r.loops = 0, 0, idles{}, idles{}
	return r.blocks(ctx)
}

// failGroup records one failed attempt at each cell of the present group; a resumed
// run tries again.
func (r *run) failGroup(why error) error {
	for _, slot := range r.block(1) {
		s := result.Sample{
			Schema: result.Schema, ID: slot.ID, Block: slot.Block, Attempt: 1 + r.slots[slot.ID].attempts, Cell: slot.Cell,
			Status: result.StatusFailed, Reason: oneLine(why), Started: time.Now().UTC(), RequestedSeconds: r.Sampling.Seconds,
		}
		if s.Attempt > 1+r.Sampling.Retries {
			continue
		}
		if err := r.Store.Append(s); err != nil {
			return err
		}
		r.keep(&s)
		r.Observer.Sampled(s, r.left)
	}
	r.left = r.later
	r.stopped = "a network could not be switched to"
	return nil
}
