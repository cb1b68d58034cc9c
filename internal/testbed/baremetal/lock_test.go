package baremetal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/flock"
	"github.com/cnibench/cnibench/internal/labtest"
)

// TestHoldHost: a host's lock is one's alone, and goes with the connection, also
// where the host never learns that it broke: its holder is silent then. The same
// one may take its own again at once.
func TestHoldHost(t *testing.T) {
	labtest.Tool(t, "flock", "util-linux")
	r := exec.NewRunner()
	defer r.Close()
	file := filepath.Join(t.TempDir(), "locks", "lock")
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
			t.Errorf("%s is shown %q, want %q", who, said, answer)
		}
		return p
	}
	silent := want("one", "1", "held")
	want("two", "60", "busy one")
	if err := silent.Wait(); err != nil { // its input stays open
		t.Errorf("a silent holder: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(file)); err == nil {
		t.Error("the folder of a lock that was let go is still there")
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

// TestHoldHostTrustsNobody: a folder that others may enter, or that a link leads to, is
// refused, and a process is only ended if it holds the lock: 83aa48e killed whatever
// process a file in /run/lock named, where anybody may create files.
func TestHoldHostTrustsNobody(t *testing.T) {
	labtest.Tool(t, "flock", "util-linux")
	r := exec.NewRunner()
	defer r.Close()
	say := func(file string) string {
		t.Helper()
		res, err := r.Run(t.Context(), exec.Cmd{Argv: []string{"sh", "-c", holdHost, "sh", file, "me", "1"}})
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(res.Stdout))
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, err := range map[string]error{
		"open":  errors.Join(os.Mkdir(at("open"), 0o700), os.Chmod(at("open"), 0o777)),
		"link":  errors.Join(os.Mkdir(at("target"), 0o700), os.Symlink(at("target"), at("link"))),
		"plain": os.WriteFile(at("plain"), nil, 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
		if said := say(filepath.Join(at(name), "lock")); !strings.HasPrefix(said, "cannot: ") || !strings.Contains(said, at(name)) {
			t.Errorf("%s: %q", name, said)
		}
	}

	if err := os.Mkdir(at("own"), 0o700); err != nil {
		t.Fatal(err)
	}
	victim, err := r.StartPiped(t.Context(), exec.Cmd{Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(at("own"), "lock")
	if err := os.WriteFile(file, fmt.Appendf(nil, "me\n%d\n", victim.PID()), 0o600); err != nil {
		t.Fatal(err)
	}
	holder, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if err := unix.Flock(int(holder.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if said := say(file); said != "busy me" {
		t.Errorf("held by another: %q", said)
	}
	if err := victim.Signal(0); err != nil {
		t.Errorf("the process that the file names, which does not hold the lock, is gone: %v", err)
	}
	_, _ = victim.Kill(), victim.Wait() // it was to be killed

	if err := os.Symlink(at("stolen"), filepath.Join(at("own"), "through")); err != nil {
		t.Fatal(err)
	}
	if said := say(filepath.Join(at("own"), "through")); !strings.HasPrefix(said, "cannot: ") {
		t.Errorf("through a link: %q", said)
	}
	if _, err := os.Stat(at("stolen")); err == nil {
		t.Error("a link was followed")
	}
}

// TestMachineFollowsNoLink: the folder of kept values may be in one where others can put a
// link; what that leads to was once given mode 0700 and locked.
func TestMachineFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	there, link := filepath.Join(dir, "there"), filepath.Join(dir, "labs-machine")
	if err := errors.Join(os.Mkdir(there, 0o755), os.Chmod(there, 0o755), os.Symlink(there, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := TakeMachine(t.Context(), nil, link); !errors.Is(err, flock.ErrForeign) {
		t.Errorf("a link was taken: %v", err)
	}
	if info, err := os.Stat(there); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("what the link leads to has mode %v (%v)", info.Mode(), err)
	}
	held, err := lockMachine(filepath.Join(dir, "own"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := lockMachine(held.Name()); !errors.Is(err, errMachineInUse) {
		t.Errorf("a second lock: %v", err)
	}
}
