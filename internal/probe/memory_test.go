package probe

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestMemory(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := Memory{Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys")}
	if _, err := m.Conntrack("3\n"); !errors.Is(err, ErrAbsent) {
		t.Errorf("without its slab: %v", err)
	}
	write("proc/7/status", "Name:\ta\nVmRSS:\t     100 kB\n")
	write("proc/8/status", "Name:\tb\nVmRSS:\t      20 kB\n")
	write("proc/meminfo", "MemTotal: 1 kB\nSUnreclaim:       50000 kB\nPercpu:             960 kB\n")
	write("sys/kernel/slab/nf_conntrack/slab_size", "256\n")
	for name, of := range map[string]struct {
		want float64
		get  func() (float64, error)
	}{
		"two processes": {120 << 10, func() (float64, error) { return m.Resident([]int{7, 8}) }},
		"connections":   {768, func() (float64, error) { return m.Conntrack("3\n") }},
		"kernel":        {50960 << 10, m.Kernel},
	} {
		if got, err := of.get(); err != nil || got != of.want {
			t.Errorf("%s: %v (%v), want %v", name, got, err, of.want)
		}
	}
	write("proc/meminfo", "SUnreclaim: 50000 kB\n") // as before Linux 4.20
	if _, err := m.Kernel(); !errors.Is(err, ErrAbsent) {
		t.Errorf("without Percpu: %v", err)
	}
	for _, bad := range []string{"VmRSS: x kB\n", "VmRSS: 5\n"} {
		write("proc/9/status", bad)
		if v, err := m.Resident([]int{9}); err == nil {
			t.Errorf("%q is %v", bad, v)
		}
	}
	if _, err := m.Resident([]int{10}); err == nil {
		t.Error("a process that has ended has memory")
	}
	if v, err := m.Resident(nil); !errors.Is(err, ErrAbsent) {
		t.Errorf("no process has %v of memory (%v)", v, err)
	}
}
