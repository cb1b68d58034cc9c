package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// round measures samples at the same time, with their retries, and records each
// attempt: the pairs of a round, or one sample alone.
func (r *run) round(ctx context.Context, slots []plan.Slot) error {
	for len(slots) > 0 {
		tries := r.sampleAll(ctx, slots)
		if ctx.Err() != nil {
			return context.Cause(ctx) // what was cut short is no sample
		}
		var again []plan.Slot
		var ends error // why the run ends after this round
		longest := 0.0 // of those that were measured at the same time
		for i, t := range tries {
			if isLost(t.err) && !r.KeepGoing {
				ends = cmp.Or(ends, t.err)
				continue // what was measured at the same time is recorded
			}
			if err := r.record(t); err != nil {
				return err
			}
			if t.sample.Status == result.StatusFailed && !isLost(t.err) {
				ends = cmp.Or(ends, r.toolsGone(ctx, slots[i].Cell))
			}
			s := t.sample
			if s.Status == result.StatusOK && s.Block >= steadyBlock {
				longest = max(longest, r.Sampling.WarmupSeconds+*s.MeasuredSeconds)
			}
			if s.Status != result.StatusOK && s.Attempt <= r.Sampling.Retries {
				again = append(again, slots[i])
			}
		}
		if ends != nil {
			return ends
		}
		r.clock.measuring += longest
		slots = again
	}
	return nil
}

// record keeps one attempt.
func (r *run) record(t *try) error {
	s := t.sample
	err := r.Store.Append(s)
	if errors.Is(err, result.ErrTooLong) { // what an end answered fails its own sample
		failed(&s, err)
		s.Warnings, s.Tools = nil, nil
		t.sample = s
		err = r.Store.Append(s)
	}
	if err != nil {
		return err
	}
	r.keep(&s)
	if s.Status == result.StatusOK || s.Attempt > r.Sampling.Retries {
		r.left--
	}
	r.Observer.Sampled(s, r.left)
	return nil
}

// sampleAll measures samples at the same time. Their ends are made ready one after
// the other, and machines are read while none of them runs.
func (r *run) sampleAll(ctx context.Context, slots []plan.Slot) []*try {
	tries := make([]*try, len(slots))
	for i, slot := range slots {
		tries[i] = r.begin(ctx, slot)
	}
	if len(slots) > 1 {
		r.leaveOutShared(tries)
	}
	var wait sync.WaitGroup
	for _, t := range tries {
		wait.Go(func() { r.finish(ctx, t) })
	}
	wait.Wait()
	return tries
}

// isLost reports that a sample's ends are gone with their machine.
func isLost(err error) bool {
	var lost *testbed.LostError
	return errors.As(err, &lost)
}

// leaveOutShared leaves out the probes of machines that are under several of the
// pairs: what they count would be that of all of them.
func (r *run) leaveOutShared(tries []*try) {
	pairs := map[string]int{}
	for _, t := range tries {
		for _, m := range t.machines() {
			pairs[m]++
		}
	}
	ofMachine := probe.Names(probe.IsOfMachine)
	for _, t := range tries {
		if !slices.ContainsFunc(t.machines(), func(m string) bool { return pairs[m] > 1 }) {
			continue
		}
		t.without = ofMachine
		for _, name := range ofMachine {
			if !slices.Contains(r.WithoutProbes, name) {
				r.missing(fmt.Sprintf("probe %s: pairs of nodes that are measured at the same time are on one machine, which counts for all of them", name))
			}
		}
	}
}
