package bench

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// nodes is a testbed of several nodes, each an agent on loopback.
type nodes struct {
	*loopback
	agents map[string]*agent.Client
	broken string // the server that has no ends
	ready  int    // pairs whose ends were asked for and that have no record yet
}

// rounds is a store that notes how many pairs were ready when a record came.
type rounds struct {
	memory
	testbed *nodes
	most    int
}

func (r *rounds) Append(s result.Sample) error {
	r.most = max(r.most, r.testbed.ready)
	r.testbed.ready--
	return r.memory.Append(s)
}

func (n *nodes) Ends(_ context.Context, c result.Cell) (testbed.Ends, error) {
	n.ready++
	if c.ServerNode == n.broken {
		return testbed.Ends{}, errors.New("node " + n.broken + " is gone")
	}
	at := func(name string) testbed.Place {
		return testbed.Place{Name: name, Node: name, MTU: 65536, Agent: n.agents[name]}
	}
	return testbed.Ends{Client: at(c.ClientNode), Server: at(c.ServerNode), ServerAddress: netip.MustParseAddr("127.0.0.1"), SharedClock: true}, nil
}

// TestRoundsOfPairs: pairs of a round are measured at the same time, one that fails
// leaves the others alone, and probes of a machine under several pairs are left out.
func TestRoundsOfPairs(t *testing.T) {
	labtest.Slow(t)
	fake := &nodes{loopback: newLoopback(t), agents: map[string]*agent.Client{}, broken: "d"}
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		fake.agents[name] = newLoopback(t).agent
	}
	store := &rounds{testbed: fake}
	o := options(t, fake, store)
	o.Sampling.Seconds, o.Sampling.Retries = 0.1, 4 // a busy machine fails some
	base := o.Plan.Cells[0]
	o.Plan.Cells, o.Plan.MaxBlocks = nil, 2
	for _, pair := range campaign.EveryPair(names) {
		base.ClientNode, base.ServerNode = pair[0], pair[1]
		o.Plan.Cells = append(o.Plan.Cells, base)
	}
	sum, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	alone := map[string]bool{} // those during which nothing else ran
	for block := range 2 {
		for _, together := range plan.Together(o.Plan.Block(block+1, nil)) {
			if len(together) != 2 {
				t.Errorf("a round of %d", len(together))
			}
			for i, s := range together {
				alone[s.ID] = together[1-i].Cell.ServerNode == "d"
			}
		}
	}
	absent, last := strings.Join(sum.Environment.Absent, "\n"), map[string]result.Sample{}
	for _, s := range store.records {
		last[s.ID] = s
	}
	for _, s := range last {
		pair := s.Cell.ClientNode + " to " + s.Cell.ServerNode
		switch {
		case s.Cell.ServerNode == "d":
			if s.Status != result.StatusFailed || !strings.Contains(s.Reason, "node d is gone") || s.Attempt != 5 {
				t.Errorf("%+v", s)
			}
		case s.Status != result.StatusOK:
			t.Errorf("%s: %s", pair, s.Reason)
		case s.Attempt == 1: // tried again it may have been alone
			if _, has := s.Probes[result.ServerNode]["cpu_user_seconds"]; has != alone[s.ID] {
				t.Errorf("%s: CPU of the machine %v, and nothing ran at the same time: %v", pair, has, alone[s.ID])
			}
		}
	}
	if len(last) != 2*12 || store.most != 2 {
		t.Errorf("%d samples, at most %d at the same time", len(last), store.most)
	}
	if !strings.Contains(absent, "probe cpu: pairs of nodes that are measured at the same time are on one machine") {
		t.Errorf("absent: %s", absent)
	}
	if err := o.Plan.Check(store.records, o.Sampling.Retries); err != nil {
		t.Error(err)
	}
}

// A sample that failed because its tool went is a record too, and so is what was
// measured at the same time.
func TestSampleWithoutItsToolIsRecorded(t *testing.T) {
	store := &memory{}
	o := options(t, newLoopback(t), store)
	t.Setenv("PATH", t.TempDir()) // from now on there is no tool
	tool, native := o.Plan.Cells[0], o.Plan.Cells[1]
	tool.Workload, tool.MessageBytes, tool.Protocol = "iperf3", 1472, "tcp"
	r := &run{Options: o, slots: map[string]slotState{}, tools: map[string]map[string]string{}}
	err := r.round(t.Context(), []plan.Slot{{ID: "b01-c000", Block: 1, Cell: tool}, {ID: "b01-c001", Block: 1, Cell: native}})
	if err == nil || !strings.Contains(err.Error(), "in mid-run: iperf3 is not installed") {
		t.Errorf("the round ended with %v", err)
	}
	if got := strings.Join(ids(store.records), " "); got != "b01-c000/1 b01-c001/1" {
		t.Errorf("recorded %s, want both samples", got)
	}
	if len(store.records) > 0 && (store.records[0].Status != result.StatusFailed || store.records[0].Reason == "") {
		t.Errorf("%+v", store.records[0])
	}
}

// A lost machine ends a run; what was measured at the same time stays.
func TestSampleBesideALostMachineIsRecorded(t *testing.T) {
	fake := newLoopback(t)
	fake.fail = func(n int) error {
		if n == 1 {
			return &testbed.LostError{Err: errors.New("gone")}
		}
		return nil
	}
	store := &memory{}
	o := options(t, fake, store)
	r := &run{Options: o, slots: map[string]slotState{}, tools: map[string]map[string]string{}}
	err := r.round(t.Context(), []plan.Slot{{ID: "b01-c000", Block: 1, Cell: o.Plan.Cells[0]}, {ID: "b01-c001", Block: 1, Cell: o.Plan.Cells[1]}})
	if !isLost(err) {
		t.Errorf("the round ended with %v", err)
	}
	if got := strings.Join(ids(store.records), " "); got != "b01-c001/1" {
		t.Errorf("recorded %q, want the sample of the machines that are there", got)
	}
}

// All samples exist: one answer that does not come fails no run.
func TestASilentTestbedAtTheEndFailsNoRun(t *testing.T) {
	labtest.Slow(t)
	for name, c := range map[string]struct {
		silent func(n int) bool
		absent bool
	}{
		"once":  {func(n int) bool { return n == 2 }, false},
		"stays": {func(n int) bool { return n > 1 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			fake := newLoopback(t)
			fake.silent = c.silent
			sum, err := Run(t.Context(), options(t, fake, &memory{}))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Contains(strings.Join(sum.Environment.Absent, " "), "whether settings changed during the campaign: the API server answers 500")
			if got != c.absent || sum.Environment.Finished.IsZero() {
				t.Errorf("%+v", sum.Environment)
			}
		})
	}
}
