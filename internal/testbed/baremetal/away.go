package baremetal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/testbed"
)

// returnWithin is how long a sample waits for a host to come back: one that is
// started again refuses connections at once, and all samples would be gone by then.
const returnWithin = 10 * time.Second

// giveUpAfter is how long a host that went away is asked for again, each time a
// sample needs it; then its samples fail at once.
const giveUpAfter = 10 * time.Minute

// away is since when a host does not answer; the zero value: all do.
type away struct {
	since time.Time
	why   error
}

// reconnect ends agents whose connection broke and takes the lock of their hosts again. A
// host that was restarted has lost its lock, and its settings are no longer ours.
func (b *Testbed) reconnect(ctx context.Context) error {
	for _, e := range b.ends {
		if e.agent != nil && !e.agent.Alive() {
			_ = e.agent.Close() // it is dead; why was the answer to its last call
			e.agent, e.mtus = nil, nil
			b.tuned = tuning{}
		}
		if err := b.holdAgain(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// isLost reports an error whose cause is a host that does not answer.
func isLost(err error) bool {
	var e *HostError
	return errors.As(err, &e) && e.Lost
}

// lost marks an error of a host that is gone, and notes since when.
func (b *Testbed) lost(err error) error {
	var e *HostError
	if !errors.As(err, &e) || !e.Lost && !e.Taken {
		if err == nil && !b.away.since.IsZero() {
			b.options.Say("both hosts answer again")
			b.away = away{}
		}
		return err
	}
	b.tuned = tuning{} // unknown
	if b.away.since.IsZero() {
		b.away.since = time.Now()
	}
	b.away.why = err
	return &testbed.LostError{Err: err}
}

// givenUp is the error of a host that has been away for too long.
func (b *Testbed) givenUp(now time.Time) error {
	if b.away.since.IsZero() || now.Sub(b.away.since) < giveUpAfter {
		return nil
	}
	return &testbed.LostError{Err: fmt.Errorf("%w; after %v it is not asked any more", b.away.why, giveUpAfter)}
}
