//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

// open connects the driving half of a sliced run; its connections then wait.
func (s *server) open(life context.Context, p DriveParams) (OpenResult, error) {
	if p.Program.Native == nil {
		return OpenResult{}, errors.New("only the native engine's traffic comes in slices")
	}
	server, err := netip.ParseAddrPort(p.Server)
	if err != nil {
		return OpenResult{}, fmt.Errorf("the server's address: %w", err)
	}
	d, err := traffic.OpenSlices(life, *p.Program.Native, server, s.roots.Carriers)
	if err != nil {
		return OpenResult{}, because(life, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if life.Err() != nil { // cancelled meanwhile: the sessions are those of what comes next
		go d.Close()
		return OpenResult{}, context.Cause(life)
	}
	s.next++
	name := fmt.Sprintf("o%d", s.next)
	s.opened[name] = opening{d, s.conditions(server.Addr().Unmap())}
	return OpenResult{Session: name, OpenNanoseconds: int64(d.OpenTime())}, nil
}

// slices runs the turns of an opened session, and closes it.
func (s *server) slices(life context.Context, p SlicesParams) (workload.Output, error) {
	s.mu.Lock()
	o := s.opened[p.Session]
	delete(s.opened, p.Session)
	s.mu.Unlock()
	if o.Slicer == nil {
		return workload.Output{}, fmt.Errorf("no open session %q: it has run, or was cancelled", p.Session)
	}
	report, err := o.Run(life, p.Start, p.Turns)
	o.Close()
	if err != nil {
		return workload.Output{}, because(life, err)
	}
	s.locate(o.conditions, report.CPUs)
	return workload.Output{Native: &report, Conditions: o.conditions}, nil
}

// opening is a driving half whose connections are open.
type opening struct {
	*traffic.Slicer
	conditions map[string]string
}

// abandon ends one session, serving or opened, or a rank. One that is over is no error.
func (s *server) abandon(p FinishParams) error {
	s.mu.Lock()
	d, se, r := s.opened[p.Session], s.sessions[p.Session], s.ranks[p.Session]
	delete(s.opened, p.Session)
	delete(s.sessions, p.Session)
	delete(s.ranks, p.Session)
	s.mu.Unlock()
	if r != nil {
		r.leave()
	}
	if d.Slicer != nil {
		d.Close()
	}
	if se == nil {
		return nil
	}
	se.asked.Store(true)
	se.cancel()
	select {
	case <-se.done:
		return nil
	case <-time.After(endWait):
		return fmt.Errorf("the session still runs %v after it was to end", endWait)
	}
}
