//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// minRunningShare is the share of the window in which a counter must have
// counted. The kernel lets counters take turns where there are too few of them
// (perf_event_open(2), multiplexing), every few milliseconds, and what is read is
// scaled to the whole time. A second has some 250 turns; with work that differs by
// 20 % from one to the next, scaling from 75 % of them is good to 0.7 %, from
// half of them to 1.3 %: more than the differences that the counters shall show.
const minRunningShare = 0.75

// Counters counts cycles and instructions of the whole machine, everything that
// runs on every online CPU, in user space and in the kernel apart:
// instructions_user, instructions_kernel, cycles_user, cycles_kernel. They are
// opened for one window and closed after it, because open ones hold the few
// counters that a CPU has. Counters per process were rejected: the kernel
// reprograms them at each context switch, and a round trip has four.
type Counters struct {
	roots  Roots
	cpus   string // the online CPUs when the counters were opened
	events []openEvent
}

// hardware is an event of perf_event_open(2) that is counted.
type hardware struct {
	name   string
	kind   uint32
	config uint64
}

func counted() []hardware {
	return []hardware{
		{"instructions", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS},
		{"cycles", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES},
	}
}

// openEvent is one event on all CPUs, or why it is not counted.
type openEvent struct {
	name  string
	pairs []pair
	first []reading
	err   error
}

// pair counts one event on one CPU, user space and kernel apart.
type pair interface {
	Read() (reading, error)
	Close() error
}

// reading is what a pair has counted since it was opened. Enabled and running
// are the times that it was to count and did, in nanoseconds.
type reading struct{ enabled, running, user, kernel uint64 }

// opener opens an event on a CPU: openPair, or what a test puts in its place.
type opener func(h hardware, cpu int) (pair, error)

// OpenCounters opens the counters. What cannot be opened is reported by Start and
// Stop. Close ends them.
func OpenCounters(roots Roots) *Counters { return openCounters(roots, counted(), openPair) }

func openCounters(roots Roots, events []hardware, open opener) *Counters {
	c := &Counters{roots: roots}
	text, cpus, err := onlineCPUs(c.roots)
	c.cpus = text
	for _, h := range events {
		e := openEvent{name: h.name, err: err}
		for _, cpu := range cpus {
			p, err := open(h, cpu)
			if err != nil {
				e.err = errors.Join(absentf("%s: CPU %d: %w%s", h.name, cpu, err, cure(err)), e.close())
				break
			}
			e.pairs = append(e.pairs, p)
		}
		c.events = append(c.events, e)
	}
	return c
}

// cure says what the kernel means by an error.
func cure(err error) string {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return " (run as root, or sysctl -w kernel.perf_event_paranoid=-1)"
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV):
		return " (the CPU gives no such counter: use bare metal, or a virtual machine with a PMU)"
	case errors.Is(err, unix.ENOSYS):
		return " (the kernel is built without perf events)"
	}
	return ""
}

// Name is the probe's name.
func (c *Counters) Name() string { return CountersName }

// Start reads the first edge. It is an error that nothing can be counted.
func (c *Counters) Start() error {
	var errs []error
	for i := range c.events {
		e := &c.events[i]
		if e.err == nil {
			e.first, e.err = e.read()
		}
		errs = append(errs, e.err)
	}
	for _, err := range errs {
		if err == nil {
			return nil
		}
	}
	return errors.Join(errs...)
}

// Stop reads the second edge. A counter that did not count, or not long enough,
// is absent, for a reason that is among the errors.
func (c *Counters) Stop() (map[string]float64, error) {
	values := map[string]float64{}
	var errs []error
	for i := range c.events {
		user, kernel, err := c.events[i].difference()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		values[c.events[i].name+"_user"], values[c.events[i].name+"_kernel"] = user, kernel
	}
	if now, _, err := onlineCPUs(c.roots); err != nil {
		return nil, errors.Join(append(errs, err)...)
	} else if now != c.cpus {
		return nil, errors.Join(append(errs, fmt.Errorf("the online CPUs changed from %s to %s: not all were counted", c.cpus, now))...)
	}
	return values, errors.Join(errs...)
}

// Close ends the counting.
func (c *Counters) Close() error {
	var errs []error
	for i := range c.events {
		errs = append(errs, c.events[i].close())
	}
	return errors.Join(errs...)
}

func (e *openEvent) close() error {
	var errs []error
	for _, p := range e.pairs {
		errs = append(errs, p.Close())
	}
	e.pairs = nil
	return errors.Join(errs...)
}

func (e *openEvent) read() ([]reading, error) {
	all := make([]reading, 0, len(e.pairs))
	for _, p := range e.pairs {
		r, err := p.Read()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// difference is what was counted between the edges, on all CPUs.
func (e *openEvent) difference() (user, kernel float64, err error) {
	if e.err != nil {
		return 0, 0, e.err
	}
	second, err := e.read()
	if err != nil {
		return 0, 0, err
	}
	if len(e.first) != len(second) || len(second) == 0 {
		return 0, 0, fmt.Errorf("%s: the first edge was not read", e.name)
	}
	for i, after := range second {
		before := e.first[i]
		if after.enabled <= before.enabled || after.running < before.running || after.user < before.user || after.kernel < before.kernel {
			return 0, 0, fmt.Errorf("%s: a counter stood still or ran backwards", e.name)
		}
		enabled, running := float64(after.enabled-before.enabled), float64(after.running-before.running)
		if share := running / enabled; share < minRunningShare {
			return 0, 0, fmt.Errorf("%s: counted in %.0f %% of the window only, because other programs use the CPU's counters as well; end them (perf, the NMI watchdog: sysctl -w kernel.nmi_watchdog=0)", e.name, 100*share)
		}
		user += float64(after.user-before.user) * enabled / running
		kernel += float64(after.kernel-before.kernel) * enabled / running
	}
	if user == 0 || kernel == 0 {
		// This very program ran in both meanwhile.
		return 0, 0, absentf("%s: the counter opens, but counts nothing (a virtual machine without a real PMU)", e.name)
	}
	return user, kernel, nil
}

// onlineCPUs lists the CPUs that are in use: "0-3,8".
func onlineCPUs(roots Roots) (text string, cpus []int, err error) {
	path := filepath.Join(roots.Sys, "devices/system/cpu/online")
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", nil, absentf("CPUs: %w", err)
	}
	text = strings.TrimSpace(string(raw))
	for part := range strings.SplitSeq(text, ",") {
		var from, to int
		if n, _ := fmt.Sscanf(part, "%d-%d", &from, &to); n == 1 {
			to = from
		} else if n != 2 {
			return text, nil, absentf("%s: no list of CPUs: %q", path, text)
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return text, cpus, nil
}
