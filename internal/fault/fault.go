// Package fault makes things go wrong for tests: processes that are stopped, ends that lie,
// stall or flood, connections that are half open, CNI plugins that never return, API
// servers that do not answer, clocks that jump, disks that fail or forget what was not
// synced, kernels that kill for lack of memory. Only tests import it.
package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for the kernel to do as it was asked.
const patience = 30 * time.Second

// Stop stops a process (SIGSTOP) and returns when it is stopped: it then answers nobody,
// and its connections stay open.
func Stop(t testing.TB, pid int) {
	t.Helper()
	send(t, pid, syscall.SIGSTOP)
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		state := stateOf(pid)
		if state == "T" || state == "" || state == "Z" {
			return // or it has ended meanwhile
		}
		if time.Since(begin) > patience {
			t.Fatalf("process %d is not stopped, but %s", pid, state)
		}
	}
}

// Continue lets a stopped process go on.
func Continue(t testing.TB, pid int) {
	t.Helper()
	send(t, pid, syscall.SIGCONT)
}

// Kill kills a process, or with -pid its group. 1 and -1 are refused: they are the
// machine's.
func Kill(t testing.TB, pid int) {
	t.Helper()
	send(t, pid, syscall.SIGKILL)
}

func send(t testing.TB, pid int, s syscall.Signal) {
	t.Helper()
	if pid >= -1 && pid <= 1 {
		t.Errorf("%v: %d is no process of a test", s, pid)
		return
	}
	if err := syscall.Kill(pid, s); err != nil {
		t.Errorf("%v to process %d: %v", s, pid, err)
	}
}

// stateOf is the letter of proc(5) for what a process does; "" for one that is gone.
func stateOf(pid int) string {
	if fields := statOf(pid); len(fields) > 0 {
		return fields[0]
	}
	return ""
}

// statOf is what proc(5) has of a process after its name: state, parent, group …; nil for
// one that is gone.
func statOf(pid int) []string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
}

// Group are the living processes of a process group, without those that have ended and
// nobody has asked for (zombies).
func Group(pgid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is a good one
	var all []int
	for _, path := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if fields := statOf(pid); len(fields) > 2 && fields[2] == strconv.Itoa(pgid) && fields[0] != "Z" {
			all = append(all, pid)
		}
	}
	return all
}

// Children are the processes that all threads of a process have started.
func Children(t testing.TB, pid int) []int {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Error(err)
	}
	var all []int
	for _, path := range tasks {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err != nil {
				t.Error(err)
			} else {
				all = append(all, n)
			}
		}
	}
	return all
}

// Clock is one that a test sets: it stops until Jump. Its methods may be called
// from many goroutines at once.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock makes a clock that shows some time.
func NewClock() *Clock { return &Clock{at: time.Unix(1, 0)} }

// Now is the time that it shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Jump sets it forward, or back.
func (c *Clock) Jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// Sleep is a Jump, in the form of a wait that ends at once.
func (c *Clock) Sleep(d time.Duration) error {
	c.Jump(d)
	return nil
}
