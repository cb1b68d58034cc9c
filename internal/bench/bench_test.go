package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// loopback is a testbed without a lab: both ends are an agent inside this
// process, on loopback. It breaks on request.
type loopback struct {
	agent       *agent.Client
	unsupported map[string]string // by network
	fail        func(n int) error // of the nth Ends
	endsOf      func(result.Cell, testbed.Ends) testbed.Ends
	ends        int
	// asked counts what was asked for Environment; silent is which of those give an error.
	asked  int
	silent func(n int) bool
	closed bool
}

func newLoopback(t *testing.T) *loopback {
	t.Helper()
	c, _ := inProcess(t)
	return &loopback{agent: c}
}

func (l *loopback) Build(_ context.Context, cells []result.Cell) (map[result.Cell]string, error) {
	out := map[result.Cell]string{}
	for _, c := range cells {
		if why, ok := l.unsupported[c.Network]; ok {
			out[c] = why
		}
	}
	return out, nil
}

func (l *loopback) Ends(_ context.Context, cell result.Cell) (testbed.Ends, error) {
	l.ends++
	if l.fail != nil {
		if err := l.fail(l.ends); err != nil {
			return testbed.Ends{}, err
		}
	}
	p := testbed.Place{Name: "here", Node: "here", MTU: 65536, Agent: l.agent}
	e := testbed.Ends{Client: p, Server: p, ServerAddress: netip.MustParseAddr("127.0.0.1"), SharedClock: true}
	if l.endsOf != nil {
		e = l.endsOf(cell, e)
	}
	return e, nil
}

func (l *loopback) Environment(context.Context) (result.Environment, error) {
	l.asked++
	if l.silent != nil && l.silent(l.asked) {
		return result.Environment{}, errors.New("the API server answers 500")
	}
	return result.Environment{Schema: result.Schema, Testbed: "loopback"}, nil
}

func (l *loopback) Close(context.Context) error { l.closed = true; return nil }

// memory is a store that fails on demand.
type memory struct {
	records []result.Sample
	full    int // refuse the nth record
}

func (m *memory) Append(s result.Sample) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if m.full > 0 && len(m.records)+1 >= m.full {
		return errors.New("no space left on device")
	}
	m.records = append(m.records, s)
	return nil
}
func (m *memory) SaveRaw(string, string, []string, string, string) error { return nil }
func (m *memory) SaveStacks(string, string, string) error                { return nil }
func (m *memory) WriteJSON(string, any) error                            { return nil }

type quiet struct{}

func (quiet) Begin(int, int)             {}
func (quiet) Sampled(result.Sample, int) {}
func (quiet) Say(string, ...any)         {}

func options(t *testing.T, fake testbed.Testbed, store Store) Options {
	t.Helper()
	sampling := campaign.Sampling{Seconds: 0.02, WarmupSeconds: 0.01, MinBlocks: 2, MaxBlocks: 3, Retries: 1}
	cell := result.Cell{Network: "host", Path: "host-to-host", Placement: "inter-host", Link: "unshaped",
		Profile: "default_settings", MTU: 1500, Workload: "tcp_rr", MessageBytes: 64, Streams: 1}
	other, third := cell, cell
	other.Network, other.Path = "bridge", "pod-to-pod"
	third.Network, third.Path = "macvlan", "pod-to-pod"
	return Options{
		Sampling: sampling, Testbed: fake, Store: store, Observer: quiet{}, IdleWindow: time.Millisecond,
		Plan: plan.Plan{Schema: plan.Schema, Seed: 7, Cells: []result.Cell{cell, other, third},
			MinBlocks: 2, MaxBlocks: 3, SampleSeconds: 0.02, WarmupSeconds: 0.01},
	}
}

func ids(records []result.Sample) []string {
	var out []string
	for _, s := range records {
		out = append(out, fmt.Sprintf("%s/%d", s.ID, s.Attempt))
	}
	return out
}

// finals are the ids of the records that finish their slot; on a busy machine a
// sample of 20 ms may take a retry.
func finals(records []result.Sample) []string {
	var out []string
	for _, s := range records {
		if plan.Finished(s, 1) {
			out = append(out, s.ID)
		}
	}
	return out
}

func TestRunMeasuresThePlan(t *testing.T) {
	fake, store := newLoopback(t), &memory{}
	sum, err := Run(t.Context(), options(t, fake, store))
	if err != nil {
		t.Fatal(err)
	}
	if len(store.records) != 9 || sum.Blocks != 3 || !fake.closed {
		t.Errorf("%d records in %d blocks, closed %v", len(store.records), sum.Blocks, fake.closed)
	}
	for _, s := range store.records {
		if s.Status != result.StatusOK || s.Metrics["transactions_per_second"] <= 0 {
			t.Errorf("%s: %s %s", s.ID, s.Status, s.Reason)
		}
	}
	if !strings.Contains(sum.Stopped, "max_blocks") {
		t.Errorf("stopped: %s", sum.Stopped)
	}
}

func TestUnsupportedCellHasOneRecord(t *testing.T) {
	fake, store := newLoopback(t), &memory{}
	fake.unsupported = map[string]string{"macvlan": "kernel has no macvlan"}
	if _, err := Run(t.Context(), options(t, fake, store)); err != nil {
		t.Fatal(err)
	}
	n, ids := 0, map[string]bool{} // a sample of a busy machine may be tried again
	for _, s := range store.records {
		ids[s.ID] = true
		if s.Cell.Network == "macvlan" {
			n++
			if s.Status != result.StatusUnsupported || s.Reason != "kernel has no macvlan" {
				t.Errorf("record %+v", s)
			}
		}
	}
	if n != 1 || len(ids) != 7 {
		t.Errorf("%d records of the unsupported cell, %d samples in all", n, len(ids))
	}
}

// A cell that is refused is recorded with the reason, and the testbed is not built for it.
func TestRefusedCellIsNotBuilt(t *testing.T) {
	fake, store := newLoopback(t), &memory{}
	fake.unsupported = map[string]string{"macvlan": "it was built"}
	o := options(t, fake, store)
	o.Refused = func(c result.Cell) string { return map[string]string{"macvlan": "a study is of another"}[c.Network] }
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, s := range store.records {
		if s.Cell.Network == "macvlan" {
			refused++
			if s.Status != result.StatusUnsupported || s.Reason != "a study is of another" {
				t.Errorf("record %+v", s)
			}
		}
	}
	if refused != 1 {
		t.Errorf("%d records of the refused cell", refused)
	}
}

// A run that goes on refuses what the one before has measured: no slot is recorded twice.
func TestRefusedAfterItWasMeasured(t *testing.T) {
	fake, store := newLoopback(t), &memory{}
	if _, err := Run(t.Context(), options(t, fake, store)); err != nil {
		t.Fatal(err)
	}
	before := slices.DeleteFunc(slices.Clone(store.records), func(s result.Sample) bool { return s.Block > 1 })
	again := &memory{}
	o := options(t, newLoopback(t), again)
	o.Recorded = slices.Clone(before)
	o.Refused = func(c result.Cell) string { return map[string]string{"macvlan": "a study is of another"}[c.Network] }
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := o.Plan.Check(append(before, again.records...), o.Sampling.Retries); err != nil {
		t.Error(err)
	}
	for _, s := range again.records {
		if s.Cell.Network == "macvlan" {
			t.Errorf("record %+v", s)
		}
	}
}

func TestFailedSampleIsARecordAndTriedAgain(t *testing.T) {
	fake, store := newLoopback(t), &memory{}
	fake.fail = func(n int) error {
		if n == 2 || n == 4 || n == 5 { // one that recovers, one that does not
			return errors.New("link is down")
		}
		return nil
	}
	if _, err := Run(t.Context(), options(t, fake, store)); err != nil {
		t.Fatal(err)
	}
	down, samples := 0, map[string]bool{} // another sample of a busy machine may be tried again too
	for _, s := range store.records {
		samples[s.ID] = true
		if s.Reason == "link is down" {
			down++
		}
	}
	if down != 3 || len(samples) != 9 || len(store.records) < 11 {
		t.Fatalf("%d records, %d by the fault: %v", len(store.records), down, ids(store.records))
	}
	second, third := store.records[1], store.records[2]
	if second.Status != "failed" || second.Reason != "link is down" || second.Metrics != nil || third.ID != second.ID || third.Attempt != 2 || third.Status != "ok" {
		t.Errorf("retry: %v", ids(store.records[:3]))
	}
	if a, b := store.records[3], store.records[4]; a.Status != "failed" || b.Status != "failed" || a.ID != b.ID {
		t.Errorf("given up: %v", ids(store.records[3:5]))
	}
}

// fixed is a judge that has made up its mind.
type fixed map[result.Cell]bool

func (fixed) Keep(*result.Sample) {}

func (f fixed) Done(n int) map[result.Cell]bool {
	if n == 0 {
		return nil
	}
	return f
}

// waiting has a cell wait until a block, and leaves out another for that block alone.
type waiting struct {
	later, pausing result.Cell
	block          int
}

func (waiting) Keep(*result.Sample) {}

func (w waiting) Done(n int) map[result.Cell]bool {
	return map[result.Cell]bool{w.later: n+1 < w.block, w.pausing: n+1 == w.block}
}

// TestWaitingCells: a rule may have cells wait before the first block, and want those again that
// needed no more.
func TestWaitingCells(t *testing.T) {
	fake, store := newLoopback(t), &memory{}
	o := options(t, fake, store)
	o.Plan.MinBlocks, o.Plan.MaxBlocks = 3, 3
	var other []result.Cell
	for _, c := range o.Plan.Cells {
		if !c.IsBaseline() {
			other = append(other, c)
		}
	}
	rule := waiting{later: other[0], pausing: other[1], block: 2}
	o.StoppingRule = rule
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	blocks := map[result.Cell][]int{}
	for _, s := range store.records {
		blocks[s.Cell] = append(blocks[s.Cell], s.Block)
	}
	if got := blocks[rule.later]; !slices.Equal(got, []int{2, 3}) {
		t.Errorf("the cell that waits was measured in blocks %v", got)
	}
	if got := blocks[rule.pausing]; !slices.Equal(got, []int{1, 3}) {
		t.Errorf("the cell that pauses was measured in blocks %v", got)
	}
}

func TestSettledCellsAreDroppedAndTheirBaselineStays(t *testing.T) {
	fake, store := newLoopback(t), &memory{}
	o := options(t, fake, store)
	o.StoppingRule = fixed{o.Plan.Cells[0]: true, o.Plan.Cells[1]: true, o.Plan.Cells[2]: false}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	last := map[string]bool{}
	for _, s := range store.records {
		if s.Block == 3 {
			last[s.Cell.Network] = true
		}
	}
	if !reflect.DeepEqual(last, map[string]bool{"host": true, "macvlan": true}) {
		t.Errorf("block 3 measured %v", last)
	}
}

// Where a rule compares any cells with each other, it says of a baseline too whether it is needed.
func TestOnlyOpenLeavesOutBaselines(t *testing.T) {
	fake, store := newLoopback(t), &memory{}
	o := options(t, fake, store)
	o.OnlyOpen = true
	rule := fixed{}
	for _, c := range o.Plan.Cells {
		rule[c] = c.Network != "macvlan"
	}
	o.StoppingRule = rule
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, s := range store.records {
		if s.Block == 3 && s.Cell.Network != "macvlan" {
			t.Errorf("block 3 measured %s", s.Cell.Describe())
		}
	}
}

// Whatever prefix of a run is on the disk, the resumed run measures the rest of
// it: the finished set is exactly the plan, none twice, none lost.
func TestResumeFromEveryPrefix(t *testing.T) {
	labtest.Slow(t)
	fake := newLoopback(t)
	whole := &memory{}
	if _, err := Run(t.Context(), options(t, fake, whole)); err != nil {
		t.Fatal(err)
	}
	for n := range whole.records {
		store := &memory{records: append([]result.Sample{}, whole.records[:n]...)}
		o := options(t, fake, store)
		o.Recorded = whole.records[:n]
		if _, err := Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if got, want := finals(store.records), finals(whole.records); !reflect.DeepEqual(got, want) {
			t.Errorf("resumed after %d: %v, want %v", n, got, want)
		}
		if err := o.Plan.Check(store.records, o.Sampling.Retries); err != nil {
			t.Errorf("resumed after %d: %v", n, err)
		}
	}
}

func TestFullDiskEndsTheRunAndTakesTheTestbedDown(t *testing.T) {
	fake, store := newLoopback(t), &memory{full: 4}
	_, err := Run(t.Context(), options(t, fake, store))
	if err == nil || !strings.Contains(err.Error(), "no space left") || !fake.closed || len(store.records) != 3 {
		t.Errorf("error %v, closed %v, %d records", err, fake.closed, len(store.records))
	}
}

func TestInterruptedSampleIsNotRecorded(t *testing.T) {
	fake, store := newLoopback(t), &memory{}
	o := options(t, fake, store)
	o.Sampling.Seconds = 30
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, o); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if len(store.records) != 0 || !fake.closed {
		t.Errorf("%d records, closed %v", len(store.records), fake.closed)
	}
}

// Every record has what both ends read, what the machine did while idle in its
// block, and which machine that is.
func TestRunRecordsIdle(t *testing.T) {
	fake, store := newLoopback(t), &memory{}
	o := options(t, fake, store)
	o.IdleWindow = 20 * time.Millisecond
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	byBlock := map[int]float64{}
	for _, s := range store.records {
		for _, end := range []string{result.ClientNode, result.ServerNode} {
			idle := s.Probes[end+result.IdleSuffix]["window_seconds"]
			if s.Probes[end+result.IdleSuffix]["cpu_loop_seconds"] <= 0 || s.Probes[end]["cpu_loop_seconds"] != 0 {
				t.Errorf("%s %s: the loop belongs to the idle time: %v", s.ID, end, s.Probes)
			}
			if idle < 0.02 || s.Probes[end]["window_seconds"] <= 0 || s.Probes[end]["first_edge_cpu_seconds"] <= 0 || s.Machines[end] == "" {
				t.Errorf("%s %s: %v %v", s.ID, end, s.Probes, s.Machines)
			}
			if was, known := byBlock[s.Block]; known && was != idle {
				t.Errorf("%s: idle was measured twice in block %d", s.ID, s.Block)
			}
			byBlock[s.Block] = idle
		}
		if s.Machines[result.ClientNode] != s.Machines[result.ServerNode] {
			t.Errorf("one machine is two: %v", s.Machines)
		}
		if _, twice := s.Probes[result.ClientNode]["instructions_kernel"]; twice {
			t.Errorf("%s: one machine was counted at both ends", s.ID)
		}
	}
	if byBlock[1] == byBlock[2] {
		t.Error("idle was not measured anew in block 2")
	}
}
