package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/workload"
)

// launcher is a program of sh as a launcher of two other places.
func launcher(within time.Duration, script string) workload.Program {
	return workload.Program{
		Argv: []string{"sh", "-c", script}, Timeout: time.Minute,
		Launch: &workload.Launch{Prefix: "start: ", Commands: 2, Begun: "all ranks are up", Within: within},
	}
}

// A launcher's commands come with the answer to its start, and its output at its end.
func TestLauncher(t *testing.T) {
	c := start(t)
	var s ServeResult
	p := launcher(time.Minute, `echo start: a daemon; echo other; echo "start: b 'daemon'"; sleep 0.1; echo all ranks are up >&2; exit 3`)
	if err := c.Call(t.Context(), MethodServe, ServeParams{Program: p}, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Commands) != 2 || s.Commands[0] != "a daemon" || s.Commands[1] != "b 'daemon'" {
		t.Errorf("commands %q", s.Commands)
	}
	var w WaitResult
	if err := c.Call(t.Context(), MethodWait, WaitParams{Session: s.Session}, &w); err != nil || !strings.Contains(w.Failed, "status 3") {
		t.Errorf("it ended with %q, %v", w.Failed, err)
	}
	var out workload.Output
	if err := c.Call(t.Context(), MethodFinish, FinishParams{Session: s.Session}, &out); err != nil || out.ExitCode != 3 || out.Killed != "" || !strings.Contains(out.Stderr, "are up") {
		t.Errorf("%+v, %v", out, err)
	}
}

// A launcher that does not print its commands in time, or ends before, is an error with
// its last words.
func TestLauncherWithoutCommands(t *testing.T) {
	c := start(t)
	for name, k := range map[string]struct {
		within time.Duration
		script string
		want   []string
	}{
		"hangs": {200 * time.Millisecond, "echo start: one; echo no route to b >&2; exec sleep 1000", []string{"1 of 2 launch commands within 200ms", "no route to b"}},
		"ends":  {time.Minute, "echo cannot allocate >&2; exit 1", []string{"ended after 0 of 2", "cannot allocate"}},
	} {
		var s ServeResult
		err := c.Call(t.Context(), MethodServe, ServeParams{Program: launcher(k.within, k.script)}, &s)
		for _, want := range k.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

// A launcher whose job does not begin is killed, and its output says why.
func TestLauncherHangs(t *testing.T) {
	c := start(t)
	var s ServeResult
	p := launcher(300*time.Millisecond, "echo start: a; echo start: b; echo waiting for b >&2; exec sleep 1000")
	if err := c.Call(t.Context(), MethodServe, ServeParams{Program: p}, &s); err != nil {
		t.Fatal(err)
	}
	if err := c.Call(t.Context(), MethodWait, WaitParams{Session: s.Session}, nil); err != nil {
		t.Fatal(err)
	}
	var out workload.Output
	if err := c.Call(t.Context(), MethodFinish, FinishParams{Session: s.Session}, &out); err != nil || out.Killed == "" || !strings.Contains(out.Stderr, "waiting for b") {
		t.Errorf("%+v, %v", out, err)
	}
}

// The bytes of the measured address's device are counted, {device} is its name, and
// {dir} is replaced in the environment.
func TestMeasuredDevice(t *testing.T) {
	c := start(t)
	out, err := drive(t, c, workload.Program{
		Timeout: 10 * time.Second, MeasuredAddress: "127.0.0.1", Env: []string{"TMPDIR={dir}"},
		Argv: []string{"sh", "-c", `echo {device}; cd "$TMPDIR" && pwd`},
	})
	if err != nil {
		t.Fatal(err)
	}
	name, dir, _ := strings.Cut(strings.TrimSpace(out.Stdout), "\n")
	if name != "lo" || !strings.Contains(dir, "cnb-agent-") || out.Device == nil || out.Device.Name != "lo" || out.Device.SentBytes < 0 {
		t.Errorf("%+v", out)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
	_, err = drive(t, c, workload.Program{Timeout: time.Second, MeasuredAddress: "192.0.2.201", Argv: []string{"true"}})
	if err == nil || !strings.Contains(err.Error(), "no device of this place has the address 192.0.2.201") {
		t.Errorf("%v", err)
	}
}

// The counters are those of /proc/net/dev, in its order.
func TestBytesOf(t *testing.T) {
	proc := t.TempDir()
	if err := os.MkdirAll(filepath.Join(proc, "self/net"), 0o755); err != nil {
		t.Fatal(err)
	}
	const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     400       4    0    0    0     0          0         0      400       4    0    0    0     0       0          0
  eth0:12345678     100    0    0    0     0          0         0 87654321     200    0    0    0     0       0          0
`
	if err := os.WriteFile(filepath.Join(proc, "self/net/dev"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	sent, received, err := bytesOf(proc, "eth0")
	if err != nil || sent != 87654321 || received != 12345678 {
		t.Errorf("%d sent, %d received, %v", sent, received, err)
	}
	if _, _, err := bytesOf(proc, "eth"); err == nil {
		t.Error("a device that does not exist was read")
	}
}

// What a tool starts ends with it, also what has left its session, when the tool ends and
// when its agent is killed.
func TestOwnPIDs(t *testing.T) {
	labtest.Root(t)
	if !mayOwnPIDs() {
		t.Skip("this root may not make PID namespaces")
	}
	// Each marked process has a length of its own.
	const script = `setsid sh -c 'exec sleep 98765%s' & sleep 0.05; echo start: a; echo start: b; echo all ranks are up; %s`
	t.Run("tool", func(t *testing.T) {
		c := start(t)
		p := launcher(time.Minute, strings.NewReplacer("%s'", "1'", "%s", "exit 0").Replace(script))
		p.OwnPIDs = true
		var s ServeResult
		if err := c.Call(t.Context(), MethodServe, ServeParams{Program: p}, &s); err != nil {
			t.Fatal(err)
		}
		if err := c.Call(t.Context(), MethodWait, WaitParams{Session: s.Session}, nil); err != nil {
			t.Fatal(err)
		}
		noProcess(t, "sleep 987651")
	})
	t.Run("agent", func(t *testing.T) {
		runner := exec.NewRunner()
		defer runner.Close()
		process, err := runner.StartPiped(t.Context(), exec.Cmd{Argv: []string{self(t), "agent"}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewClient(t.Context(), Transport{Stdin: process.Stdin, Stdout: process.Stdout, Wait: process.Wait, Kill: process.Kill})
		if err != nil {
			t.Fatal(err)
		}
		p := launcher(time.Minute, strings.NewReplacer("%s'", "2'", "%s", "exec sleep 987653").Replace(script))
		p.OwnPIDs = true
		var s ServeResult
		if err := c.Call(t.Context(), MethodServe, ServeParams{Program: p}, &s); err != nil {
			t.Fatal(err)
		}
		if len(processes(t, "sleep 98765")) == 0 {
			t.Error("nothing runs")
		}
		if err := syscall.Kill(process.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		noProcess(t, "sleep 987652")
		noProcess(t, "sleep 987653")
		_ = c.Close() // it was killed
	})
}

// processes are those whose command line begins with a text.
func processes(t *testing.T, with string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && strings.HasPrefix(strings.ReplaceAll(string(line), "\x00", " "), with) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// noProcess waits until none is left.
func noProcess(t *testing.T, with string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		left := processes(t, with)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s is left: %v", with, left)
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended just now
			}
			return
		}
	}
}

// TestRDMAPorts: the ports of a machine's RDMA devices are named as UCX names them.
func TestRDMAPorts(t *testing.T) {
	sys := t.TempDir()
	if got := rdmaPorts(sys); got != "" {
		t.Errorf("a machine without has %q", got)
	}
	for _, port := range []string{"mlx5_0/ports/1", "mlx5_0/ports/2", "rxe0/ports/1"} {
		if err := os.MkdirAll(filepath.Join(sys, "class/infiniband", port), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := rdmaPorts(sys), ",mlx5_0:1,mlx5_0:2,rxe0:1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
