package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory reads what a network holds.
type Memory struct {
	Proc string // "/proc"
	Sys  string // "/sys"
}

// Resident is the resident memory of processes in bytes, as each sees it (VmRSS):
// what they share is in all of them. Of no process it is absent (ErrAbsent).
func (m Memory) Resident(pids []int) (float64, error) {
	if len(pids) == 0 {
		return 0, absentf("resident memory: the network runs no process here")
	}
	var sum float64
	for _, pid := range pids {
		path := filepath.Join(m.Proc, strconv.Itoa(pid), "status")
		v, err := m.kib(path, "VmRSS")
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// ParseCount reads a number as a file of the kernel has it.
func ParseCount(text string) (float64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	return float64(n), err
}

// Conntrack is the memory of a number of tracked connections: a slab object each.
// Extensions (of NAT, helpers, marks) are no part of it: it is a lower bound.
func (m Memory) Conntrack(entries string) (float64, error) {
	n, err := ParseCount(entries)
	if err != nil {
		return 0, err
	}
	path := filepath.Join(m.Sys, "kernel/slab/nf_conntrack/slab_size")
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, absentf("the size of a tracked connection: %w", err)
	}
	size, err := ParseCount(string(raw))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return n * size, nil
}

// Kernel is the kernel's own memory that networks are made of, of the whole
// machine in bytes: slab objects that cannot be reclaimed (SUnreclaim) and what
// each CPU has of its own (Percpu). Caches and the stacks of threads are not in it.
func (m Memory) Kernel() (float64, error) {
	path := filepath.Join(m.Proc, "meminfo")
	slab, err := m.kib(path, "SUnreclaim")
	if err != nil {
		return 0, err
	}
	percpu, err := m.kib(path, "Percpu")
	return slab + percpu, err
}

// kib reads the line "KEY: 123 kB" of a file, in bytes.
func (m Memory) kib(path, key string) (float64, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		rest, ok := strings.CutPrefix(line, key+":")
		if !ok {
			continue
		}
		text, ok := strings.CutSuffix(strings.TrimSpace(rest), " kB")
		n, err := ParseCount(text)
		if !ok || err != nil {
			return 0, fmt.Errorf("%s: %q", path, line)
		}
		return 1024 * n, nil
	}
	return 0, absentf("%s has no %s", path, key)
}
