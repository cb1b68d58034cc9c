package fault

import (
	"bytes"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
)

// TestProcesses: a process is stopped when Stop returns, and its group is gone after Kill.
func TestProcesses(t *testing.T) {
	r := exec.NewRunner()
	defer r.Close()
	p, err := r.StartPiped(t.Context(), exec.Cmd{Argv: []string{"sh", "-c", "sleep 100 & echo begun; wait"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stdout.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if children := Children(t, p.PID()); len(children) != 1 || !slices.Contains(Group(p.PID()), children[0]) {
		t.Errorf("children %v of group %v", children, Group(p.PID()))
	}
	Stop(t, p.PID())
	if state := stateOf(p.PID()); state != "T" {
		t.Errorf("a stopped process is %s", state)
	}
	Continue(t, p.PID())
	Kill(t, -p.PID())
	if err := p.Wait(); err == nil {
		t.Error("a killed process ended well")
	}
	for begin := time.Now(); len(Group(p.PID())) > 0; time.Sleep(time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatalf("left: %v", Group(p.PID()))
		}
	}
	if state := stateOf(p.PID()); state != "" {
		t.Errorf("a process that is gone is %s", state)
	}
}

// TestLate: what is passed on arrives whole, in order and not before its time.
func TestLate(t *testing.T) {
	const delay = 20 * time.Millisecond
	text := bytes.Repeat([]byte("0123456789"), 10_000)
	var to bytes.Buffer
	begin := time.Now()
	Late(&to, bytes.NewReader(text), delay)
	if took := time.Since(begin); took < delay || !bytes.Equal(to.Bytes(), text) {
		t.Errorf("%d of %d bytes after %v", to.Len(), len(text), took)
	}
}

// TestHalfOpen: connections are taken, and nothing comes of them.
func TestHalfOpen(t *testing.T) {
	c, err := net.Dial("tcp", HalfOpen(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := io.WriteString(c, "hello"); n != 5 || err != nil {
		t.Errorf("%d bytes were taken, %v", n, err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("it answers")
	}
}
