//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

// defaultTimeout ends a program that names no timeout of its own.
const defaultTimeout = 10 * time.Minute

// session is one serving half.
type session struct {
	// finish informs the half that the sample is over; it then ends on its own.
	finish func()
	cancel context.CancelFunc
	// port is what a tool serves on; 0: none, or the native engine.
	port uint16
	// earlier are connections that were at that port before the tool began.
	earlier []netip.AddrPort
	// commands are the launch commands that a launcher printed.
	commands []string
	asked    atomic.Bool   // finish was asked for
	done     chan struct{} // closed when out and err are set
	out      workload.Output
	err      error
}

// serve starts a serving half; it runs on after the answer.
func (s *server) serve(life context.Context, p ServeParams) (ServeResult, error) {
	ctx, cancel := context.WithTimeoutCause(life, timeout(p.Program), timeoutError(p.Program))
	se := &session{cancel: cancel, done: make(chan struct{})}
	var port uint16
	var run func() (workload.Output, error)
	var err error
	if p.Program.Native != nil {
		port, run, err = s.serveNative(ctx, se, p)
	} else {
		port, run, err = s.serveTool(ctx, se, p)
	}
	if err != nil {
		cancel()
		return ServeResult{}, err
	}
	s.mu.Lock()
	if s.life != life { // cancelled meanwhile: nobody would finish it
		s.mu.Unlock()
		cancel()
		_, err := run() // gives its port and its process free
		return ServeResult{}, errors.Join(errOver, err)
	}
	s.next++
	name := fmt.Sprintf("s%d", s.next)
	s.sessions[name] = se
	busy := s.busy
	busy.Add(1)
	s.mu.Unlock()
	go func() {
		defer busy.Done()
		defer cancel()
		defer close(se.done)
		se.out, se.err = run()
		se.err = because(ctx, se.err)
	}()
	return ServeResult{Session: name, Port: port, Commands: se.commands}, nil
}

func (s *server) serveNative(ctx context.Context, se *session, asked ServeParams) (uint16, func() (workload.Output, error), error) {
	p, cfg := asked.Program, *asked.Program.Native
	cfg.Port = asked.Port
	srv, err := traffic.Listen(cfg)
	if err != nil {
		return 0, nil, err
	}
	srv.AddCarriers(s.roots.Carriers)
	se.finish = srv.Finish
	w := s.watch(p.WithoutProbes)
	conditions := s.conditions(netip.Addr{})
	return srv.Port(), func() (workload.Output, error) {
		report, err := srv.Run(ctx, traffic.Hooks{WindowStart: w.start, WindowEnd: w.stop})
		if err := errors.Join(err, w.close()); err != nil {
			return workload.Output{}, err
		}
		s.locate(conditions, report.CPUs)
		out := workload.Output{Native: &report, Conditions: conditions}
		w.into(&out)
		return out, nil
	}, nil
}

// finish ends a serving half and returns its result.
func (s *server) finish(p FinishParams) (workload.Output, error) {
	s.mu.Lock()
	se := s.sessions[p.Session]
	delete(s.sessions, p.Session)
	idle := len(s.sessions) == 0
	s.mu.Unlock()
	if se == nil {
		return workload.Output{}, fmt.Errorf("no session %q: it was finished or cancelled before", p.Session)
	}
	se.asked.Store(true)
	doubts := s.strangersAt(se.port, p.Peer, se.earlier) // before the tool ends, and its connections with it
	se.finish()
	select {
	case <-se.done:
	case <-time.After(endWait):
		se.cancel()
		<-se.done
		return workload.Output{}, errors.Join(fmt.Errorf("the serving end did not finish within %v of the client's", endWait), se.err)
	}
	if idle {
		runtime.GC() // the next sample starts with a clean heap
	}
	out := se.out
	out.Doubts = append(slices.Clone(out.Doubts), doubts...)
	return out, se.err
}

// wait returns when a serving half is over, so that nobody waits for a client
// whose server has gone.
func (s *server) wait(life context.Context, p WaitParams) (WaitResult, error) {
	s.mu.Lock()
	se := s.sessions[p.Session]
	s.mu.Unlock()
	if se == nil {
		return WaitResult{}, nil // finished or cancelled before
	}
	select {
	case <-se.done:
	case <-life.Done():
		return WaitResult{}, nil
	}
	switch {
	case se.asked.Load():
		return WaitResult{}, nil
	case se.err != nil:
		return WaitResult{Failed: se.err.Error()}, nil
	}
	return WaitResult{Failed: workload.Ended("server", se.out)}, nil
}

// drive runs the driving half to its end.
func (s *server) drive(life context.Context, p DriveParams) (workload.Output, error) {
	ctx, cancel := context.WithTimeoutCause(life, timeout(p.Program), timeoutError(p.Program))
	defer cancel()
	defer runtime.GC() // the next sample starts with a clean heap
	if p.Program.Native == nil {
		return s.driveTool(ctx, p)
	}
	server, err := netip.ParseAddrPort(p.Server)
	if err != nil {
		return workload.Output{}, fmt.Errorf("the server's address: %w", err)
	}
	conditions := s.conditions(server.Addr().Unmap())
	w := s.watch(p.Program.WithoutProbes)
	hooks := traffic.Hooks{WindowStart: w.start, WindowEnd: w.stop}
	if p.Program.Native.Mark != 0 {
		defer s.switches.reset() // nobody may take them for those of the next half
		hooks.Switched = s.switches.add
	}
	report, err := traffic.Drive(ctx, *p.Program.Native, server, hooks)
	if err := errors.Join(err, w.close()); err != nil {
		return workload.Output{}, because(ctx, err)
	}
	s.locate(conditions, report.CPUs)
	out := workload.Output{Native: &report, Conditions: conditions}
	w.into(&out)
	return out, nil
}

func timeout(p workload.Program) time.Duration {
	if p.Timeout > 0 {
		return p.Timeout
	}
	return defaultTimeout
}

// errTimeout is why a half ended that took too long.
var errTimeout = errors.New("timeout")

func timeoutError(p workload.Program) error {
	return fmt.Errorf("%w: not over after %v", errTimeout, timeout(p))
}

// because names the cause of an end that a context brought.
func because(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
}
