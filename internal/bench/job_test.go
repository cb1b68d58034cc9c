package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

// inProcess is an agent inside this process. kill ends it as a killed process ends: its
// line is cut, and what it has open is closed.
func inProcess(t *testing.T) (c *agent.Client, kill func()) {
	t.Helper()
	toR, toW := io.Pipe()
	fromR, fromW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		agent.Serve(ctx, toR, fromW)
		fromW.Close()
	}()
	c, err := agent.NewClient(t.Context(), agent.Transport{Stdin: toW, Stdout: fromR})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		cancel()
		<-over
	})
	return c, func() { toW.Close(); fromR.Close() }
}

// gathering is a loopback testbed with an agent for each rank, on two nodes.
type gathering struct {
	*loopback
	ranks []testbed.Rank
	// before is called with each cell whose ranks are asked for.
	before func(result.Cell)
}

func (g *gathering) Ranks(_ context.Context, cell result.Cell) ([]testbed.Rank, error) {
	if g.before != nil {
		g.before(cell)
	}
	return g.ranks[:cell.Ranks], nil
}

func newGathering(t *testing.T, n int) (*gathering, []func()) {
	t.Helper()
	g := &gathering{loopback: newLoopback(t)}
	var kills []func()
	for i := range n {
		a, kill := inProcess(t)
		node := fmt.Sprintf("node%d", 1+i/2)
		g.ranks = append(g.ranks, testbed.Rank{Place: testbed.Place{Name: fmt.Sprintf("%s pod%d", node, 1+i%2), Node: node, Agent: a}, Address: netip.MustParseAddr("127.0.0.1")})
		kills = append(kills, kill)
	}
	return g, kills
}

func jobCell(test, algorithm string, messageBytes int) result.Cell {
	return result.Cell{Network: "host", Path: "host-to-host", Placement: "inter-host", Link: "unshaped", Profile: "default_settings", MTU: 1500,
		Workload: test, Algorithm: algorithm, MessageBytes: messageBytes, Ranks: 4, RanksPerNode: 2, CPUs: result.CPUsApart}
}

func jobOptions(fake testbed.Testbed, store Store, seconds float64, cells ...result.Cell) Options {
	return Options{
		Sampling: campaign.Sampling{Seconds: seconds, WarmupSeconds: 0.01}, Testbed: fake, Store: store, Observer: quiet{}, IdleWindow: time.Millisecond,
		Plan: plan.Plan{Schema: plan.Schema, Seed: 7, Cells: cells, MinBlocks: 1, MaxBlocks: 1, SampleSeconds: seconds, WarmupSeconds: 0.01},
	}
}

// Samples with many ends are recorded with what each rank measured.
func TestJobSamples(t *testing.T) {
	fake, _ := newGathering(t, 4)
	store := &memory{}
	cells := []result.Cell{
		jobCell(traffic.AllToAll, traffic.Pairwise, 64), jobCell(traffic.AllReduce, traffic.RecursiveDoubling, 64), jobCell(traffic.Barrier, traffic.Dissemination, 0),
		jobCell(traffic.Incast, "", 4096), jobCell(traffic.Outcast, "", 4096), jobCell(traffic.HaloExchange, "", 64),
	}
	if _, err := Run(t.Context(), jobOptions(fake, store, 0.03, cells...)); err != nil {
		t.Fatal(err)
	}
	if len(store.records) != len(cells) {
		t.Fatalf("%d records", len(store.records))
	}
	for _, s := range store.records {
		if s.Status != result.StatusOK || s.Job == nil || len(s.Job.Ranks) != 4 {
			t.Errorf("%s: %s %s, job %+v", s.Cell.Traffic(), s.Status, s.Reason, s.Job)
			continue
		}
		m := s.Metrics
		if !(m["operation_time_mean_seconds"] > 0) || m["operations"] < 1 || !(m["operation_time_max_seconds"] >= m["operation_time_mean_seconds"]) {
			t.Errorf("%s: %v", s.Cell.Traffic(), m)
		}
		fan := s.Cell.Workload == traffic.Incast || s.Cell.Workload == traffic.Outcast
		if (s.Job.Flows != nil) != fan || (m["flow_completion_mean_seconds"] > 0) != fan {
			t.Errorf("%s: flows %+v, %v", s.Cell.Traffic(), s.Job.Flows, m)
		}
		if r := s.Job.Ranks[3]; r.Place != "node2 pod2" || len(r.CPUs) == 0 || r.Conditions[traffic.ConditionCongestionControl] == "" {
			t.Errorf("%s: rank %+v", s.Cell.Traffic(), r)
		}
	}
}

// A rank whose agent is killed fails the sample within 5 s, and the reason names it.
func TestKilledRank(t *testing.T) {
	fake, kills := newGathering(t, 4)
	store := &memory{}
	var killed time.Time
	fake.before = func(result.Cell) {
		time.AfterFunc(300*time.Millisecond, func() { killed = time.Now(); kills[2]() })
	}
	if _, err := Run(t.Context(), jobOptions(fake, store, 30, jobCell(traffic.AllGather, traffic.Ring, 64))); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(killed); took > 5*time.Second {
		t.Errorf("the sample failed %v after the kill", took)
	}
	s := store.records[0]
	if s.Status != result.StatusFailed || !strings.HasPrefix(s.Reason, "rank 2 at node2 pod1: ") || s.Job != nil {
		t.Errorf("%s %q %+v", s.Status, s.Reason, s.Job)
	}
}

// A testbed that has no places for ranks says so.
func TestNoPlacesForRanks(t *testing.T) {
	store := &memory{}
	if _, err := Run(t.Context(), jobOptions(newLoopback(t), store, 0.02, jobCell(traffic.Barrier, traffic.Dissemination, 0))); err != nil {
		t.Fatal(err)
	}
	if s := store.records[0]; s.Status != result.StatusFailed || !strings.Contains(s.Reason, "no places for the ranks of barrier") {
		t.Errorf("%s %q", s.Status, s.Reason)
	}
}

// The reason names the rank that is the cause, not one that waited for it.
func TestBlame(t *testing.T) {
	j := &job{}
	for i := range 6 {
		j.ranks = append(j.ranks, testbed.Rank{Place: testbed.Place{Name: fmt.Sprintf("pod%d", i), Node: fmt.Sprintf("node%d", i/2)}})
	}
	waits := func(peers ...int) error {
		return &traffic.JobError{Reason: "nothing came", WaitsFor: peers}
	}
	closed := func(peers ...int) error { return &traffic.JobError{Reason: "closed", Closed: peers} }
	lost := func(peers ...int) error {
		return &traffic.JobError{Reason: "silence", WaitsFor: []int{0}, Unacknowledged: peers}
	}
	for _, c := range []struct {
		name string
		errs []error
		want string
	}{
		{"an agent is gone, and others see that or wait", []error{closed(4), waits(1), closed(0), waits(2), agent.ErrGone, nil}, "rank 4 at pod4: the agent is gone"},
		{"ended after another", []error{fmt.Errorf("rank: %w", errOthers), errors.New("no memory"), nil, nil, nil, nil}, "rank 1 at pod1: no memory"},
		// Ranks 2 and 3 are on the node that is cut; a ring crosses it twice.
		{"a node is cut off", []error{waits(5), lost(2), waits(1), lost(4), waits(3), waits(4)}, "rank 2 at pod2, rank 3 at pod3: cut off"},
		{"one closes", []error{closed(3), closed(3), closed(0), waits(2), closed(3), nil}, "rank 3 at pod3: closed"},
		{"all wait", []error{waits(5), waits(5), waits(1), waits(5), waits(3), waits(0)}, "rank 5 at pod5: other ranks wait"},
	} {
		j.errs = c.errs
		if err := j.err(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	j.errs = make([]error, 6)
	if err := j.err(); err != nil {
		t.Errorf("no rank failed: %v", err)
	}
}

// A workload with many ends has no program of two ends.
func TestManyEndsHaveNoPrograms(t *testing.T) {
	w, err := workload.Find(traffic.AllToAll)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Serve(workload.Params{}); err == nil {
		t.Error("it serves")
	}
	if _, err := w.Drive(workload.Params{}, netip.AddrPort{}); err == nil {
		t.Error("it drives")
	}
}
