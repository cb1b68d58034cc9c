package baremetal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// fakeTools puts programs before the real ones.
func fakeTools(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestPlaybooksEnd: a playbook that hangs, as with a stopped program on a host, ends with an
// error of a host that does not answer, and nothing of it goes on running.
func TestPlaybooksEnd(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	fakeTools(t, map[string]string{"ansible-playbook": "sleep 600 & echo $! >" + pids + "\nwait\n"})
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	p, err := newPlayer(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	p.patience = time.Second
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = p.play(ctx, "hosts.yml", "tune", map[string]any{}, "left,right")
	var wrong *HostError
	if !errors.As(err, &wrong) || !wrong.Lost || !strings.Contains(err.Error(), "left,right: tune did not end within 1s") {
		t.Errorf("%v", err)
	}
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if err = syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return
		}
		if stat, readErr := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); readErr == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("what it started is still running: %v", err)
}

// TestAgentsThatDoNotAnswer: one that says nothing, and one that stops after its greeting,
// are an error in bounded time, and the next call starts another.
func TestAgentsThatDoNotAnswer(t *testing.T) {
	labtest.Slow(t)
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	b := &Testbed{options: Options{Runner: r}}
	e := &end{host: Host{Name: "left", Address: "left"}, role: "client"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fakeTools(t, map[string]string{"ssh": "exec sleep 600\n"})
	if err := b.greet(ctx, e, 200*time.Millisecond); err == nil || !isLost(err) || !strings.Contains(err.Error(), "no greeting within 200ms") || e.agent != nil {
		t.Errorf("a silent agent: %v", err)
	}
	hello := fmt.Sprintf(`{"id":1,"result":{"protocol":%d,"version":"x","pid":1}}`, agent.Protocol)
	fakeTools(t, map[string]string{"ssh": "read -r line\necho '" + hello + "'\nexec sleep 600\n"})
	if err := b.startAgent(ctx, e); err == nil || !strings.Contains(err.Error(), "facts: ") || e.agent != nil {
		t.Errorf("an agent that stops: %v, kept %v", err, e.agent != nil)
	}
	if ctx.Err() != nil {
		t.Error("it took more than a minute")
	}
}
