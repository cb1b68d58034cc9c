package probe

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// burn uses a thread for a while of its own CPU time.
func burn(t *testing.T, d time.Duration) {
	t.Helper()
	begin, err := processTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for {
		now, err := processTime(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if now-begin >= d {
			return
		}
	}
}

func TestProcess(t *testing.T) {
	p := NewProcess(Roots{Proc: "/proc"})
	if err := p.Start(); err != nil {
		t.Skip(err) // a kernel without lists of children
	}
	burn(t, 50*time.Millisecond)
	got, err := p.Stop()
	if _, wrong := Reasons(err); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if v := got["process_cpu_seconds"]; v < 0.05 || v > 5 {
		t.Errorf("%v s of CPU time, want 0.05 and a little", v)
	}
}

// tree is a /proc with the children of processes and their names.
func tree(t *testing.T, children map[string]string, names map[string]string) Roots {
	t.Helper()
	dir := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("thread-self/children", "")
	for pid, below := range children {
		write(pid+"/task/"+pid+"/children", below)
	}
	for pid, name := range names {
		write(pid+"/comm", name+"\n")
	}
	return Roots{Proc: dir}
}

func TestProcessCountsAllThatWasStarted(t *testing.T) {
	self := "7"
	roots := tree(t, map[string]string{"2": "21 22 23 ", self: "100 ", "100": "101 "}, map[string]string{"21": "kworker/0:1", "22": "ksoftirqd/0", "23": "ksoftirqd/1"})
	if err := os.Rename(filepath.Join(roots.Proc, self), filepath.Join(roots.Proc, strconv.Itoa(os.Getpid()))); err != nil {
		t.Fatal(err)
	}
	roots.Carriers = []int{30}
	p := NewProcess(roots)
	times := map[int]time.Duration{30: 6 * time.Second, os.Getpid(): 1 * time.Second, 100: 2 * time.Second, 101: 3 * time.Second, 22: 4 * time.Second, 23: 5 * time.Second}
	p.clock = func(pid int) (time.Duration, error) {
		d, ok := times[pid]
		if !ok {
			return 0, errors.New("no such process")
		}
		return d, nil
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	times[100] += 250 * time.Millisecond
	times[101] += 500 * time.Millisecond
	times[30] += 1 * time.Second
	times[23] += 125 * time.Millisecond
	got, err := p.Stop()
	if err != nil || got["process_cpu_seconds"] != 1.75 || got["ksoftirqd_cpu_seconds"] != 0.125 {
		t.Errorf("%v (%v)", got, err)
	}
	if err := os.WriteFile(filepath.Join(roots.Proc, "100/task/100/children"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err = p.Stop()
	if _, there := got["process_cpu_seconds"]; there || err == nil || !strings.Contains(err.Error(), "101 ended") || got["ksoftirqd_cpu_seconds"] != 0.125 {
		t.Errorf("with a process that ended: %v (%v)", got, err)
	}
}

func TestProcessAbsent(t *testing.T) {
	p := NewProcess(Roots{Proc: "testdata/none"})
	if err := p.Start(); !errors.Is(err, ErrAbsent) {
		t.Errorf("a kernel without lists of children: %v", err)
	}
	p = NewProcess(tree(t, nil, nil)) // as in a container
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	got, err := p.Stop()
	if _, there := got["ksoftirqd_cpu_seconds"]; there || !errors.Is(err, ErrAbsent) {
		t.Errorf("%v (%v)", got, err)
	}
	if _, there := got["process_cpu_seconds"]; !there {
		t.Errorf("%v (%v)", got, err)
	}
}
