package agent

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/workload"
)

// A child that is seen twice is killed, one that is seen once is not, and nobody else's is.
func TestOrphansGone(t *testing.T) {
	runner := exec.NewRunner()
	defer runner.Close()
	child, err := runner.StartPiped(t.Context(), exec.Cmd{Argv: []string{"sleep", "987654"}})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- child.Wait() }()
	orphansGone("/proc", os.Getppid(), map[int]bool{child.PID(): true}) // whose parent is another
	once := orphansGone("/proc", os.Getpid(), nil)
	if !once[child.PID()] {
		t.Errorf("it saw %v, want %d among them", once, child.PID())
	}
	select {
	case err := <-over:
		t.Fatalf("it ended at the first look: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	orphansGone("/proc", os.Getpid(), map[int]bool{child.PID(): true})
	select {
	case err := <-over:
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it was not killed")
	}
}

// The first process of a container kills what has lost its parent.
func TestWaitForKillsOrphans(t *testing.T) {
	labtest.Root(t)
	if !mayOwnPIDs() {
		t.Skip("this root may not make PID namespaces")
	}
	runner := exec.NewRunner()
	defer runner.Close()
	// An orphan of the container's first process: its parent ends at once.
	const script = `mount -t proc proc /proc && (setsid sleep 987655 </dev/null >/dev/null 2>&1 &) && exec "$0" wait`
	first, err := runner.StartPiped(t.Context(), exec.Cmd{Argv: []string{"unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, self(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = first.Kill() // it runs until then
		_ = first.Wait()
	}()
	for deadline := time.Now().Add(10 * time.Second); len(processes(t, "sleep 987655")) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("there is no orphan: %s", first.Stderr())
		}
	}
	noProcess(t, "sleep 987655")
	if err := first.Signal(0); err != nil {
		t.Errorf("the first process has ended: %v: %s", err, first.Stderr())
	}
}

// A program of ranks is ended soon after one of its processes was stopped, and says which.
func TestStoppedRank(t *testing.T) {
	labtest.Slow(t)
	c := start(t)
	p := launcher(time.Minute, `echo start: a; echo start: b; echo all ranks are up; sh -c 'sleep 987656; true'; exit 0`)
	p.OwnPIDs = true // which makes no difference where the agent may not make them
	var s ServeResult
	if err := c.Call(t.Context(), MethodServe, ServeParams{Program: p}, &s); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for deadline := time.Now().Add(10 * time.Second); len(pids) == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		pids = processes(t, "sleep 987656")
	}
	if len(pids) != 1 {
		t.Fatalf("%d processes", len(pids))
	}
	if err := syscall.Kill(pids[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	struck := time.Now()
	var out workload.Output
	if err := c.Call(t.Context(), MethodWait, WaitParams{Session: s.Session}, nil); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(struck); took > 10*time.Second {
		t.Errorf("it ended after %v", took)
	}
	err := c.Call(t.Context(), MethodFinish, FinishParams{Session: s.Session}, &out)
	if err != nil || !strings.Contains(out.Killed, "its process sleep (") || !strings.Contains(out.Killed, "was stopped") {
		t.Errorf("%+v, %v", out, err)
	}
	for _, pid := range pids { // without a PID namespace it is left in no group
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	noProcess(t, "sleep 987656")
}

// A name may contain what /proc/PID/stat puts around it.
func TestProcessOf(t *testing.T) {
	dir := t.TempDir()
	write := func(pid, text string) {
		if err := os.MkdirAll(dir+"/"+pid, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+pid+"/stat", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("7", "7 (a) b (c) T 3 7 7 0 -1\n")
	write("3", "3 (sh) S 1 3 3 0 -1\n")
	write("9", "9 (x")
	p, ok := processOf(dir, 7)
	if !ok || p != (procStat{pid: 7, parent: 3, name: "a) b (c", state: 'T'}) {
		t.Errorf("%+v, %v", p, ok)
	}
	write("12", "12 (hpcc) R 3 12 12 0 -1 4194304 1500 0 2 0 700 300 0 0 20 0\n")
	if p, ok := processOf(dir, 12); !ok || p.faults != 1500 || p.user != 700 || p.system != 300 {
		t.Errorf("%+v, %v", p, ok)
	}
	if _, ok := processOf(dir, 9); ok {
		t.Error("half a line was read")
	}
	if got := family(allProcesses(dir), 3); len(got) != 3 || got[1] != 12 || got[2] != 7 {
		t.Errorf("the family of 3 is %v", got)
	}
}
