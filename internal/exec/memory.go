package exec

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// ErrMemory is why a program ended that was killed while the kernel killed programs for
// lack of memory.
var ErrMemory = errors.New("out of memory: the kernel killed it, or its memory cgroup, for lack of memory; raise its memory limit, or free memory on that machine")

// memoryWatch notices that the kernel kills programs for lack of memory while one runs.
type memoryWatch struct {
	before uint64
	known  bool
	// asked reports that this program killed the other one.
	asked atomic.Bool
}

func (w *memoryWatch) begin() { w.before, w.known = memoryKills() }

// explain adds ErrMemory to the error of a program that somebody else killed, where the
// kernel killed one meanwhile.
func (w *memoryWatch) explain(err error) error {
	var exit *exec.ExitError
	if !w.known || w.asked.Load() || !errors.As(err, &exit) {
		return err
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		return err
	}
	if now, known := memoryKills(); !known || now <= w.before {
		return err
	}
	return fmt.Errorf("%w (%w)", err, ErrMemory)
}

// memoryKills is how many programs the kernel has killed for lack of memory, of a memory
// cgroup or of the machine, since its start (oom_kill of /proc/vmstat).
func memoryKills() (n uint64, known bool) {
	f, err := os.Open("/proc/vmstat")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), "oom_kill "); found {
			n, err := strconv.ParseUint(text, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
