package bench

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// switched is a testbed that has one network at a time.
type switched struct {
	*loopback
	broken string // the network that cannot be had
	now    string
	order  []string
}

func (s *switched) names() []string { return []string{"bridge", "macvlan"} }

func (s *switched) Groups() (int, func(result.Cell) int) {
	return 2, func(c result.Cell) int {
		if c.Cluster == "macvlan" {
			return 1
		}
		return 0
	}
}

func (s *switched) Switch(_ context.Context, group int) ([]testbed.Printed, error) {
	s.now = s.names()[group]
	s.order = append(s.order, s.now)
	p := []testbed.Printed{{Name: "switch-" + s.now + "-1", Argv: []string{"helm"}, Stdout: "did"}}
	if s.now == s.broken {
		return p, errors.New("helm: no chart")
	}
	return p, nil
}

func (s *switched) Ends(ctx context.Context, c result.Cell) (testbed.Ends, error) {
	if c.Cluster != s.now {
		return testbed.Ends{}, errors.New("it is not running")
	}
	return s.loopback.Ends(ctx, c)
}

// printed is a store that keeps what commands printed.
type printed struct {
	memory
	raw []string
}

func (p *printed) SaveRaw(name, end string, argv []string, stdout, _ string) error {
	p.raw = append(p.raw, name+" "+end+" "+strings.Join(argv, " ")+": "+stdout)
	return nil
}

// TestGroups: all blocks of one network come before the next is switched to. One that
// cannot be had is recorded with the reason, and a resumed run tries it alone.
func TestGroups(t *testing.T) {
	labtest.Slow(t)
	fake, store := &switched{loopback: newLoopback(t), broken: "macvlan"}, &printed{}
	o := options(t, fake, store)
	host := o.Plan.Cells[0]
	o.Plan.Cells, o.Plan.MaxBlocks = nil, 2
	o.Sampling.Seconds, o.Sampling.Retries = 0.1, 4 // a busy machine fails some
	for _, cluster := range fake.names() {
		pod := host
		pod.Network, pod.Path = cluster, "pod-to-pod"
		host.Cluster, pod.Cluster = cluster, cluster
		o.Plan.Cells = append(o.Plan.Cells, host, pod)
	}
	count := func(cluster, status string) (n int) {
		for _, s := range store.records {
			if s.Cell.Cluster == cluster && s.Status == status {
				n++
			}
		}
		return n
	}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if ok, failed := count("bridge", result.StatusOK), count("macvlan", result.StatusFailed); ok != 4 || failed != 2 || count("macvlan", result.StatusOK) > 0 {
		t.Errorf("%d of bridge are ok, %d of macvlan failed", ok, failed)
	}
	if last := store.records[len(store.records)-1]; last.Reason != "helm: no chart" {
		t.Errorf("%+v", last)
	}
	if len(store.raw) != 2 || store.raw[1] != "switch-macvlan-1 command helm: did" {
		t.Errorf("raw: %q", store.raw)
	}
	fake.broken, fake.order, o.Recorded = "", nil, store.records
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if strings.Join(fake.order, " ") != "macvlan" || count("macvlan", result.StatusOK) != 4 || count("bridge", result.StatusOK) != 4 {
		t.Errorf("the resumed run switched to %v, and has %d of macvlan", fake.order, count("macvlan", result.StatusOK))
	}
	if err := o.Plan.Check(store.records, o.Sampling.Retries); err != nil {
		t.Error(err)
	}
}
