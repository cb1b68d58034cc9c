package exec

import (
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"context"
)

func TestRunGivesOutputAndStatus(t *testing.T) {
	r := NewRunner()
	defer r.Close()
	res, err := r.Run(t.Context(), Cmd{Argv: []string{"sh", "-c", "echo out; echo err >&2; exit 3"}})
	var runErr *Error
	if !errors.As(err, &runErr) {
		t.Fatalf("error %v is no *Error", err)
	}
	if string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" || res.ExitCode != 3 {
		t.Errorf("got %q %q %d", res.Stdout, res.Stderr, res.ExitCode)
	}
	if want := `sh -c 'echo out; echo err >&2; exit 3': exit status 3: err`; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestCmdStringIsPasteable(t *testing.T) {
	got := Cmd{Argv: []string{"ip", "link", "add", "it's", ""}, NetNS: "/run/netns/cnb-1"}.String()
	if want := `nsenter --net=/run/netns/cnb-1 ip link add 'it'\''s' ''`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCancelKillsTheGroup(t *testing.T) {
	r := NewRunner()
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := r.Run(ctx, Cmd{Argv: []string{"sh", "-c", "sleep 100 & wait"}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want deadline exceeded", err)
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("took %v: the child of the child was not killed", d)
	}
}

func TestCloseKillsWhatRuns(t *testing.T) {
	r := NewRunner()
	p, err := r.StartPiped(t.Context(), Cmd{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("ended with %v, want killed", err)
	}
}

// An error becomes a sample's reason, and is pushed to databases.
func TestNoErrorHoldsAnEnvironment(t *testing.T) {
	t.Setenv("SECRET", "hunter2")
	r := NewRunner()
	defer r.Close()
	for name, c := range map[string]Cmd{
		"killed":       {Argv: []string{"sh", "-c", "kill -9 $$"}, Env: append(os.Environ(), "CNI_COMMAND=ADD"), CleanEnv: true},
		"cannot start": {Argv: []string{"/nonesuch/program"}, Env: append(os.Environ(), "TOKEN=hunter2")},
	} {
		_, err := r.Run(t.Context(), c)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := (Cmd{Argv: []string{"x"}, Env: append(os.Environ(), "A=b c")}).String(); got != "env 'A=b c' x" {
		t.Errorf("the line to paste is %s", got)
	}
}

// One bad program cannot take this machine's memory.
func TestEndlessOutputEndsTheProgram(t *testing.T) {
	r := NewRunner()
	defer r.Close()
	for name, argv := range map[string][]string{"stdout": {"yes"}, "stderr": {"sh", "-c", "exec yes >&2"}} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		res, err := r.Run(ctx, Cmd{Argv: argv})
		cancel()
		if !errors.Is(err, ErrOutput) || !strings.Contains(err.Error(), "64 MiB to "+name) {
			t.Errorf("error %.300v, want one of too much output", err)
		}
		if n := len(res.Stdout) + len(res.Stderr); n > maxOutput {
			t.Errorf("%d bytes are held", n)
		}
	}
}

func TestErrorsHoldNoEscapeSequences(t *testing.T) {
	r := NewRunner()
	defer r.Close()
	_, err := r.Run(t.Context(), Cmd{Argv: []string{"sh", "-c", `printf '\033]0;owned\007' >&2; exit 1`}})
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\a") || !strings.Contains(err.Error(), `\x1b]0;owned\x07`) {
		t.Errorf("error %q", err)
	}
}

// A program that makes many runners does not run out of files.
func TestClosedRunnerHoldsNoNamespace(t *testing.T) {
	held := func() int {
		n := 0
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range all {
			if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, "net:") {
				n++
			}
		}
		return n
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would close them some day
	before := held()
	for range 20 {
		r := NewRunner()
		if _, err := r.Run(t.Context(), Cmd{Argv: []string{"true"}}); err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	for begin := time.Now(); held() > before; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 5*time.Second {
			t.Fatalf("%d namespaces are open, %d before", held(), before)
		}
	}
}
