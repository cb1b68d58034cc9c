package doctor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const counterArea = "perf counters"

// Event is a hardware event of perf_event_open(2).
type Event struct {
	Name   string
	config uint64
}

// events are those that the probes count.
func events() []Event {
	return []Event{
		{"cycles", unix.PERF_COUNT_HW_CPU_CYCLES},
		{"instructions", unix.PERF_COUNT_HW_INSTRUCTIONS},
	}
}

const noPMU = "bare metal, or a virtual machine that is given a PMU"

// counters opens each event. One that opens but counts nothing, as in many
// virtual machines, is missing too.
func (o Options) counters() []Check {
	paranoid := "unknown"
	if text, err := os.ReadFile(filepath.Join(o.Proc, "sys/kernel/perf_event_paranoid")); err == nil {
		paranoid = strings.TrimSpace(string(text))
	}
	var checks []Check
	for _, e := range events() {
		c := Check{Area: counterArea, Name: e.Name, Status: OK, NeededFor: "CPU cost in " + e.Name + " per packet"}
		n, err := o.Count(e)
		switch {
		case err == nil && n > 0:
			c.Detail = fmt.Sprintf("counted %d over a loop of %d rounds", n, rounds)
		case err == nil:
			c.Status, c.Detail = Missing, "opens, but counts nothing"
			c.Cure = noPMU
		case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
			c.Status, c.Detail = Missing, fmt.Sprintf("%v (kernel.perf_event_paranoid is %s)", err, paranoid)
			c.Cure = "sysctl -w kernel.perf_event_paranoid=-1"
		default:
			c.Status, c.Detail = Missing, "this machine gives none: "+err.Error()
			c.Cure = noPMU
		}
		checks = append(checks, c)
	}
	return checks
}

// rounds is the length of the loop that is counted.
const rounds = 1_000_000

// count counts an event over a short loop on every CPU that this process may
// run on, in the kernel too and by all that runs there, as a probe does.
func count(e Event) (uint64, error) {
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		return 0, fmt.Errorf("CPUs of this process: %w", err)
	}
	attr := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_HARDWARE,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Config: e.config,
	}
	var fds []int
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd) // only read from
		}
	}()
	for cpu := 0; len(fds) < cpus.Count(); cpu++ {
		if !cpus.IsSet(cpu) {
			continue
		}
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return 0, fmt.Errorf("perf_event_open on CPU %d: %w", cpu, err)
		}
		fds = append(fds, fd)
	}
	runtime.KeepAlive(spin())
	var sum uint64
	for _, fd := range fds {
		var buf [8]byte
		if _, err := unix.Read(fd, buf[:]); err != nil {
			return 0, fmt.Errorf("read the counter: %w", err)
		}
		sum += binary.NativeEndian.Uint64(buf[:])
	}
	return sum, nil
}

//go:noinline
func spin() int {
	sum := 0
	for i := range rounds {
		sum += i ^ sum
	}
	return sum
}
