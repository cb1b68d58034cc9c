//go:build linux

package traffic

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CPU time is read from the scheduler's own nanosecond clocks (clock_getcpuclockid(3),
// the kernel's include/linux/posix-timers.h): one call, no file, no ticks.

// threadClock is the calling thread's CPU time, nanoseconds.
func threadClock() int64 { return clockOf(unix.CLOCK_THREAD_CPUTIME_ID) }

// processClockID is the clock of another process's CPU time.
func processClockID(pid int) int32 { return int32(^uint32(pid)<<3 | 2) }

// threadClockID is the clock of another thread of this process.
func threadClockID(tid int) int32 { return int32(^uint32(tid)<<3 | 6) }

// sliceWorker is what every thread of a sliced run has: it reads the CPU time of the
// thread and of what works for it, and bounds the thread's blocking calls.
type sliceWorker struct {
	ticks *ticker
	// gate keeps the driving threads of a run together; a serving one has none.
	gate *sliceGate

	// shared are the clocks of what works for all threads of an end: one thread
	// of it has them.
	shared []int32
	since  int64
}

func (m *sliceWorker) now() int64 { return threadClock() + clocksOf(m.shared) }

// start begins a measured part.
func (m *sliceWorker) start() { m.since = m.now() }

// spent is the CPU time since start.
func (m *sliceWorker) spent() time.Duration { return time.Duration(m.now() - m.since) }

func (m *sliceWorker) thread() *sliceWorker { return m }

// onThread makes the calling thread the worker's own.
func (m *sliceWorker) onThread() (err error) {
	m.ticks, err = newTicker()
	return err
}

// offThread is called when the thread is through.
func (m *sliceWorker) offThread() error {
	if m.ticks == nil {
		return nil
	}
	return m.ticks.close()
}

// ticking bounds each blocking call of the thread by pollInterval, or no longer.
func (m *sliceWorker) ticking(on bool) error {
	if on {
		return m.ticks.set(pollInterval)
	}
	return m.ticks.set(0)
}

// park waits until there is something to be read, or the socket is shut down. It
// lets the Go scheduler know: a server waits there between slices, undisturbed.
func (m *sliceWorker) park(fd int) error {
	if err := m.ticking(false); err != nil {
		return err
	}
	await(fd)
	return m.ticking(true)
}

// clockOf reads a clock; 0 where it cannot be read.
func clockOf(id int32) int64 {
	var ts unix.Timespec
	if _, _, e := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&ts)), 0); e != 0 {
		return 0
	}
	return ts.Nano()
}

// clocksOf sums clocks.
func clocksOf(ids []int32) int64 {
	var sum int64
	for _, id := range ids {
		sum += clockOf(id)
	}
	return sum
}

// sharedClocks are the clocks of what works for this end outside of its threads:
// the kernel's threads that carry packets when softirqs are many, and the
// programs that carry its packets in user space. A pod does not see the kernel's
// threads.
func sharedClocks(carriers []int) []int32 {
	return processClocks(append(ksoftirqds("/proc"), carriers...))
}

// processClocks are those of processes, without those that have ended.
func processClocks(pids []int) []int32 {
	var ids []int32
	for _, pid := range pids {
		if id := processClockID(pid); clockOf(id) > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// ksoftirqds are the process numbers of the kernel's softirq threads. They are
// started with the machine, so that the search ends early.
func ksoftirqds(proc string) []int {
	const last = 4096
	var pids []int
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid > last {
			continue
		}
		comm, err := os.ReadFile(filepath.Join(proc, e.Name(), "comm"))
		if err == nil && strings.HasPrefix(string(comm), "ksoftirqd/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// currentCPU is the CPU that the calling thread runs on; -1 where that is not known.
func currentCPU() int {
	var cpu, node uint32
	if _, _, e := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), uintptr(unsafe.Pointer(&node)), 0); e != 0 {
		return -1
	}
	return int(cpu)
}
