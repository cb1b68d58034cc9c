package hosts

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// TestHoldHost: a host's lock is one's alone, and goes with the connection, also
// where the host is never told that it broke: its holder is silent then. The same
// one may take its own again at once.
func TestHoldHost(t *testing.T) {
	labtest.Tool(t, "flock", "util-linux")
	r := exec.NewRunner()
	defer r.Close()
	file := filepath.Join(t.TempDir(), "lock")
	hold := func(who, seconds string) (*exec.Process, string) {
		t.Helper()
		p, err := r.StartPiped(t.Context(), exec.Cmd{Argv: []string{"sh", "-c", holdHost, "sh", file, who, seconds}})
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(p.Stdout).ReadString('\n')
		if err != nil {
			t.Fatalf("%v: %s", err, p.Stderr())
		}
		return p, strings.TrimSpace(line)
	}
	want := func(who, seconds, answer string) *exec.Process {
		t.Helper()
		p, said := hold(who, seconds)
		if said != answer {
			t.Errorf("%s is told %q, want %q", who, said, answer)
		}
		return p
	}
	silent := want("one", "1", "held")
	want("two", "60", "busy one")
	if err := silent.Wait(); err != nil { // its input stays open
		t.Errorf("a silent holder: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file of a lock that was let go is still there")
	}

	alive := want("three", "1", "held")
	for range 6 {
		time.Sleep(300 * time.Millisecond)
		if _, err := io.WriteString(alive.Stdin, "\n"); err != nil {
			t.Fatal(err)
		}
	}
	want("two", "60", "busy three")
	again := want("three", "60", "held")
	if err := again.Stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := again.Wait(); err != nil {
		t.Errorf("let go: %v", err)
	}
	if letGoAfter <= 3*beatEvery {
		t.Errorf("a beat each %v is too slow for %v", beatEvery, letGoAfter)
	}
}
