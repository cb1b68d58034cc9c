//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"

	"github.com/cnibench/cnibench/internal/traffic"
)

// joined is a rank whose port is open. It stays in the list while it runs, so that it can
// be abandoned.
type joined struct {
	job    *traffic.Job
	cancel context.CancelCauseFunc
	ctx    context.Context
	ran    bool // guarded by the server's mu
}

// leave ends the rank, whether it runs or not.
func (j *joined) leave() {
	j.cancel(errOver)
	j.job.Close()
}

// join opens the port of a rank.
func (s *server) join(life context.Context, p JoinParams) (ServeResult, error) {
	job, err := traffic.JoinJob(p.Job)
	if err != nil {
		return ServeResult{}, err
	}
	ctx, cancel := context.WithCancelCause(life)
	j := &joined{job: job, cancel: cancel, ctx: ctx}
	s.mu.Lock()
	defer s.mu.Unlock()
	if life.Err() != nil { // cancelled meanwhile: nobody would run it
		j.leave()
		return ServeResult{}, context.Cause(life)
	}
	s.next++
	name := fmt.Sprintf("r%d", s.next)
	s.ranks[name] = j
	return ServeResult{Session: name, Port: job.Port()}, nil
}

// rank runs a rank that has joined, to the end of its job. What other ranks may be the
// cause of is no error of the request: the controller compares what all ranks answer.
func (s *server) rank(p RankParams) (RankResult, error) {
	s.mu.Lock()
	j := s.ranks[p.Session]
	again := j != nil && j.ran
	if j != nil {
		j.ran = true
	}
	s.mu.Unlock()
	if j == nil || again {
		return RankResult{}, fmt.Errorf("no rank %q: it has run, or was cancelled", p.Session)
	}
	defer runtime.GC() // the next sample starts with a clean heap
	defer func() {
		s.mu.Lock()
		delete(s.ranks, p.Session)
		s.mu.Unlock()
		j.leave()
	}()
	var ranks []netip.AddrPort
	for _, text := range p.Ranks {
		address, err := netip.ParseAddrPort(text)
		if err != nil {
			return RankResult{}, fmt.Errorf("the address of rank %d: %w", len(ranks), err)
		}
		ranks = append(ranks, address)
	}
	conditions := map[string]string{}
	if len(ranks) > 1 {
		conditions = s.conditions(ranks[len(ranks)-1].Addr().Unmap())
	}
	report, err := j.job.Run(j.ctx, ranks)
	if failed := (*traffic.JobError)(nil); errors.As(err, &failed) {
		return RankResult{Failed: failed}, nil
	}
	if err != nil {
		return RankResult{}, because(j.ctx, err)
	}
	for name, value := range report.Conditions {
		conditions[name] = value
	}
	s.locate(conditions, report.CPUs)
	report.Conditions = conditions
	return RankResult{Report: &report}, nil
}
