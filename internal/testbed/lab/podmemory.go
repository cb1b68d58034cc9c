package lab

import (
	"context"
	"errors"
	"time"

	"github.com/cnibench/cnibench/internal/probe"
)

const (
	// memoryTurn is the time between two readings of the kernel's memory, and
	// memoryTurns how many are compared.
	memoryTurn  = 20 * time.Millisecond
	memoryTurns = 5
	// memoryPatience is how long the machine is waited for to come to rest: what
	// was removed before goes away in the background.
	memoryPatience = 2 * time.Second
	// restBytes is what may move while it is at rest.
	restBytes = 128 << 10
	// leastAboveRest is how many times larger than that a difference must be to be
	// recorded: it is then known to 10 %.
	leastAboveRest = 10
	// leastPodsWeighed is below what pods' memory is not asked for: the part of so
	// few is always less than that.
	leastPodsWeighed = 10
)

// errRestless reports that the pods' memory is lost in the kernel's own changes.
var errRestless = errors.New("memory: the kernel's memory changed too much on its own to measure the pods' share: add more pods, or stop other programs")

// moreMemory is how much more memory the kernel and the network's processes on
// node 1 have after something was done. A difference that is lost in the kernel's
// own changes is nil, with errRestless.
func (c *cluster) moreMemory(ctx context.Context, do func() error) (kernel, processes *float64, err error) {
	memory := probe.Memory{Proc: "/proc", Sys: "/sys"}
	before, restless, err := atRest(ctx, memory.Kernel)
	if err != nil {
		return nil, nil, errors.Join(do(), ignoreAbsent(err))
	}
	residentBefore, residentErr := memory.Resident(c.carriers[0])
	if err := do(); err != nil {
		return nil, nil, err
	}
	residentAfter, err := memory.Resident(c.carriers[0])
	if residentErr == nil && err == nil && residentAfter >= residentBefore {
		more := residentAfter - residentBefore
		processes = &more
	}
	after, stillRestless, err := atRest(ctx, memory.Kernel)
	if err != nil {
		return nil, processes, ignoreAbsent(err)
	}
	more := after - before
	if more < leastAboveRest*max(restless, stillRestless) || more <= 0 {
		return nil, processes, errRestless
	}
	return &more, processes, nil
}

func ignoreAbsent(err error) error {
	if errors.Is(err, probe.ErrAbsent) {
		return nil
	}
	return err
}

// atRest reads until what is read moves by no more than restBytes, or patience is
// at its end. It gives the last reading and how much it moved.
func atRest(ctx context.Context, read func() (float64, error)) (last, moved float64, err error) {
	begin := time.Now()
	for {
		var least, most float64
		for i := range memoryTurns {
			if last, err = read(); err != nil {
				return 0, 0, err
			}
			if i == 0 {
				least, most = last, last
			}
			least, most = min(least, last), max(most, last)
			select {
			case <-time.After(memoryTurn):
			case <-ctx.Done():
				return 0, 0, context.Cause(ctx)
			}
		}
		if moved = most - least; moved <= restBytes || time.Since(begin) > memoryPatience {
			return last, moved, nil
		}
	}
}
