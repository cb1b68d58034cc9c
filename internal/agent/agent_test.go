package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// TestMain lets the test binary stand in for the agent and for a serving tool.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "agent":
			os.Exit(Serve(context.Background(), os.Stdin, os.Stdout))
		case "wait":
			WaitFor(context.Background(), nil)
		case "wrong-agent":
			fmt.Println(`{"id":1,"result":{"protocol":99,"version":"v9"}}`)
			time.Sleep(time.Minute)
		case "dying-agent":
			fmt.Fprintln(os.Stderr, "no such library")
			os.Exit(3)
		case "poll":
			pollForever()
		case "listen":
			l, err := net.Listen("tcp", ":"+os.Args[2])
			if err != nil {
				panic(err)
			}
			fmt.Println("listening", l.Addr())
			time.Sleep(time.Hour) // not select{}: without cgo the runtime calls that a deadlock
		}
	}
	os.Exit(m.Run())
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// folderOfAll is a folder that every user may use, as tools of root are nobody.
func folderOfAll(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cnb-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// forAnybody is this program where every user may run it.
func forAnybody(t *testing.T) string {
	t.Helper()
	program, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folderOfAll(t), "program")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func start(t *testing.T) *Client {
	t.Helper()
	runner := exec.NewRunner()
	t.Cleanup(runner.Close)
	c, err := Start(t.Context(), runner, []string{self(t), "agent"}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func drive(t *testing.T, c *Client, p workload.Program) (workload.Output, error) {
	t.Helper()
	var out workload.Output
	err := c.Call(t.Context(), MethodDrive, DriveParams{Program: p}, &out)
	return out, err
}

func TestDriveToolKeepsWhatItWrote(t *testing.T) {
	c := start(t)
	out, err := drive(t, c, workload.Program{
		Argv:  []string{"sh", "-c", "cat {dir}/words; echo oops >&2; exit 7"},
		Files: map[string]string{"words": "two words"}, Timeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.Stdout != "two words" || out.Stderr != "oops\n" || out.ExitCode != 7 || out.Killed != "" {
		t.Errorf("got %+v", out)
	}
	dir := filepath.Dir(strings.Fields(strings.ReplaceAll(out.Argv[2], ";", " "))[1])
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the scratch folder is still there: %v", err)
	}
}

func TestDriveToolTimeout(t *testing.T) {
	labtest.Slow(t)
	c := start(t)
	began := time.Now()
	out, err := drive(t, c, workload.Program{Argv: []string{"sh", "-c", "echo first; sleep 60"}, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if out.Killed != "timeout" || out.Stdout != "first\n" || out.ExitCode != -1 {
		t.Errorf("got %+v", out)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestDriveToolReadsProbesInItsWindow(t *testing.T) {
	c := start(t)
	out, err := drive(t, c, workload.Program{Argv: []string{"sleep", "0.5"}, Timeout: 5 * time.Second, WindowOffset: 100 * time.Millisecond, Window: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := out.Probes["cpu_idle_seconds"]; !ok {
		t.Errorf("no CPU time: %+v", out)
	}
	out, err = drive(t, c, workload.Program{Argv: []string{"true"}, Timeout: 5 * time.Second, Window: 10 * time.Second})
	if err != nil || out.Probes != nil {
		t.Errorf("a tool that ended before its window has probes: %v %v", out.Probes, err)
	}
}

func TestServeToolUntilFinish(t *testing.T) {
	c := start(t)
	var se ServeResult
	err := c.Call(t.Context(), MethodServe, ServeParams{Program: workload.Program{Argv: []string{forAnybody(t), "listen", "{port}"}, Port: true, Ready: "tcp", Timeout: time.Minute}}, &se)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(int(se.Port)))
	if err != nil {
		t.Fatalf("it said that it serves: %v", err)
	}
	conn.Close()
	var out workload.Output
	if err := c.Call(t.Context(), MethodFinish, FinishParams{Session: se.Session}, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.Stdout, "listening") || out.ExitCode != 0 || out.Killed != "" {
		t.Errorf("got %+v", out)
	}
	if err := c.Call(t.Context(), MethodFinish, FinishParams{Session: se.Session}, nil); err == nil {
		t.Error("a session was finished twice")
	}
}

// Whoever waits learns of a serving tool that dies, and of one that the sample
// is over for that all is well.
func TestWait(t *testing.T) {
	labtest.Slow(t)
	c := start(t)
	for _, k := range []struct {
		script string
		finish bool
		want   string
	}{
		{"sleep 0.1; echo no more >&2; exit 3", false, "sh (server) ended with status 3: no more"},
		{"sleep 0.1; kill -9 $$", false, "sh (server) was ended by a signal"},
		{"sleep 0.1", false, ""}, // as iperf3 -s -1
		{"sleep 60", true, ""},
	} {
		var se ServeResult
		if err := c.Call(t.Context(), MethodServe, ServeParams{Program: workload.Program{Argv: []string{"sh", "-c", k.script}, Timeout: time.Minute}}, &se); err != nil {
			t.Fatal(err)
		}
		var got WaitResult
		waited := make(chan error, 1)
		go func() { waited <- c.Call(t.Context(), MethodWait, WaitParams{Session: se.Session}, &got) }()
		if k.finish {
			if err := c.Call(t.Context(), MethodFinish, FinishParams{Session: se.Session}, nil); err != nil {
				t.Error(err)
			}
		}
		if err := <-waited; err != nil || got.Failed != k.want {
			t.Errorf("%s: %q, %v", k.script, got.Failed, err)
		}
	}
	var got WaitResult
	if err := c.Call(t.Context(), MethodWait, WaitParams{Session: "s99"}, &got); err != nil || got.Failed != "" {
		t.Errorf("a session that is over: %q, %v", got.Failed, err)
	}
}

func TestServeToolThatCannotServe(t *testing.T) {
	c := start(t)
	err := c.Call(t.Context(), MethodServe, ServeParams{Program: workload.Program{Argv: []string{"sh", "-c", "echo cannot bind {port} >&2; exit 1"}, Port: true, Ready: "tcp"}}, nil)
	if err == nil || !strings.Contains(err.Error(), "ended before it served") || !strings.Contains(err.Error(), "cannot bind") {
		t.Errorf("got %v", err)
	}
	err = c.Call(t.Context(), MethodServe, ServeParams{Program: workload.Program{Argv: []string{"no-such-tool"}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "no-such-tool") {
		t.Errorf("got %v", err)
	}
	err = c.Call(t.Context(), MethodServe, ServeParams{Program: workload.Program{Argv: []string{"echo", "{address}"}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "{address}") {
		t.Errorf("got %v", err)
	}
}

func TestAnswersOutOfOrder(t *testing.T) {
	c := start(t)
	slow := make(chan error, 1)
	go func() {
		_, err := drive(t, c, workload.Program{Argv: []string{"sleep", "0.5"}})
		slow <- err
	}()
	var hello HelloResult
	for range 5 {
		if err := c.Call(t.Context(), MethodHello, HelloParams{}, &hello); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-slow:
		t.Errorf("the slow call was answered first: %v", err)
	default:
	}
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

func TestCancelledCallLeavesNothingRunning(t *testing.T) {
	c := start(t)
	pid := filepath.Join(folderOfAll(t), "pid")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user pressed Ctrl-C")
	go func() {
		waitFile(t, pid)
		cancel(why)
	}()
	err := c.Call(ctx, MethodDrive, DriveParams{Program: workload.Program{Argv: []string{"sh", "-c", "echo $$ > " + pid + ".tmp; mv " + pid + ".tmp " + pid + "; sleep 60"}}}, nil)
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	gone(t, pid)
	// The agent itself is ready for the next sample.
	if out, err := drive(t, c, workload.Program{Argv: []string{"echo", "hi"}}); err != nil || out.Stdout != "hi\n" {
		t.Errorf("after a cancel: %+v %v", out, err)
	}
}

func TestEndOfInputKillsWhatWasStarted(t *testing.T) {
	runner := exec.NewRunner()
	defer runner.Close()
	c, err := Start(t.Context(), runner, []string{self(t), "agent"}, "")
	if err != nil {
		t.Fatal(err)
	}
	pid := filepath.Join(folderOfAll(t), "pid")
	answered := make(chan error, 1)
	go func() {
		answered <- c.Call(context.Background(), MethodDrive, DriveParams{Program: workload.Program{Argv: []string{"sh", "-c", "echo $$ > " + pid + ".tmp; mv " + pid + ".tmp " + pid + "; sleep 60"}}}, nil)
	}()
	waitFile(t, pid)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-answered; err == nil {
		t.Error("the call succeeded")
	}
	gone(t, pid)
	if c.Alive() {
		t.Error("alive after Close")
	}
}

func TestGone(t *testing.T) {
	runner := exec.NewRunner()
	defer runner.Close()
	_, err := Start(t.Context(), runner, []string{self(t), "dying-agent"}, "")
	if !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "no such library") {
		t.Errorf("an agent that dies at once: %v", err)
	}
	_, err = Start(t.Context(), runner, []string{self(t), "wrong-agent"}, "")
	if err == nil || !strings.Contains(err.Error(), "protocol 99") {
		t.Errorf("an agent of another version: %v", err)
	}
	c, err := Start(t.Context(), runner, []string{self(t), "agent"}, "")
	if err != nil {
		t.Fatal(err)
	}
	var hello HelloResult
	if err := c.Call(t.Context(), MethodHello, HelloParams{}, &hello); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = syscall.Kill(hello.PID, syscall.SIGKILL) })
	_, err = drive(t, c, workload.Program{Argv: []string{"sleep", "60"}})
	if !errors.Is(err, ErrGone) || c.Alive() {
		t.Errorf("an agent that was killed: %v, alive %v", err, c.Alive())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestFactsAndTools(t *testing.T) {
	c := start(t)
	var f Facts
	if err := c.Call(t.Context(), MethodFacts, struct{}{}, &f); err != nil {
		t.Fatal(err)
	}
	if f.Kernel == "" || f.MTUs["lo"] == 0 || f.Sysctls["net.ipv4.tcp_rmem"] == "" || f.Offloads["lo tx-tcp-segmentation"] == "" {
		t.Errorf("got %+v", f)
	}
	var tools ToolsResult
	err := c.Call(t.Context(), MethodTools, ToolsParams{Tools: []workload.Tool{{Name: "sh", Version: []string{"sh", "-c", "echo; echo sh 1.0"}}, {Name: "no-such-tool"}}}, &tools)
	if err != nil || len(tools.Versions) != 1 || tools.Versions["sh"] != "sh 1.0" {
		t.Errorf("got %v %v", tools, err)
	}
	if err := c.Call(t.Context(), "fly", struct{}{}, nil); err == nil || !strings.Contains(err.Error(), "no method") {
		t.Errorf("got %v", err)
	}
}

func TestClearScratch(t *testing.T) {
	t.Setenv("TMPDIR", labtest.OpenTempDir(t))
	live := &scratch{}
	kept, err := live.folder()
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.MkdirTemp(os.Getenv("TMPDIR"), scratchPattern)
	if err != nil {
		t.Fatal(err)
	}
	cleared, err := ClearScratch()
	if err != nil || len(cleared) != 1 || cleared[0] != left {
		t.Errorf("cleared %v, %v", cleared, err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("a live agent's folder was removed: %v", err)
	}
	if err := live.remove(); err != nil {
		t.Error(err)
	}
}

func TestBound(t *testing.T) {
	for _, c := range []struct {
		protocol string
		port     uint16
		pid      int
		want     bool
	}{
		{"tcp", 5201, 77, true}, {"tcp", 22, 77, false}, {"udp", 5201, 77, true}, {"udp", 53, 77, false},
		{"tcp", 5201, 78, false}, {"udp", 5201, 78, false}, {"udp", 5201, 79, false}, // it is somebody else's
	} {
		got, err := bound("testdata/proc", c.protocol, c.port, c.pid)
		if got != c.want || err != nil {
			t.Errorf("%s %d of %d: %v %v", c.protocol, c.port, c.pid, got, err)
		}
	}
}

func TestHead(t *testing.T) {
	h := &head{max: 4}
	for _, s := range []string{"ab", "cde", "f"} {
		if n, err := h.Write([]byte(s)); n != len(s) || err != nil {
			t.Errorf("%d %v", n, err)
		}
	}
	if got := h.String(); got != "abcd\n[cnibench: 2 more bytes were cut]\n" {
		t.Errorf("%q", got)
	}
}

func waitFile(t *testing.T, path string) {
	t.Helper()
	for range 500 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%s never came", path)
}

// gone checks that the process whose id is in a file has ended.
func gone(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
}
