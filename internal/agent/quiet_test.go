package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// netstat is a folder in place of /proc whose TCP has sent so many segments; sent changes that.
func netstat(t *testing.T) (proc string, sent func(segments int)) {
	t.Helper()
	proc = t.TempDir()
	if err := os.MkdirAll(filepath.Join(proc, "self/net"), 0o755); err != nil {
		t.Fatal(err)
	}
	sent = func(segments int) {
		text := fmt.Sprintf("TcpExt: SyncookiesSent TCPOrigDataSent TCPKeepAlive\nTcpExt: 1 %d 3\nIpExt: InOctets\nIpExt: 7\n", segments)
		if err := os.WriteFile(filepath.Join(proc, "self/net/netstat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sent(100)
	return proc, sent
}

// A job goes on while a rank computes, fills memory, has just begun, or TCP sends data. Ranks
// that poll, or that sleep, do nothing.
func TestJobWork(t *testing.T) {
	proc, sent := netstat(t)
	w := jobWork{proc: proc}
	waits, other := procStat{pid: 7, user: 500, system: 900}, procStat{pid: 8, user: 40}
	look := func(name string, want bool, processes ...procStat) {
		t.Helper()
		if got := w.goesOn(processes); got != want {
			t.Errorf("%s: it goes on: %v", name, got)
		}
	}
	look("both are new", true, waits, other)
	look("nothing", false, waits, other)
	waits.user, waits.system = waits.user+40, waits.system+60
	look("one polls", false, waits, other)
	sent(101)
	look("data is sent", true, waits, other)
	waits.user, waits.system = waits.user+40, waits.system+60
	other.user += 99
	other.system++
	look("the other computes", true, waits, other)
	other.user += judgedTicks - 1
	look("too little to judge", false, waits, other)
	other.user++
	look("enough by now", true, waits, other)
	other.system, other.faults = other.system+100, other.faults+firstTouch
	look("memory is filled", true, waits, other)
	other.user, other.system = 1, 0
	look("a pid is used again", true, waits, other)
	look("one has ended", false, waits)
	if err := os.Remove(filepath.Join(proc, "self/net/netstat")); err != nil {
		t.Fatal(err)
	}
	look("a kernel that does not count", true, waits)
}

// A process that computes works, one that polls a socket or sleeps does not.
func TestJobWorkOfProcesses(t *testing.T) {
	labtest.Slow(t)
	runner := exec.NewRunner()
	defer runner.Close()
	proc, _ := netstat(t)
	for name, k := range map[string]struct {
		argv  []string
		works bool
	}{
		"computes": {[]string{"sh", "-c", "while :; do :; done"}, true},
		"polls":    {[]string{self(t), "poll"}, false},
		"sleeps":   {[]string{"sleep", "100"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			process, err := runner.StartPiped(t.Context(), exec.Cmd{Argv: k.argv})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = process.Kill() // it runs until then
				_ = process.Wait()
			}()
			// after gives the process once it has had so many ticks, or is asleep.
			after := func(ticks uint64) procStat {
				for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
					p, ok := processOf("/proc", process.PID())
					if ok && (p.user+p.system >= ticks || name == "sleeps" && p.name == "sleep" && p.state == 'S') {
						return p
					}
					if !ok || time.Now().After(deadline) {
						t.Fatalf("%+v, %v: %s", p, ok, process.Stderr())
					}
				}
			}
			w := jobWork{proc: proc, sent: 100}
			begun := after(judgedTicks) // its start is over
			if !w.goesOn([]procStat{begun}) {
				t.Error("a process that has begun is no work")
			}
			p := after(begun.user + begun.system + 5*judgedTicks)
			if got := w.goesOn([]procStat{p}); got != k.works {
				t.Errorf("it works: %v, with %d ticks in user space and %d in the kernel", got, p.user-begun.user, p.system-begun.system)
			}
		})
	}
}

// pollForever does what a rank of an MPI does while it waits for TCP.
func pollForever() {
	fd, err := unix.EpollCreate1(0)
	if err != nil {
		panic(err)
	}
	events := make([]unix.EpollEvent, 16)
	for {
		if _, err := unix.EpollWait(fd, events, 0); err != nil && err != unix.EINTR {
			panic(err)
		}
	}
}

// Of several programs of ranks the one that works counts, and a place without any is not quiet.
func TestQuietPlace(t *testing.T) {
	s := &server{}
	s.fresh()
	if got := s.quiet(); got.For != 0 {
		t.Errorf("no job: %v", got.For)
	}
	launcher, daemon := &tool{}, &tool{}
	launcher.quiet.Store(9)
	s.jobs[launcher] = true
	if got := s.quiet(); got.For != 9*lookEvery {
		t.Errorf("a launcher alone: %v", got.For)
	}
	daemon.quiet.Store(2)
	s.jobs[daemon] = true
	if got := s.quiet(); got.For != 2*lookEvery {
		t.Errorf("a daemon that works: %v", got.For)
	}
}
