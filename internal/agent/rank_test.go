package agent

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/traffic"
)

// join opens two ranks of a job at two agents and gives their sessions and addresses.
func join(t *testing.T, window time.Duration, agents ...*Client) (sessions, addresses []string) {
	t.Helper()
	for i, a := range agents {
		var opened ServeResult
		cfg := traffic.JobConfig{Test: traffic.AllGather, Algorithm: traffic.Ring, Token: strings.Repeat("ab", 16), Rank: i, Ranks: len(agents), MessageBytes: 64, Window: window}
		if err := a.Call(t.Context(), MethodJoin, JoinParams{Job: cfg}, &opened); err != nil {
			t.Fatal(err)
		}
		sessions, addresses = append(sessions, opened.Session), append(addresses, fmt.Sprintf("127.0.0.1:%d", opened.Port))
	}
	return sessions, addresses
}

// runRanks runs all ranks at the same time.
func runRanks(t *testing.T, agents []*Client, sessions, addresses []string) ([]RankResult, []error) {
	t.Helper()
	answers, errs := make([]RankResult, len(agents)), make([]error, len(agents))
	var wait sync.WaitGroup
	for i, a := range agents {
		wait.Go(func() {
			errs[i] = a.Call(t.Context(), MethodRank, RankParams{Session: sessions[i], Ranks: addresses}, &answers[i])
		})
	}
	wait.Wait()
	return answers, errs
}

func TestRank(t *testing.T) {
	agents := []*Client{start(t), start(t)}
	sessions, addresses := join(t, 30*time.Millisecond, agents...)
	answers, errs := runRanks(t, agents, sessions, addresses)
	for i, a := range answers {
		if errs[i] != nil || a.Report == nil || a.Report.Operations < 1 || a.Report.Conditions["net.ipv4.tcp_rmem"] == "" {
			t.Errorf("rank %d: %v %+v", i, errs[i], a)
		}
	}
	if err := agents[0].Call(t.Context(), MethodRank, RankParams{Session: sessions[0], Ranks: addresses}, nil); err == nil || !strings.Contains(err.Error(), "no rank") {
		t.Errorf("a rank that has run runs again: %v", err)
	}
}

// A rank that is abandoned ends at once, and the other names it.
func TestAbandonedRank(t *testing.T) {
	agents := []*Client{start(t), start(t)}
	sessions, addresses := join(t, time.Minute, agents...)
	time.AfterFunc(200*time.Millisecond, func() {
		if err := agents[1].Call(t.Context(), MethodAbandon, FinishParams{Session: sessions[1]}, nil); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	answers, errs := runRanks(t, agents, sessions, addresses)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the ranks ended after %v", took)
	}
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "cancelled by the controller") {
		t.Errorf("the abandoned rank: %v %+v", errs[1], answers[1])
	}
	if f := answers[0].Failed; errs[0] != nil || f == nil || len(f.Closed) != 1 || f.Closed[0] != 1 {
		t.Errorf("the other rank: %v %+v", errs[0], answers[0])
	}
}

// A rank that never runs leaves no port when its agent is asked to cancel.
func TestCancelledRank(t *testing.T) {
	a := start(t)
	sessions, addresses := join(t, time.Minute, a, a)
	if err := a.Call(t.Context(), MethodCancel, CancelParams{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Call(t.Context(), MethodRank, RankParams{Session: sessions[0], Ranks: addresses}, nil); err == nil {
		t.Error("a cancelled rank runs")
	}
	if unreachable(t.Context(), addresses[0]) == "" {
		t.Error("the port of a cancelled rank is open")
	}
}
