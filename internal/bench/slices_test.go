package bench

import (
	"context"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// sliced makes the campaign of options one whose samples come in slices.
func sliced(o Options) Options {
	o.Sampling.SliceSeconds, o.Sampling.ExplainSeconds, o.Sampling.ExplainEvery = 0.004, 0.05, 2
	o.Sampling.TargetRelativeHalfwidth = 0.02
	o.Plan.SliceSeconds = 0.004
	return o
}

func TestSlicedRunMeasuresThePlan(t *testing.T) {
	labtest.Slow(t)
	fake, store := newLoopback(t), &memory{}
	if _, err := Run(t.Context(), sliced(options(t, fake, store))); err != nil {
		t.Fatal(err)
	}
	explained, loops := map[int]int{}, map[int]float64{}
	if got := finals(store.records); len(got) != 9 {
		t.Errorf("%d samples came to an end, want 9: %v", len(got), got)
	}
	for _, s := range store.records {
		if s.Status != result.StatusOK {
			continue // a busy machine may leave a sample no slice; it was tried again
		}
		if s.Slices == nil || len(s.Slices.PerSecond) == 0 || len(s.Slices.PerSecond) > s.Slices.Asked {
			t.Errorf("%s: slices %+v", s.ID, s.Slices)
		}
		if s.Metrics["client_cpu_seconds"] <= 0 || s.Metrics["server_cpu_seconds"] <= 0 {
			t.Errorf("%s: no CPU time of the slices: %v", s.ID, s.Metrics)
		}
		if s.Conditions[result.ClientNode]["congestion_control"] == "" || s.Conditions[result.ServerNode]["cpus"] == "" {
			t.Errorf("%s: conditions %v", s.ID, s.Conditions)
		}
		if s.Explaining != nil {
			explained[s.Block]++
			if s.Explaining.Metrics["transactions_per_second"] <= 0 || len(s.Probes) == 0 {
				t.Errorf("%s: explaining %+v, probes %v", s.ID, s.Explaining, s.Probes)
			}
		} else if len(s.Probes) != 2 || len(s.Probes[result.ClientNode+result.IdleSuffix]) != 1 {
			t.Errorf("%s: probes %v, want the loop's time alone", s.ID, s.Probes)
		}
		loop := s.Probes[result.ClientNode+result.IdleSuffix]["cpu_loop_seconds"]
		if was, known := loops[s.Block]; loop <= 0 || known && was != loop {
			t.Errorf("%s: the loop took %v s, and %v s in the same block", s.ID, loop, was)
		}
		loops[s.Block] = loop
	}
	if explained[1] == 0 || explained[2] != 0 || explained[3] == 0 {
		t.Errorf("explaining windows by block: %v, want them in blocks 1 and 3", explained)
	}
}

func TestSlicedRunWithoutProbesExplainsNothing(t *testing.T) {
	labtest.Slow(t)
	fake, store := newLoopback(t), &memory{}
	o := sliced(options(t, fake, store))
	o.WithoutProbes = probe.Names()
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, s := range store.records {
		if s.Explaining != nil || s.Probes != nil {
			t.Errorf("%s has probes", s.ID)
		}
	}
}

// Nothing is measured twice, and nothing is lost, when a run is broken off between
// the records of a batch.
func TestSlicedRunGoesOnAfterAnAbort(t *testing.T) {
	labtest.Slow(t)
	fake, first := newLoopback(t), &memory{full: 6}
	if _, err := Run(t.Context(), sliced(options(t, fake, first))); err == nil {
		t.Fatal("a full disk was no error")
	}
	second := &memory{}
	o := sliced(options(t, newLoopback(t), second))
	o.Recorded = first.records
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	all := append(first.records, second.records...)
	if err := o.Plan.Check(all, o.Sampling.Retries); err != nil {
		t.Error(err)
	}
	if got := finals(all); len(got) != 9 {
		t.Errorf("%d samples came to an end, want 9: %v", len(got), got)
	}
}

// A sample that cannot begin is a failed record; the others of its batch go on.
func TestSlicedSampleThatFailsHoldsUpNoOther(t *testing.T) {
	labtest.Slow(t)
	fake, store := newLoopback(t), &memory{}
	fake.endsOf = func(c result.Cell, e testbed.Ends) testbed.Ends {
		if c.Network == "macvlan" {
			e.TargetPort = 1 // nobody serves there
		}
		return e
	}
	if _, err := Run(t.Context(), sliced(options(t, fake, store))); err != nil {
		t.Fatal(err)
	}
	ok := map[string]int{}
	for _, s := range store.records {
		if s.Status == result.StatusOK {
			ok[s.Cell.Network]++
		} else if s.Cell.Network == "macvlan" && !strings.Contains(s.Reason, "connection refused") {
			t.Errorf("%s: %s", s.ID, s.Reason)
		}
	}
	if ok["host"] != 3 || ok["bridge"] != 3 || ok["macvlan"] != 0 {
		t.Errorf("measured samples by network: %v", ok)
	}
}

func TestSlicedRunEndsWhenItIsCancelled(t *testing.T) {
	fake, store := newLoopback(t), &memory{}
	o := sliced(options(t, fake, store))
	o.Plan.MaxBlocks, o.Sampling.MaxBlocks = 1000, 1000
	ctx, stop := context.WithCancel(t.Context())
	o.Observer = stopAfter{stop}
	if _, err := Run(ctx, o); err == nil {
		t.Error("a cancelled run came to its end")
	}
	if !fake.closed {
		t.Error("the testbed was not taken down")
	}
}

// stopAfter cancels at the first record.
type stopAfter struct{ stop func() }

func (stopAfter) Begin(int, int)               {}
func (s stopAfter) Sampled(result.Sample, int) { s.stop() }
func (stopAfter) Say(string, ...any)           {}
