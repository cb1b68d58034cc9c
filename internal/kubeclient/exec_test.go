package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/exec"
)

// run is a client whose programs are a function.
func run(f Executor) *Client { return NewClient(fake.NewClientset(), f) }

func TestProcessSpeaksAndEndsWithItsInput(t *testing.T) {
	p := run(func(_ context.Context, in Target, argv []string, s Streams) error {
		fmt.Fprintln(s.Stdout, in, argv)
		_, err := io.Copy(s.Stdout, s.Stdin)
		return err
	}).Exec(t.Context(), Target{"ns", "pod", "agent"}, []string{"echo"})
	go func() {
		fmt.Fprint(p.Stdin, "hello")
		p.Stdin.Close()
	}()
	out, err := io.ReadAll(p.Stdout)
	if err != nil || string(out) != "ns/pod [echo]\nhello" {
		t.Errorf("%q, %v", out, err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := p.Stdin.Write([]byte("more")); err == nil {
		t.Error("a program that has ended reads")
	}
}

func TestProcessSaysWhyItEnded(t *testing.T) {
	for _, c := range []struct {
		err    error
		stderr string
		want   string
	}{
		{exec.CodeExitError{Err: errors.New("x"), Code: 3}, "no such library\n", "it ended with status 3: no such library"},
		{exec.CodeExitError{Err: errors.New("x"), Code: 137}, "", "it ended with status 137: it was killed, by the kernel if its pod was out of memory: kubectl describe pod -n ns pod shows OOMKilled and the limits"},
		{errors.New("websocket: close 1006"), "", "its exec stream was cut: websocket: close 1006"},
		{context.Canceled, "", "its exec stream was closed"},
	} {
		p := run(func(_ context.Context, _ Target, _ []string, s Streams) error {
			fmt.Fprint(s.Stderr, c.stderr)
			return c.err
		}).Exec(t.Context(), Target{Namespace: "ns", Pod: "pod"}, nil)
		if err := p.Wait(); err == nil || err.Error() != c.want {
			t.Errorf("%v: got %v, want %s", c.err, err, c.want)
		}
	}
	var end tail
	fmt.Fprint(&end, strings.Repeat("a", stderrKept))
	fmt.Fprint(&end, "last")
	if kept := string(end.bytes()); len(kept) != stderrKept || !strings.HasSuffix(kept, "alast") {
		t.Errorf("kept %d bytes", len(kept))
	}
}

func TestKillEndsAProgramThatIsStuck(t *testing.T) {
	p := run(func(ctx context.Context, _ Target, _ []string, _ Streams) error {
		<-ctx.Done()
		return ctx.Err()
	}).Exec(t.Context(), Target{}, nil)
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if err := p.Wait(); err == nil || err.Error() != "its exec stream was closed" {
		t.Error(err)
	}
}
