package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Somebody who waits for a number of switches hears of it at that number, not before it, and
// not by those of the half before.
func TestSwitches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s switches
		s.add()
		s.reset()
		var heard []time.Duration
		began := time.Now()
		for _, count := range []int{2, 1} {
			go func() {
				if err := s.wait(t.Context(), count); err != nil {
					t.Error(err)
				}
				heard = append(heard, time.Since(began))
			}()
		}
		for range 2 {
			time.Sleep(time.Second)
			s.add()
			synctest.Wait()
		}
		if len(heard) != 2 || heard[0] != time.Second || heard[1] != 2*time.Second {
			t.Errorf("heard of one and of two switches after %v, want 1s and 2s", heard)
		}
	})
}

func TestSwitchesEndWithTheSample(t *testing.T) {
	why := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	var s switches
	if err := s.wait(ctx, 1); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}
