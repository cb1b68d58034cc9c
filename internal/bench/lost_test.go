package bench

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// TestLostMachine: a machine that is lost ends the run before anything of it is
// recorded, so that it can be resumed; with KeepGoing its samples fail and the
// others are measured.
func TestLostMachine(t *testing.T) {
	labtest.Slow(t)
	away := func(n int) error {
		if n == 4 {
			return &testbed.LostError{Err: errors.New("the-server: cannot be reached")}
		}
		return nil
	}
	fake, store := newLoopback(t), &memory{}
	fake.fail = away
	sum, err := Run(t.Context(), options(t, fake, store))
	var lost *testbed.LostError
	if !errors.As(err, &lost) || !fake.closed || sum.Stopped != "" {
		t.Errorf("%v, closed %v, stopped %q", err, fake.closed, sum.Stopped)
	}
	if len(store.records) != 3 || strings.Contains(store.records[2].Reason, "the-server") {
		t.Errorf("%d records: %v", len(store.records), ids(store.records))
	}

	fake, store = newLoopback(t), &memory{}
	fake.fail = away
	o := options(t, fake, store)
	o.KeepGoing = true
	sum, err = Run(t.Context(), o)
	if err != nil || sum.Blocks != 3 || len(finals(store.records)) != 9 {
		t.Errorf("%v, %d blocks, %v", err, sum.Blocks, ids(store.records))
	}
	if s := store.records[3]; s.Status != result.StatusFailed || s.Reason != "the-server: cannot be reached" {
		t.Errorf("%s: %s", s.Status, s.Reason)
	}
}

// A record that no reader would take fails its own sample, and the run goes on.
func TestTooLongRecordFailsItsSampleAlone(t *testing.T) {
	fake := newLoopback(t)
	fake.endsOf = func(cell result.Cell, e testbed.Ends) testbed.Ends {
		if cell.Network == "macvlan" {
			e.Server.Doubts = []string{strings.Repeat("x", 17<<20)}
		}
		return e
	}
	path := filepath.Join(t.TempDir(), "r")
	store, err := result.Create(path, []byte("name: x\n"), map[string]int{"schema": 1})
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, fake, store)
	o.Plan.MaxBlocks, o.Plan.MinBlocks, o.Sampling.Retries = 1, 1, 0
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatalf("the run did not go on: %.300v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	rec, err := result.Read(path)
	if err != nil || len(rec.Samples) != 3 {
		t.Fatalf("%d records, %.300v", len(rec.Samples), err)
	}
	for _, s := range rec.Samples {
		long := s.Cell.Network == "macvlan"
		if long != strings.Contains(s.Reason, "the record is too long") || long && (s.Status != result.StatusFailed || len(s.Warnings) > 0) {
			t.Errorf("%s is %s: %.300s", s.Cell.Network, s.Status, s.Reason)
		}
	}
}
