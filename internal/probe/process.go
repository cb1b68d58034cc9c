//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Process measures the CPU time that belongs to the sample and to nothing else,
// so that it says the same on a machine where others work: process_cpu_seconds
// is that of this agent, of all that it started and of those that carry its
// packets in user space, ksoftirqd_cpu_seconds that of the machine's threads that carry packets when softirqs are many. A sender's
// own softirqs are in its process time. Softirqs that interrupt others (a real
// device's, a pacing timer's) are in neither: where there are such, this is a
// lower bound.
type Process struct {
	roots     Roots
	ksoftirqd []int
	err       error
	first     map[int]time.Duration
	clock     func(pid int) (time.Duration, error)
}

// NewProcess makes the probe.
func NewProcess(roots Roots) *Process {
	p := &Process{roots: roots, clock: processTime}
	p.ksoftirqd, p.err = p.findKsoftirqd()
	return p
}

// Name is the probe's name.
func (p *Process) Name() string { return ProcessName }

// Start reads the first edge.
func (p *Process) Start() error {
	own, err := family(p.roots, os.Getpid())
	if err != nil {
		return err
	}
	p.first = map[int]time.Duration{}
	for _, pid := range append(own, p.ksoftirqd...) {
		if p.first[pid], err = p.clock(pid); err != nil {
			return err
		}
	}
	return nil
}

// Stop reads the second edge. What a process used that ended meanwhile is not
// known any more: then process_cpu_seconds is absent.
func (p *Process) Stop() (map[string]float64, error) {
	if p.first == nil {
		return nil, errors.New("the first edge was not read")
	}
	values := map[string]float64{}
	sum := func(pids []int) (seconds float64, err error) {
		for _, pid := range pids {
			t, err := p.clock(pid)
			if err != nil {
				return 0, err
			}
			seconds += (t - p.first[pid]).Seconds() // 0 for one that began meanwhile
		}
		return seconds, nil
	}
	own, err := family(p.roots, os.Getpid())
	if err == nil {
		err = p.gone(own)
	}
	if err == nil {
		values["process_cpu_seconds"], err = sum(own)
	}
	if err != nil {
		delete(values, "process_cpu_seconds")
	}
	errs := []error{err, p.err}
	if p.err == nil {
		if v, err := sum(p.ksoftirqd); err != nil {
			errs = append(errs, err)
		} else {
			values["ksoftirqd_cpu_seconds"] = v
		}
	}
	return values, errors.Join(errs...)
}

func (p *Process) gone(now []int) error {
	there := map[int]bool{}
	for _, pid := range append(now, p.ksoftirqd...) {
		there[pid] = true
	}
	for pid := range p.first {
		if !there[pid] {
			return fmt.Errorf("process %d ended inside the window", pid)
		}
	}
	return nil
}

// family is a process, the carriers, and all below them.
func family(roots Roots, pid int) ([]int, error) {
	all := append([]int{pid}, roots.Carriers...)
	for i := 0; i < len(all); i++ {
		below, err := children(roots, all[i])
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

// children are the processes that a process started and that still run.
func children(roots Roots, pid int) ([]int, error) {
	if _, err := os.Stat(filepath.Join(roots.Proc, "thread-self/children")); err != nil {
		return nil, absentf("the kernel does not list a process's children (CONFIG_PROC_CHILDREN): %w", err)
	}
	lists, err := filepath.Glob(filepath.Join(roots.Proc, strconv.Itoa(pid), "task/*/children"))
	if err != nil {
		return nil, err
	}
	var all []int
	for _, path := range lists {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended meanwhile
		}
		for _, f := range strings.Fields(string(raw)) {
			child, err := strconv.Atoi(f)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			all = append(all, child)
		}
	}
	return all, nil
}

// findKsoftirqd finds the kernel's thread of each CPU among the children of
// kthreadd, which is process 2.
func (p *Process) findKsoftirqd() ([]int, error) {
	threads, err := children(p.roots, 2)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, pid := range threads {
		comm, err := os.ReadFile(filepath.Join(p.roots.Proc, strconv.Itoa(pid), "comm"))
		if err == nil && strings.HasPrefix(string(comm), "ksoftirqd/") {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		return nil, absentf("ksoftirqd: the kernel's threads are not seen from here (a container without the host's processes)")
	}
	return pids, nil
}

// processTime is the CPU time of all threads of a process, exact to the
// scheduler's nanosecond. The clock's number is ~pid << 3 with CPUCLOCK_SCHED,
// 2, below it (clock_getcpuclockid(3), linux/posix-timers.h).
func processTime(pid int) (time.Duration, error) {
	const cpuClockSched = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|cpuClockSched), &t); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
