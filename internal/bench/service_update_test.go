package bench

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/traffic"
)

// updatable is a testbed with one service, a relay. It changes nothing on request.
type updatable struct {
	*loopback
	relay *fault.Relay
	idle  bool
	last  uint16
}

func (u *updatable) UpdateService(_ context.Context, _ result.Cell, port uint16) (result.ServiceChange, error) {
	c := result.ServiceChange{Began: traffic.Now()}
	u.last = port
	if !u.idle {
		u.relay.Lead(port)
	}
	c.Took = time.Duration(traffic.Now() - c.Began)
	return c, nil
}

// updates are options for one network whose service is changed.
func updates(t *testing.T, store Store, fake testbed.Testbed) Options {
	o := options(t, fake, store)
	cell := o.Plan.Cells[1]
	cell.Path, cell.Services, cell.ServiceProxy, cell.Workload = result.PathPodToClusterIP, 1, "iptables", result.ServiceUpdateName
	o.Plan = plan.Plan{Schema: plan.Schema, Seed: 7, Cells: []result.Cell{cell}, MinBlocks: 2, MaxBlocks: 2, SampleSeconds: 0.02, WarmupSeconds: 0.01}
	return o
}

const firstPort = 31080

func newUpdatable(t *testing.T) *updatable {
	u := &updatable{loopback: newLoopback(t), relay: fault.NewRelay(t, firstPort)}
	u.endsOf = func(_ result.Cell, e testbed.Ends) testbed.Ends {
		e.ServerPort, e.TargetPort = firstPort, u.relay.Address().Port()
		return e
	}
	return u
}

// A sample of service_update has how long each change took, and the service has its first
// endpoint again afterwards.
func TestServiceUpdate(t *testing.T) {
	labtest.Slow(t)
	u, store := newUpdatable(t), &memory{}
	if _, err := Run(t.Context(), updates(t, store, u)); err != nil {
		t.Fatal(err)
	}
	ok := 0
	for _, s := range store.records {
		if s.Status != result.StatusOK {
			t.Logf("attempt %d: %s", s.Attempt, s.Reason) // the relay may lead what it took just before a change by the change
			continue
		}
		ok++
		m := s.Metrics
		if m["service_updates"] < 2 || m["service_update_mean_seconds"] <= 0 || m["service_update_max_seconds"] < m["service_update_mean_seconds"] || m["transactions"] <= 0 {
			t.Errorf("the sample has %v", m)
		}
	}
	if ok == 0 {
		t.Error("no sample succeeded")
	}
	if u.last != firstPort {
		t.Errorf("the service leads to port %d afterwards, want %d", u.last, firstPort)
	}
}

// A proxy that is through without having changed anything fails the sample.
func TestServiceUpdateThatChangesNothing(t *testing.T) {
	labtest.Slow(t)
	u, store := newUpdatable(t), &memory{}
	u.idle = true
	o := updates(t, store, u)
	o.Sampling.Retries, o.Plan.MinBlocks, o.Plan.MaxBlocks = 0, 1, 1
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if len(store.records) != 1 {
		t.Errorf("%d records, want 1", len(store.records))
	}
	for _, s := range store.records {
		if s.Status != result.StatusFailed || !strings.Contains(s.Reason, "no new connection reached the other endpoint after change 1 of the service") {
			t.Errorf("%s: %s", s.Status, s.Reason)
		}
	}
}

func TestServiceUpdateNeedsATestbed(t *testing.T) {
	store := &memory{}
	l := newLoopback(t)
	if _, err := Run(t.Context(), updates(t, store, l)); err != nil {
		t.Fatal(err)
	}
	for _, s := range store.records {
		if s.Status != result.StatusFailed || !strings.Contains(s.Reason, "measure service_update in the lab") {
			t.Errorf("%s: %s", s.Status, s.Reason)
		}
	}
}
