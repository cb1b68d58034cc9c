package repo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// installer is scripts/install-tools.sh with an apt-get that waits.
type installer struct {
	t           *testing.T
	runner      *exec.Runner
	dir, policy string
}

func newInstaller(t *testing.T) *installer {
	labtest.Root(t) // the script asks for it
	in := &installer{t: t, runner: exec.NewRunner(), dir: t.TempDir()}
	t.Cleanup(in.runner.Close)
	in.policy = filepath.Join(in.dir, "policy-rc.d")
	for name, text := range map[string]string{
		"dpkg-query":  "exit 1",
		"apt-cache":   "echo '  Candidate: 1'",
		"update-rc.d": ":",
		// A program that does not hold the script's pipes, until it is killed with its group.
		"apt-get": ": >" + filepath.Join(in.dir, "installing") + "; exec sleep 1000",
	} {
		in.write(name, "#!/bin/sh\n"+text+"\n")
	}
	return in
}

func (in *installer) write(name, text string) {
	in.t.Helper()
	if err := os.WriteFile(filepath.Join(in.dir, name), []byte(text), 0o755); err != nil {
		in.t.Fatal(err)
	}
}

func (in *installer) command() exec.Cmd {
	return exec.Cmd{Argv: []string{"sh", filepath.Join(root, "scripts/install-tools.sh")},
		Env: []string{"PATH=" + in.dir + ":" + os.Getenv("PATH"), "POLICY=" + in.policy}}
}

// start starts it and returns while it installs.
func (in *installer) start() *exec.Process {
	in.t.Helper()
	p, err := in.runner.StartPiped(in.t.Context(), in.command())
	if err != nil {
		in.t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if os.Remove(filepath.Join(in.dir, "installing")) == nil {
			return p
		}
		if time.Since(begin) > time.Minute {
			in.t.Fatalf("it does not install: %s", p.Stderr())
		}
	}
}

// allows gives the status of policy-rc.d as packaging asks it: 101 forbids.
func (in *installer) allows() int {
	in.t.Helper()
	if _, err := os.Stat(in.policy); os.IsNotExist(err) {
		return 0
	}
	res, _ := in.runner.Run(in.t.Context(), exec.Cmd{Argv: []string{in.policy, "ssh", "start"}})
	return res.ExitCode
}

// A policy-rc.d that is left behind keeps every later package from starting its
// service.
func TestKilledInstallToolsBlocksNoServices(t *testing.T) {
	for name, c := range map[string]struct {
		before string // the policy that was there
		status int    // what it says
		signal syscall.Signal
	}{
		"kill -9":                 {"", 0, syscall.SIGKILL},
		"kill -9, with a policy":  {"#!/bin/sh\nexit 104\n", 104, syscall.SIGKILL},
		"terminated":              {"", 0, syscall.SIGTERM},
		"terminated, with policy": {"#!/bin/sh\nexit 104\n", 104, syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInstaller(t)
			if c.before != "" {
				in.write("policy-rc.d", c.before)
			}
			p := in.start()
			if got := in.allows(); got != 101 {
				t.Errorf("while it installs, the policy says %d, want 101", got)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := in.runner.Run(ctx, in.command()); err == nil || !strings.Contains(err.Error(), "another install-tools is running") {
				t.Errorf("a second one: %v", err)
			}
			if err := p.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			if err := p.Wait(); err == nil {
				t.Error("it ended as if nothing had happened")
			}
			if got := in.allows(); got != c.status {
				t.Errorf("afterwards the policy says %d, want %d", got, c.status)
			}
			// The next one clears up.
			p = in.start()
			if err := p.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := p.Wait(); err == nil {
				t.Error("it ended as if nothing had happened")
			}
			now, err := os.ReadFile(in.policy)
			if string(now) != c.before || (err == nil) != (c.before != "") {
				t.Errorf("the policy is %q (%v), was %q", now, err, c.before)
			}
			if left, _ := filepath.Glob(in.policy + ".*"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
