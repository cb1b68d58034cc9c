//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/workload"
)

const (
	// maxOutputBytes is how much of a tool's stdout is kept.
	maxOutputBytes = 8 << 20
	// selfEndWait is how long a serving tool may take to end on its own when the
	// sample is over, as iperf3 -s -1 does; then it is asked to by a signal.
	selfEndWait = 250 * time.Millisecond
	// termWait is how long it may take after that signal.
	termWait = 2 * time.Second
	// stillWait is how long a server may take to accept a connection.
	stillWait = 3 * time.Second
	// readyWait is how long a serving tool may take until it serves.
	readyWait = 10 * time.Second
)

// tool is a program that runs.
type tool struct {
	process *exec.Process
	argv    []string
	dir     string
	cpus    []int // that it is pinned to; nil: the scheduler chooses
	// conditions are those in force when it began.
	conditions map[string]string
	version    string
	watch      *watch
	ask        syscall.Signal         // what asks it to end
	env        []string               // added to this agent's
	device     *deviceBytes           // a device whose bytes are counted meanwhile; nil: none
	hung       atomic.Bool            // the job of this launcher has not begun in time
	stopped    atomic.Pointer[string] // why it was ended, where a process of it was stopped
	deadline   time.Time              // when it must have begun
	quiet      atomic.Int32           // how many looks in a row found that its ranks do nothing

	stdout *head
	exited chan struct{} // closed when the program is over; err is then set
	err    error
}

// startTool fills a program's placeholders in and starts it.
func (s *server) startTool(ctx context.Context, p workload.Program, fill []string) (*tool, error) {
	if len(p.Argv) == 0 {
		return nil, errors.New("a program without an argv")
	}
	t := &tool{stdout: &head{max: maxOutputBytes}, exited: make(chan struct{}), watch: s.watch(p.WithoutProbes), ask: syscall.SIGTERM}
	if p.Interrupt {
		t.ask = syscall.SIGINT
	}
	t.version = s.version(ctx, p.Argv[0])
	cpus, err := placed(p)
	if err == nil {
		fill, err = s.count(t, p.MeasuredAddress, fill)
	}
	if err == nil {
		err = s.prepare(t, p, fill)
	}
	if err != nil {
		return nil, errors.Join(err, t.clean())
	}
	t.cpus, t.conditions = cpus, s.conditions(addressOf(fill))
	s.locate(t.conditions, cpus)
	// Stdout is drained to its end before Wait, and ctx kills the group.
	user := toolUser()
	env := t.env
	if user != 0 { // a TMPDIR of root's own is closed to nobody, and iperf3 needs one
		env = slices.Concat([]string{"TMPDIR=/tmp"}, env)
	}
	process, err := s.runner.StartPiped(ctx, exec.Cmd{
		Argv: t.argv, Env: env, CPUs: cpus, User: user, NetAdmin: p.NetAdmin, OwnPIDs: p.OwnPIDs && mayOwnPIDs(),
	})
	if err != nil {
		return nil, errors.Join(err, t.clean())
	}
	t.process = process
	_ = process.Stdin.Close() // a tool reads nothing; the pipe has no other end to lose
	go t.wait()
	if p.OwnPIDs { // it starts ranks
		s.mu.Lock()
		s.jobs[t] = true
		s.mu.Unlock()
		go func() {
			t.watchRanks(s.roots.Proc)
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.jobs, t)
		}()
	}
	return t, nil
}

// prepare makes the scratch folder, its files and the argv.
func (s *server) prepare(t *tool, p workload.Program, fill []string) error {
	if uses(p, "{dir}") || len(p.Files) > 0 {
		dir, err := s.scratch.folder()
		if err != nil {
			return err
		}
		t.dir = dir
		fill = append(fill, "{dir}", dir)
	}
	r := strings.NewReplacer(fill...)
	for name, content := range p.Files {
		if filepath.Base(name) != name {
			return fmt.Errorf("file %q: only a plain name can be put into {dir}", name)
		}
		if err := os.WriteFile(filepath.Join(t.dir, name), []byte(r.Replace(content)), 0o600); err != nil {
			return err
		}
	}
	if t.dir != "" {
		if err := give(t.dir, toolUser()); err != nil {
			return err
		}
	}
	for _, e := range p.Env {
		t.env = append(t.env, r.Replace(e))
	}
	for _, arg := range p.Argv {
		arg = r.Replace(arg)
		for _, left := range []string{"{address}", "{port}", "{dir}", "{bind}", "{listen}", "{device}", "{rdma}"} {
			if strings.Contains(arg, left) {
				return fmt.Errorf("argument %q: nothing to put for %s at this end", arg, left)
			}
		}
		t.argv = append(t.argv, arg)
	}
	return nil
}

func uses(p workload.Program, placeholder string) bool {
	return slices.ContainsFunc(slices.Concat(p.Argv, p.Env), func(arg string) bool { return strings.Contains(arg, placeholder) })
}

// wait reads the program's output to its end, then its status.
func (t *tool) wait() {
	_, err := io.Copy(t.stdout, t.process.Stdout)
	t.err = t.process.Wait()
	if t.err == nil && err != nil && !errors.Is(err, os.ErrClosed) {
		t.err = fmt.Errorf("read the output of %s: %w", t.argv[0], err)
	}
	close(t.exited)
}

// end stops a program that still runs: it is asked to end, then killed.
func (t *tool) end() {
	select {
	case <-t.exited:
		return
	default:
	}
	_ = t.process.Signal(t.ask) // it may have ended just now
	select {
	case <-t.exited:
	case <-time.After(termWait):
		t.kill()
	}
}

func (t *tool) kill() {
	_ = t.process.Kill() // it may have ended just now
	<-t.exited
}

// clean ends the probes and removes the scratch folder.
func (t *tool) clean() error {
	err := t.watch.close()
	if t.dir == "" {
		return err
	}
	return errors.Join(err, os.RemoveAll(t.dir))
}

// output is what came of a program that is over. ended reports that the agent
// ended it, because the sample was over: its status then says nothing.
func (t *tool) output(ended bool) workload.Output {
	out := workload.Output{Argv: t.argv, Stdout: t.stdout.String(), Stderr: string(t.process.Stderr()), ToolVersion: t.version, CPUs: t.cpus, Conditions: t.conditions}
	if t.err != nil && !ended {
		out.ExitCode, out.OutOfMemory = exitCode(t.err), errors.Is(t.err, exec.ErrMemory)
	}
	if why := t.stopped.Load(); why != nil {
		out.Killed = *why
	}
	t.watch.into(&out)
	t.counted(&out)
	return out
}

// exitCode is a program's exit status, -1 where a signal ended it.
func exitCode(err error) int {
	var coder interface{ ExitCode() int }
	if errors.As(err, &coder) {
		return coder.ExitCode()
	}
	return -1
}

// driveTool runs a driving tool to its end. A tool that fails is no error
// here: its output goes to the parser, and to raw/.
func (s *server) driveTool(ctx context.Context, p DriveParams) (workload.Output, error) {
	var fill []string
	if p.Server != "" {
		server, err := netip.ParseAddrPort(p.Server)
		if err != nil {
			return workload.Output{}, fmt.Errorf("the server's address: %w", err)
		}
		fill = []string{"{address}", server.Addr().String(), "{port}", strconv.Itoa(int(server.Port()))}
	}
	t, err := s.startTool(ctx, p.Program, fill)
	if err != nil {
		return workload.Output{}, err
	}
	go t.watch.over(p.Program.WindowOffset, p.Program.Window, t.exited)
	select {
	case <-t.exited:
	case <-ctx.Done():
		t.kill()
	}
	out := t.output(false)
	out.Source = sourceOf(p.Server)
	if errors.Is(context.Cause(ctx), errTimeout) {
		out.Killed = "timeout"
	} else if ctx.Err() != nil {
		return workload.Output{}, errors.Join(context.Cause(ctx), t.clean())
	} else if p.Program.StillThere && out.ExitCode == 0 {
		out.Unreachable = unreachable(ctx, p.Server)
	}
	return out, t.clean()
}

// unreachable says why a server's port takes no connection; "" where it does.
func unreachable(ctx context.Context, server string) string {
	d := net.Dialer{Timeout: stillWait}
	c, err := d.DialContext(ctx, "tcp", server)
	if err != nil {
		return err.Error()
	}
	_ = c.Close() // nothing was sent
	return ""
}

// serveTool starts a serving tool and waits until it serves.
func (s *server) serveTool(ctx context.Context, se *session, asked ServeParams) (uint16, func() (workload.Output, error), error) {
	p, port := asked.Program, asked.Port
	if p.Port && port == 0 {
		var err error
		if port, err = freePort(); err != nil {
			return 0, nil, err
		}
	}
	earlier, _ := remotesAt(s.roots.Proc, port) // where that cannot be read, strangersAt says so
	t, err := s.startTool(ctx, p, bindTo(asked, port))
	if err != nil {
		return 0, nil, err
	}
	if err := t.ready(ctx, s.roots.Proc, p.Ready, port); err != nil {
		t.kill()
		return 0, nil, errors.Join(err, t.clean())
	}
	if p.Launch != nil {
		if se.commands, err = t.commands(ctx, *p.Launch); err != nil {
			t.kill()
			return 0, nil, errors.Join(err, t.clean())
		}
		go t.begins(*p.Launch)
	}
	go t.watch.over(p.WindowOffset, p.Window, t.exited)
	over := make(chan struct{})
	se.port, se.earlier = port, earlier
	se.finish = sync.OnceFunc(func() { close(over) })
	return port, func() (workload.Output, error) { return t.serve(ctx, over) }, nil
}

// serve waits for the end of a serving tool or of the sample.
func (t *tool) serve(ctx context.Context, over <-chan struct{}) (workload.Output, error) {
	ended := false
	select {
	case <-t.exited:
	case <-ctx.Done():
		t.kill()
	case <-over:
		select {
		case <-t.exited:
		case <-time.After(selfEndWait):
			ended = true
			t.end()
		}
	}
	out := t.output(ended)
	if errors.Is(context.Cause(ctx), errTimeout) {
		out.Killed = "timeout"
	} else if t.hung.Load() {
		out.Killed = "the job did not begin"
	} else if ctx.Err() != nil {
		return workload.Output{}, errors.Join(context.Cause(ctx), t.clean())
	}
	return out, t.clean()
}

// freePort finds a port that is free for TCP and UDP on all addresses. It is
// free again when this returns: whoever takes it first makes the tool fail,
// and the sample with it.
func freePort() (uint16, error) {
	var last error
	for range 32 {
		l, err := net.Listen("tcp", ":0")
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).AddrPort().Port()
		c, err := net.ListenPacket("udp", fmt.Sprintf(":%d", port))
		if err == nil {
			return port, errors.Join(c.Close(), l.Close())
		}
		last = errors.Join(err, l.Close())
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}

// addressOf is the server's address among what a client's placeholders are filled
// with; not valid where there is none.
func addressOf(fill []string) netip.Addr {
	for i := 0; i+1 < len(fill); i += 2 {
		if fill[i] == "{address}" {
			if a, err := netip.ParseAddr(fill[i+1]); err == nil {
				return a
			}
		}
	}
	return netip.Addr{}
}
