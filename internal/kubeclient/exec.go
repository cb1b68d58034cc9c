package kubeclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

// stderrKept is how much of the end of a program's stderr is kept, bytes.
const stderrKept = 8 << 10

// killedStatus is that of a program that SIGKILL ended, as a shell and a container runtime
// give it: 128 + 9.
const killedStatus = 137

// Target is a container of a pod.
type Target struct{ Namespace, Pod, Container string }

func (t Target) String() string { return t.Namespace + "/" + t.Pod }

// Streams are a program's, seen from the program.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Executor runs a program in a pod and returns when it has ended, or ctx has.
type Executor func(ctx context.Context, in Target, argv []string, s Streams) error

// Process is a program that runs in a pod.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.Reader

	in     Target
	stop   context.CancelFunc
	done   chan struct{}
	err    error // of the stream; read after done
	stderr tail
}

// Exec starts a program in a container, connected over the API server by
// WebSocket, or by SPDY where a server or a proxy before it does not know that. It
// lives until it ends, its input is closed and it heeds that, or Kill; the end of
// ctx does not end it.
func (c *Client) Exec(ctx context.Context, in Target, argv []string) *Process {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	toProgram, stdin := io.Pipe()
	stdout, fromProgram := io.Pipe()
	p := &Process{Stdin: stdin, Stdout: stdout, in: in, stop: stop, done: make(chan struct{})}
	run := c.exec
	if run == nil {
		run = c.stream
	}
	go func() {
		defer close(p.done)
		p.err = run(ctx, in, argv, Streams{Stdin: toProgram, Stdout: fromProgram, Stderr: &p.stderr})
		stop()
		// Whoever writes to it or reads from it gets the error.
		_ = toProgram.CloseWithError(io.ErrClosedPipe) // never fails (io.Pipe)
		_ = fromProgram.Close()
	}()
	return p
}

func (c *Client) stream(ctx context.Context, in Target, argv []string, s Streams) error {
	where := c.API.CoreV1().RESTClient().Post().Resource("pods").Namespace(in.Namespace).Name(in.Pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: in.Container, Command: argv, Stdin: true, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	query := where.Query()
	query.Del("timeout") // that of ordinary requests: an exec lasts as long as a campaign
	where.RawQuery = query.Encode()
	socket, err := remotecommand.NewWebSocketExecutor(c.config, "GET", where.String())
	if err != nil {
		return err
	}
	spdy, err := remotecommand.NewSPDYExecutor(c.config, "POST", where)
	if err != nil {
		return err
	}
	executor, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr})
}

// Wait waits for the program's end and says how it came, with the end of what it
// wrote to stderr; nil: on its own, with status 0.
func (p *Process) Wait() error {
	<-p.done
	if p.err == nil {
		return nil
	}
	said := strings.TrimSpace(string(p.Stderr()))
	var status exec.CodeExitError
	switch {
	case errors.As(p.err, &status) && said != "":
		return fmt.Errorf("it ended with status %d: %s", status.Code, said)
	case errors.As(p.err, &status) && status.Code == killedStatus:
		return fmt.Errorf("it ended with status %d: it was killed, by the kernel if its pod was out of memory: kubectl describe pod -n %s %s shows OOMKilled and the limits", killedStatus, p.in.Namespace, p.in.Pod)
	case errors.As(p.err, &status):
		return fmt.Errorf("it ended with status %d", status.Code)
	case errors.Is(p.err, context.Canceled):
		return errors.New("its exec stream was closed")
	}
	return fmt.Errorf("its exec stream was cut: %w", p.err)
}

// Kill closes the streams: the program's input ends, and nobody hears it any more.
func (p *Process) Kill() error {
	p.stop()
	return nil
}

// Stderr is the end of what the program wrote to stderr.
func (p *Process) Stderr() []byte { return p.stderr.bytes() }

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - stderrKept; over > 0 {
		t.kept = t.kept[over:]
	}
	return len(b), nil
}

func (t *tail) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.kept)
}
