// Package exec is the only package that starts other programs. Every process is started
// from one operating-system thread that lives as long as its Runner, so that it
// can be put into a network namespace and dies with this program even when that
// is killed with -9.
package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/plain"
)

// Cmd is a program to run. No shell is ever between.
type Cmd struct {
	// Argv is the program and its arguments; Argv[0] is looked up in PATH.
	Argv []string
	// Env is added to this program's environment.
	Env []string
	// CleanEnv leaves this program's environment out.
	CleanEnv bool
	Dir      string
	// NetNS is the file of the network namespace to run in; "" is this one's.
	NetNS string
	// Cgroup is the folder of the cgroup (of version 2) to start in; nil is this
	// program's own.
	Cgroup *os.File
	// CPUs are those that the program, and all that it starts, may run on; nil is
	// this program's own.
	CPUs  []int
	Stdin io.Reader
	// User runs the program as another user, with the group of the same number and no
	// others; 0 is this program's own.
	User uint32
	// NetAdmin lets a program of another User administer its network namespace
	// (CAP_NET_ADMIN), where this program may.
	NetAdmin bool
	// Files are open in the program as 3, 4, …
	Files []*os.File
	// OwnPIDs gives the program a PID namespace: when it ends, however it ends, the kernel
	// kills everything that it started, also what has left its process group. It requires
	// CAP_SYS_ADMIN.
	OwnPIDs bool
}

// Result is what a finished program gave.
type Result struct {
	Stdout, Stderr []byte
	ExitCode       int
}

// Error says which command failed, how, and what it wrote to stderr. Its text
// holds the command as it can be pasted into a shell, without its environment:
// errors become reasons in records, and an environment may hold secrets.
type Error struct {
	Cmd    Cmd
	Stderr []byte
	Err    error
}

func (e *Error) Error() string {
	cmd := e.Cmd
	cmd.Env = nil
	msg := fmt.Sprintf("%s: %v", cmd, e.Err)
	if s := strings.TrimSpace(string(e.Stderr)); s != "" {
		if len(s) > 2000 {
			s = "… " + s[len(s)-2000:]
		}
		msg += ": " + s
	}
	return plain.Text(msg)
}

func (e *Error) Unwrap() error { return e.Err }

// String is the command as it can be pasted into a shell. Of Env it shows what
// differs from this program's environment: whatever is inherited stays out.
func (c Cmd) String() string {
	var b strings.Builder
	if c.NetNS != "" {
		b.WriteString("nsenter --net=" + quote(c.NetNS) + " ")
	}
	if env := c.ownEnv(); len(env) > 0 {
		b.WriteString("env ")
		for _, e := range env {
			b.WriteString(quote(e) + " ")
		}
	}
	for i, a := range c.Argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(quote(a))
	}
	return b.String()
}

// ownEnv is Env without the variables that this program has too.
func (c Cmd) ownEnv() []string {
	return slices.DeleteFunc(slices.Clone(c.Env), func(e string) bool {
		return slices.Contains(os.Environ(), e)
	})
}

// quote makes one word of a POSIX shell.
func quote(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-", r)
	}) < 0
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Runner starts programs. Close ends it and kills what it still has running.
type Runner struct {
	starts chan start
	done   chan struct{}

	mu      sync.Mutex
	running map[*exec.Cmd]bool
}

type start struct {
	cmd    *exec.Cmd
	netns  string
	cpus   []int
	answer chan error
}

// NewRunner makes a Runner.
func NewRunner() *Runner {
	r := &Runner{starts: make(chan start), done: make(chan struct{}), running: map[*exec.Cmd]bool{}}
	go r.loop()
	return r
}

// Close kills what still runs and ends the thread that all programs were
// started from. It is called once.
func (r *Runner) Close() {
	close(r.done)
	r.mu.Lock()
	defer r.mu.Unlock()
	for cmd := range r.running {
		_ = killGroup(cmd) // it may have ended on its own just now
	}
}

// loop owns the thread. It is never unlocked, so the thread ends with it.
func (r *Runner) loop() {
	runtime.LockOSThread()
	home, homeErr := os.Open("/proc/thread-self/ns/net")
	if homeErr == nil {
		defer home.Close()
	}
	for {
		select {
		case <-r.done:
			return
		case s := <-r.starts:
			if s.netns == "" {
				s.answer <- onCPUs(s.cpus, s.cmd.Start)
				continue
			}
			if homeErr != nil {
				s.answer <- fmt.Errorf("this program's own network namespace: %w", homeErr)
				continue
			}
			err := setns(s.netns)
			if err == nil {
				err = onCPUs(s.cpus, s.cmd.Start)
				if back := setnsTo(home); back != nil {
					// The thread is lost; nothing may ever be started from it
					// in the wrong namespace.
					homeErr = fmt.Errorf("return to own network namespace: %w", back)
					err = errors.Join(err, homeErr)
				}
			}
			s.answer <- err
		}
	}
}

// Process is a running program. Wait must be called.
type Process struct {
	// Stdin is open until closed, where StartPiped made it.
	Stdin  io.WriteCloser
	Stdout io.ReadCloser
	runner *Runner
	cmd    *exec.Cmd
	spec   Cmd
	stderr *tail
	memory memoryWatch
}

// PID is the process's id, also that of its process group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill kills the program's whole process group.
func (p *Process) Kill() error {
	p.memory.asked.Store(true)
	return killGroup(p.cmd)
}

// Signal sends a signal to the program's whole process group.
func (p *Process) Signal(s syscall.Signal) error { return syscall.Kill(-p.cmd.Process.Pid, s) }

// Stderr is the last 64 KiB that the program wrote to stderr.
func (p *Process) Stderr() []byte { return p.stderr.Bytes() }

// Wait waits for the end; the error is an *Error. It wraps ErrMemory where the kernel
// killed the program for lack of memory.
func (p *Process) Wait() error {
	if err := p.memory.explain(p.runner.wait(p.cmd)); err != nil {
		return &Error{Cmd: p.spec, Stderr: p.stderr.Bytes(), Err: err}
	}
	return nil
}

func killGroup(c *exec.Cmd) error {
	if c.Process == nil {
		return nil
	}
	err := syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

func (r *Runner) command(ctx context.Context, c Cmd) (*exec.Cmd, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("empty command")
	}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	if c.CleanEnv {
		cmd.Env = append([]string{}, c.Env...)
	} else {
		cmd.Env = append(os.Environ(), c.Env...)
	}
	cmd.Dir, cmd.Stdin, cmd.ExtraFiles = c.Dir, c.Stdin, c.Files
	attributes, err := c.attributes()
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = attributes
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = 2 * time.Second
	return cmd, nil
}

// launch starts a program from the thread.
func (r *Runner) launch(cmd *exec.Cmd, netns string, cpus []int) error {
	s := start{cmd: cmd, netns: netns, cpus: cpus, answer: make(chan error, 1)}
	select {
	case r.starts <- s:
		return <-s.answer
	case <-r.done:
		return errors.New("the runner is closed")
	}
}

func (r *Runner) start(cmd *exec.Cmd, netns string, cpus []int) error {
	if err := r.launch(cmd, netns, cpus); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[cmd] = true
	select {
	case <-r.done:
		_ = killGroup(cmd) // Close did not see it
	default:
	}
	return nil
}

func (r *Runner) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, cmd)
	return err
}

// Run runs a program to its end. A program that ends with another status than
// 0 gives its Result and an *Error, and so does one that writes more than 64 MiB to
// stdout or stderr, which is killed (ErrOutput).
func (r *Runner) Run(ctx context.Context, c Cmd) (Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cmd, err := r.command(ctx, c)
	if err != nil {
		return Result{}, err
	}
	stdout, stderr := &limited{name: "stdout", end: stop}, &limited{name: "stderr", end: stop}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = r.start(cmd, c.NetNS, c.CPUs)
	if err == nil {
		err = r.wait(cmd)
	}
	res := Result{Stdout: stdout.held.Bytes(), Stderr: stderr.held.Bytes(), ExitCode: -1}
	if cmd.ProcessState != nil {
		res.ExitCode = cmd.ProcessState.ExitCode()
	}
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		return res, &Error{Cmd: c, Stderr: res.Stderr, Err: err}
	}
	return res, nil
}

// StartPiped starts a program with its stdin and stdout as pipes.
func (r *Runner) StartPiped(ctx context.Context, c Cmd) (*Process, error) {
	cmd, err := r.command(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &Process{runner: r, cmd: cmd, spec: c, stderr: &tail{max: 64 << 10}}
	cmd.Stderr = p.stderr
	if p.Stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.Stdout, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	p.memory.begin()
	if err := r.start(cmd, c.NetNS, c.CPUs); err != nil {
		return nil, &Error{Cmd: c, Err: err}
	}
	return p, nil
}

// Detach starts a program that outlives the runner and this program: what ends
// it is left to the caller. What it says goes to log.
func (r *Runner) Detach(c Cmd, log *os.File) error {
	_, err := r.Launch(c, log)
	return err
}

// Detached is a program that outlives this one.
type Detached struct {
	PID int
	// Ended is closed when the program has ended, as far as this one lives to see
	// it; Err is how then.
	Ended chan struct{}
	Err   error
}

// Launch is Detach for those who want to know of the program.
func (r *Runner) Launch(c Cmd, log *os.File) (*Detached, error) {
	cmd, err := r.command(context.Background(), c)
	if err != nil {
		return nil, err
	}
	outlive(cmd.SysProcAttr)
	cmd.Stdout, cmd.Stderr = log, log
	if err := r.launch(cmd, c.NetNS, c.CPUs); err != nil {
		return nil, &Error{Cmd: c, Err: err}
	}
	d := &Detached{PID: cmd.Process.Pid, Ended: make(chan struct{})}
	go func() { // no zombie; more of how it ended is in its log
		d.Err = cmd.Wait()
		close(d.Ended)
	}()
	return d, nil
}

// LookPath finds a program in PATH.
func LookPath(name string) (string, error) { return exec.LookPath(name) }
