package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/answer"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/plain"
)

// ErrGone reports that the agent has died or its line was cut. The error that
// wraps it holds the end of what the agent wrote to stderr.
var ErrGone = errors.New("the agent is gone")

const (
	// cancelWait bounds the wait for an agent to end what was cancelled.
	cancelWait = time.Second
	// closeWait is how long an agent may take to clean up after its input ended.
	closeWait = 5 * time.Second
	// exitWait is how long an agent that closed its stdout may take to exit.
	exitWait = 2 * time.Second
)

// Transport is the way to an agent: a process here, an exec into a pod, ssh.
type Transport struct {
	// Stdin and Stdout are the agent's.
	Stdin  io.WriteCloser
	Stdout io.Reader
	// Stderr gives the end of what the agent wrote to stderr; nil: unknown.
	Stderr func() []byte
	// Wait waits for the agent's exit, once Stdout has ended; nil: none to wait for.
	Wait func() error
	// Kill ends an agent that does not end on its own; nil: none.
	Kill func() error
}

// Client speaks to one agent over its stdin and stdout. Its methods may be
// called from many goroutines at once.
type Client struct {
	t    Transport
	out  chan []byte
	done chan struct{} // closed when the agent is gone; gone is then set

	mu      sync.Mutex
	next    int64
	waiting map[int64]chan Response
	late    map[int64]bool // requests whose answer nobody waits for any more
	gone    error

	closing sync.Once
	machine string
	version string
}

// Version is that of the program that the agent is; "" where it is unknown.
func (c *Client) Version() string { return c.version }

// Machine identifies the kernel, and its boot, that the agent runs on; "" where
// it is unknown.
func (c *Client) Machine() string { return c.machine }

// Start starts argv (cnibench agent) in a network namespace ("" is this one's)
// and greets it. The agent lives until Close or until the runner closes: ctx
// bounds the greeting alone.
func Start(ctx context.Context, runner *exec.Runner, argv []string, netnsPath string) (*Client, error) {
	return StartCmd(ctx, runner, exec.Cmd{Argv: argv, NetNS: netnsPath})
}

// StartCmd is Start for a command that needs more than a namespace.
func StartCmd(ctx context.Context, runner *exec.Runner, cmd exec.Cmd) (*Client, error) {
	p, err := runner.StartPiped(context.WithoutCancel(ctx), cmd)
	if err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	return NewClient(ctx, Transport{Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Wait: p.Wait, Kill: p.Kill})
}

// NewClient greets the agent at the other end of t. On an error the agent is
// ended.
func NewClient(ctx context.Context, t Transport) (*Client, error) {
	c := &Client{t: t, out: make(chan []byte), done: make(chan struct{}), waiting: map[int64]chan Response{}, late: map[int64]bool{}}
	go c.read()
	go c.write()
	var hello HelloResult
	err := c.Call(ctx, MethodHello, HelloParams{Protocol: Protocol}, &hello)
	if err == nil && hello.Protocol != Protocol {
		err = fmt.Errorf("the agent (version %s) speaks protocol %d, this program %d: run the same cnibench at both ends", answer.Line(hello.Version), hello.Protocol, Protocol)
	}
	if err != nil {
		if t.Kill != nil {
			_ = t.Kill() // it may be dead already; it has started nothing yet
		}
		return nil, errors.Join(err, c.Close())
	}
	c.machine, c.version = answer.Line(hello.Machine), answer.Line(hello.Version)
	return c, nil
}

// Call sends one request and waits for its answer, which is decoded into
// answer unless that is nil. When ctx ends first, the client has the agent cancel
// everything that it has under way, and ctx's cause is the error. When the
// agent has died the error is an ErrGone.
func (c *Client) Call(ctx context.Context, method string, params, answer any) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	id, answered, err := c.send(ctx, method, params)
	if err != nil {
		return err
	}
	select {
	case r := <-answered:
		return decode(r, method, answer)
	case <-c.done:
		return c.gone
	case <-ctx.Done():
		c.forget(id)
		c.cancel(ctx)
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
}

// Ask sends a request without parameters, and cancels nothing when ctx ends before its
// answer, which is decoded into answer unless that is nil.
func (c *Client) Ask(ctx context.Context, method string, answer any) error {
	id, answered, err := c.send(ctx, method, struct{}{})
	if err != nil {
		return err
	}
	select {
	case r := <-answered:
		return decode(r, method, answer)
	case <-c.done:
		return c.gone
	case <-ctx.Done():
		c.forget(id)
		return context.Cause(ctx)
	}
}

// cancel has the agent end what it has under way, and waits for that, so
// that the next sample finds an idle place.
func (c *Client) cancel(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
	defer stop()
	id, answered, err := c.send(ctx, MethodCancel, CancelParams{})
	if err != nil {
		return // gone, or stuck: the next Call says so
	}
	select {
	case <-answered:
	case <-c.done:
	case <-ctx.Done():
		c.forget(id)
		c.Abandon() // it does not answer at all
	}
}

// Abandon ends an agent that does not answer, without asking it: every call
// that waits for it fails, and what it started dies with it. One that answers is
// ended by Close.
func (c *Client) Abandon() {
	if c.t.Kill != nil {
		_ = c.t.Kill() // it may have ended on its own just now
	}
}

func (c *Client) send(ctx context.Context, method string, params any) (int64, chan Response, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", method, err)
	}
	answered := make(chan Response, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.waiting[id] = answered
	c.mu.Unlock()
	line, err := json.Marshal(Request{ID: id, Method: method, Params: raw})
	if err != nil {
		c.forget(id)
		return 0, nil, fmt.Errorf("%s: %w", method, err)
	}
	select {
	case c.out <- append(line, '\n'):
		return id, answered, nil
	case <-c.done:
		return 0, nil, c.gone
	case <-ctx.Done():
		c.forget(id)
		return 0, nil, fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
}

func (c *Client) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, waits := c.waiting[id]; waits {
		delete(c.waiting, id)
		c.late[id] = true
	}
}

func decode(r Response, method string, answer any) error {
	if r.Error != "" {
		return errors.New(plain.Text(shortened(r.Error)))
	}
	if answer == nil || len(r.Result) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Result, answer); err != nil {
		return fmt.Errorf("%s: the agent's answer: %w", method, err)
	}
	return nil
}

// maxReason bounds what an agent may say of an error, in bytes: it becomes the reason of a
// record.
const maxReason = 8 << 10

// shortened is a text without what is beyond maxReason.
func shortened(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + " …"
}

// write is the only writer of the agent's stdin; it ends with the client.
func (c *Client) write() {
	for {
		select {
		case line := <-c.out:
			if _, err := c.t.Stdin.Write(line); err != nil {
				// The reader reaches the end of stdout; until then nothing more
				// can be said to the agent.
				<-c.done
				return
			}
		case <-c.done:
			return
		}
	}
}

// read hands every answer to its caller until the agent's stdout ends.
func (c *Client) read() {
	in := bufio.NewReaderSize(c.t.Stdout, 64<<10)
	var broken error
	for {
		line, err := readLine(in, maxLine)
		if errors.Is(err, errLongLine) {
			err = fmt.Errorf("it sent an answer of more than %d MiB", maxLine>>20)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				broken = err
			}
			break
		}
		var r Response
		if err := json.Unmarshal(line, &r); err != nil {
			broken = fmt.Errorf("not an answer: %.200q", line)
			break
		}
		if !c.take(r) {
			broken = errors.New("it sent an answer to nothing that it was asked")
			break
		}
	}
	c.end(broken)
}

// take hands an answer to its caller. It reports whether one was due: each request has
// one, so that an agent cannot keep this program busy with more.
func (c *Client) take(r Response) bool {
	c.mu.Lock()
	answered, late := c.waiting[r.ID], c.late[r.ID]
	delete(c.waiting, r.ID)
	delete(c.late, r.ID)
	c.mu.Unlock()
	if answered != nil {
		answered <- r
	}
	return answered != nil || late
}

// maxLine bounds one answer, in bytes. The longest are those of tools, of whose
// output an agent sends 8 MiB (maxOutputBytes) at the most.
const maxLine = 32 << 20

// errLongLine is the error of a line that is longer than its reader takes.
var errLongLine = errors.New("the line is too long")

// readLine reads a line of at most limit bytes, with its end.
func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, errLongLine
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// end waits for the agent's exit and returns to every caller why it is gone.
func (c *Client) end(broken error) {
	if c.t.Kill != nil {
		kill := time.AfterFunc(exitWait, func() { _ = c.t.Kill() }) // it may have exited just now
		defer kill.Stop()
		if broken != nil {
			_ = c.t.Kill() // what it says can no longer be understood
		}
	}
	why := broken
	if c.t.Wait != nil {
		why = errors.Join(broken, c.t.Wait())
	}
	gone := ErrGone
	if why != nil {
		gone = fmt.Errorf("%w: %w", ErrGone, why)
	} else if c.t.Stderr != nil {
		if s := strings.TrimSpace(string(c.t.Stderr())); s != "" {
			gone = fmt.Errorf("%w: %s", ErrGone, plain.Text(s))
		}
	}
	c.mu.Lock()
	c.gone = gone
	c.mu.Unlock()
	close(c.done)
}

// Alive reports whether the agent still answers: its stdout is open.
func (c *Client) Alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// Close ends the agent by ending its input, so that it cleans up, and waits
// for it; one that does not end is killed, and that is the error.
func (c *Client) Close() error {
	var err error
	c.closing.Do(func() {
		_ = c.t.Stdin.Close() // of an agent that has died it is closed already
		if c.t.Kill == nil {
			return
		}
		select {
		case <-c.done:
		case <-time.After(closeWait):
			err = fmt.Errorf("the agent did not end within %v of the end of its input: killed", closeWait)
			err = errors.Join(err, c.t.Kill())
			<-c.done
		}
	})
	return err
}
