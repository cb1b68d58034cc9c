package bench

import (
	"errors"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// TestLostMachine: a machine that is lost ends the run before anything of it is
// recorded, so that it can be resumed; with KeepGoing its samples fail and the
// others are measured.
func TestLostMachine(t *testing.T) {
	away := func(n int) error {
		if n == 4 {
			return &testbed.LostError{Err: errors.New("the-server: cannot be reached")}
		}
		return nil
	}
	bed, store := newLoopback(t), &memory{}
	bed.fail = away
	sum, err := Run(t.Context(), options(t, bed, store))
	var lost *testbed.LostError
	if !errors.As(err, &lost) || !bed.closed || sum.Stopped != "" {
		t.Errorf("%v, closed %v, stopped %q", err, bed.closed, sum.Stopped)
	}
	if len(store.records) != 3 || strings.Contains(store.records[2].Reason, "the-server") {
		t.Errorf("%d records: %v", len(store.records), ids(store.records))
	}

	bed, store = newLoopback(t), &memory{}
	bed.fail = away
	o := options(t, bed, store)
	o.KeepGoing = true
	sum, err = Run(t.Context(), o)
	if err != nil || sum.Blocks != 3 || len(finals(store.records)) != 9 {
		t.Errorf("%v, %d blocks, %v", err, sum.Blocks, ids(store.records))
	}
	if s := store.records[3]; s.Status != result.StatusFailed || s.Reason != "the-server: cannot be reached" {
		t.Errorf("%s: %s", s.Status, s.Reason)
	}
}
