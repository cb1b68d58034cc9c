//go:build linux

package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/traffic"
)

// errOver is why work ends when the controller has gone or has cancelled it.
var errOver = errors.New("cancelled by the controller")

const (
	// idleHeapBytes lets the collector run again in a run that leaks.
	idleHeapBytes = 1 << 30
	// endWait bounds the wait for halves that are being ended.
	endWait = 5 * time.Second
	// maxRequest bounds one request, in bytes. The longest are the turns of a sliced run
	// and the files of tools, some hundred KiB.
	maxRequest = 8 << 20
)

// server is one agent.
type server struct {
	runner  *exec.Runner
	scratch *scratch
	roots   probe.Roots

	outMu sync.Mutex
	out   io.Writer

	mu sync.Mutex
	// life is the context of everything under way; MethodCancel ends it and
	// makes a new one. busy counts what runs under it.
	life     context.Context
	end      context.CancelCauseFunc
	busy     *sync.WaitGroup
	sessions map[string]*session
	opened   map[string]opening
	ranks    map[string]*joined
	// newcomers are expected; nil: none are.
	newcomers *newcomers
	jobs      map[*tool]bool // that start ranks of an MPI, and run
	switches  switches
	next      int
	versions  map[string]string // of tools, once asked
	release   string            // the version of this program
}

// Serve is the agent: it answers requests from stdin on stdout until stdin
// ends, ctx ends or a signal asks it to. Then everything that it started is
// killed, its ports are closed and its scratch folders are removed. It gives
// the exit status.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer) int {
	return ServeAs(ctx, stdin, stdout, "")
}

// ServeAs is Serve for a program that knows its version; "" is the module's.
func ServeAs(ctx context.Context, stdin io.Reader, stdout io.Writer, version string) int {
	// A controller that died has closed stdout: that must end in the clean-up
	// below, not in a death by SIGPIPE.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer stop()
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	// No garbage collection inside a measured window: it stops all threads. It
	// runs between samples instead (see idle).
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(idleHeapBytes))

	carriers, err := readCarriers(os.Getenv(CarriersEnv))
	if err != nil {
		fmt.Fprintln(os.Stderr, "cnibench agent:", err)
		return 1
	}
	s := &server{
		runner: exec.NewRunner(), scratch: &scratch{}, roots: machineRoots(carriers),
		out: stdout, versions: map[string]string{}, release: version,
	}
	s.fresh()
	lines := make(chan []byte)
	ended := make(chan error, 1)
	go read(ctx, stdin, lines, ended)
loop:
	for {
		select {
		case line := <-lines:
			s.accept(line)
		case err = <-ended:
			break loop
		case <-ctx.Done():
			break loop
		}
	}
	err = errors.Join(err, s.cancelAll())
	s.runner.Close()
	err = errors.Join(err, s.scratch.remove())
	if err != nil {
		fmt.Fprintln(os.Stderr, "cnibench agent:", err)
		return 1
	}
	return 0
}

// machineRoots are this machine's, with names of kernel functions that all
// samples share.
func machineRoots(carriers []int) probe.Roots {
	roots := probe.Roots{Proc: "/proc", Sys: "/sys", Carriers: carriers}
	roots.Symbols = probe.NewSymbols(roots)
	return roots
}

// read gives the lines of stdin until it or ctx ends.
func read(ctx context.Context, stdin io.Reader, lines chan<- []byte, ended chan<- error) {
	in := bufio.NewReaderSize(stdin, 64<<10)
	for {
		line, err := readLine(in, maxRequest)
		if errors.Is(err, io.EOF) {
			ended <- nil
			return
		}
		if errors.Is(err, errLongLine) {
			err = fmt.Errorf("a request of more than %d MiB: run the same cnibench at both ends", maxRequest>>20)
		}
		if err != nil {
			ended <- fmt.Errorf("read requests: %w", err)
			return
		}
		select {
		case lines <- line:
		case <-ctx.Done():
			return
		}
	}
}

// fresh makes the context of what comes next. mu is held, or nobody else runs.
func (s *server) fresh() {
	s.life, s.end = context.WithCancelCause(context.Background())
	s.busy = &sync.WaitGroup{}
	s.sessions = map[string]*session{}
	s.opened = map[string]opening{}
	s.ranks = map[string]*joined{}
	s.jobs = map[*tool]bool{}
	s.newcomers = nil
}

// accept answers one line, each in a goroutine of its own.
func (s *server) accept(line []byte) {
	var req Request
	if err := json.Unmarshal(line, &req); err != nil {
		s.answer(Response{Error: fmt.Sprintf("not a request: %v", err)})
		return
	}
	if req.Method == MethodCancel {
		go func() { s.respond(req.ID, struct{}{}, s.cancelAll()) }()
		return
	}
	s.mu.Lock()
	life, busy := s.life, s.busy
	busy.Add(1)
	s.mu.Unlock()
	go func() {
		defer busy.Done()
		result, err := s.do(life, req)
		s.respond(req.ID, result, err)
	}()
}

// do runs one request.
func (s *server) do(ctx context.Context, req Request) (any, error) {
	switch req.Method {
	case MethodHello:
		return with(req, func(p HelloParams) (HelloResult, error) { return s.hello() })
	case MethodServe:
		return with(req, func(p ServeParams) (ServeResult, error) { return s.serve(ctx, p) })
	case MethodDrive:
		return with(req, func(p DriveParams) (any, error) { return s.drive(ctx, p) })
	case MethodOpen:
		return with(req, func(p DriveParams) (OpenResult, error) { return s.open(ctx, p) })
	case MethodClock:
		return ClockResult{Now: traffic.Now()}, nil
	case MethodQuiet:
		return s.quiet(), nil
	case MethodSwitched:
		return with(req, func(p SwitchedParams) (struct{}, error) { return struct{}{}, s.switches.wait(ctx, p.Count) })
	case MethodSlices:
		return with(req, func(p SlicesParams) (any, error) { return s.slices(ctx, p) })
	case MethodAbandon:
		return with(req, func(p FinishParams) (struct{}, error) { return struct{}{}, s.abandon(p) })
	case MethodFinish:
		return with(req, func(p FinishParams) (any, error) { return s.finish(p) })
	case MethodWait:
		return with(req, func(p WaitParams) (WaitResult, error) { return s.wait(ctx, p) })
	case MethodTools:
		return with(req, func(p ToolsParams) (ToolsResult, error) { return s.tools(ctx, p) })
	case MethodFacts:
		return with(req, func(struct{}) (Facts, error) { return facts(s.roots) })
	case MethodJoin:
		return with(req, func(p JoinParams) (ServeResult, error) { return s.join(ctx, p) })
	case MethodRank:
		return with(req, func(p RankParams) (RankResult, error) { return s.rank(p) })
	case MethodExpect:
		return with(req, func(p ExpectParams) (ExpectResult, error) { return s.expect(ctx, p) })
	case MethodArrived:
		return s.arrived()
	case MethodIdle:
		return with(req, func(p IdleParams) (IdleResult, error) { return s.idle(ctx, p) })
	default:
		return nil, fmt.Errorf("the agent knows no method %q: run the same cnibench at both ends", req.Method)
	}
}

// with decodes a request's parameters for f.
func with[P, R any](req Request, f func(P) (R, error)) (any, error) {
	var p P
	if len(req.Params) > 0 {
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return nil, fmt.Errorf("%s: parameters: %w", req.Method, err)
		}
	}
	return f(p)
}

func (s *server) hello() (HelloResult, error) {
	version := s.release
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		version = info.Main.Version
	}
	// Absent where /proc is masked; then the machine is unknown.
	boot, _ := os.ReadFile(filepath.Join(s.roots.Proc, "sys/kernel/random/boot_id"))
	return HelloResult{Protocol: Protocol, Version: version, PID: os.Getpid(), Machine: strings.TrimSpace(string(boot))}, nil
}

func (s *server) respond(id int64, result any, err error) {
	r := Response{ID: id}
	if err == nil {
		r.Result, err = json.Marshal(result)
	}
	if err != nil {
		r.Error = err.Error()
	}
	s.answer(r)
}

func (s *server) answer(r Response) {
	line, err := json.Marshal(r)
	if err != nil {
		line, _ = json.Marshal(Response{ID: r.ID, Error: err.Error()}) // two plain fields always encode
	}
	s.outMu.Lock()
	defer s.outMu.Unlock()
	// A write that fails means that the controller is gone; stdin says so too.
	_, _ = s.out.Write(append(line, '\n'))
}

// cancelAll ends everything under way and waits for that.
func (s *server) cancelAll() error {
	s.mu.Lock()
	end, busy, opened, ranks := s.end, s.busy, s.opened, s.ranks
	s.fresh()
	s.mu.Unlock()
	end(errOver)
	for _, d := range opened {
		d.Close()
	}
	for _, r := range ranks {
		r.leave()
	}
	over := make(chan struct{})
	go func() { busy.Wait(); close(over) }()
	select {
	case <-over:
		runtime.GC()
		return nil
	case <-time.After(endWait):
		return fmt.Errorf("something of a cancelled sample still runs after %v", endWait)
	}
}
