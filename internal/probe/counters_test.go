package probe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/labtest"
)

// fake is a pair that reads what it is given, in turn.
type fake struct {
	readings []reading
	err      error
	closed   *int
}

func (f *fake) Read() (reading, error) {
	if len(f.readings) == 0 {
		return reading{}, f.err
	}
	r := f.readings[0]
	f.readings = f.readings[1:]
	return r, nil
}
func (f *fake) Close() error { *f.closed++; return nil }

// sysOf is a /sys with these CPUs online.
func sysOf(t *testing.T, online string) Roots {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "devices/system/cpu")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "online"), []byte(online+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return Roots{Sys: strings.TrimSuffix(dir, "/devices/system/cpu")}
}

const ms = 1_000_000

// Two CPUs, one of which was counted in 80 % of the window: what it counted is
// scaled to the whole.
func TestCounters(t *testing.T) {
	closed := 0
	c := openCounters(sysOf(t, "0,2"), counted(), func(h hardware, cpu int) (pair, error) {
		f := uint64(1)
		if h.name == "cycles" {
			f = 2
		}
		if cpu == 0 {
			return &fake{readings: []reading{{5 * ms, 5 * ms, 100, 10}, {105 * ms, 105 * ms, 100 + 1000*f, 10 + 4000*f}}, closed: &closed}, nil
		}
		return &fake{readings: []reading{{}, {100 * ms, 80 * ms, 800 * f, 80 * f}}, closed: &closed}, nil
	})
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	got, err := c.Stop()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"instructions_user": 2000, "instructions_kernel": 4100, "cycles_user": 4000, "cycles_kernel": 8200}
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: %v, want %v", name, got[name], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	if err := c.Close(); err != nil || closed != 4 {
		t.Errorf("closed %d of 4 (%v)", closed, err)
	}
}

// Whatever fails, there is a reason and no value: never a zero.
func TestCountersAreAbsentForAReason(t *testing.T) {
	good := []reading{{}, {100 * ms, 100 * ms, 7, 9}}
	for _, tc := range []struct {
		name   string
		open   func(hardware, int) error
		second reading
		read   error
		online string // at the second edge, "0-1" where empty
		absent bool   // of this machine, not of this window
		want   string
	}{
		{name: "paranoid", open: func(hardware, int) error { return unix.EACCES }, absent: true, want: "kernel.perf_event_paranoid=-1"},
		{name: "not root", open: func(hardware, int) error { return unix.EPERM }, absent: true, want: "run as root"},
		{name: "no PMU", open: func(hardware, int) error { return unix.ENOENT }, absent: true, want: "virtual machine with a PMU"},
		{name: "no perf in the kernel", open: func(hardware, int) error { return unix.ENOSYS }, absent: true, want: "without perf events"},
		{name: "one CPU refuses", open: func(_ hardware, cpu int) error {
			if cpu == 1 {
				return unix.EBUSY
			}
			return nil
		}, absent: true, want: "CPU 1"},
		{name: "counts nothing", second: reading{100 * ms, 100 * ms, 0, 0}, absent: true, want: "counts nothing"},
		{name: "counts user space only", second: reading{100 * ms, 100 * ms, 7, 0}, absent: true, want: "counts nothing"},
		{name: "multiplexed", second: reading{100 * ms, 74 * ms, 7, 9}, want: "74 % of the window"},
		{name: "never scheduled", second: reading{100 * ms, 0, 0, 0}, want: "0 % of the window"},
		{name: "stood still", second: reading{}, want: "stood still"},
		{name: "cannot be read", read: unix.EIO, want: "input/output error"},
		{name: "a CPU went", online: "0", want: "changed from 0-1 to 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			closed, opened := 0, 0
			roots := sysOf(t, "0-1")
			c := openCounters(roots, counted(), func(h hardware, cpu int) (pair, error) {
				if tc.open != nil {
					if err := tc.open(h, cpu); err != nil {
						return nil, err
					}
				}
				opened++
				f := &fake{readings: append([]reading(nil), good...), err: tc.read, closed: &closed}
				if tc.read != nil {
					f.readings = f.readings[:1]
				} else if tc.online == "" {
					f.readings[1] = tc.second
				}
				return f, nil
			})
			err := c.Start()
			if err == nil {
				if tc.online != "" {
					c.roots = sysOf(t, tc.online)
				}
				var got map[string]float64
				if got, err = c.Stop(); len(got) != 0 {
					t.Errorf("values: %v", got)
				}
			}
			missing, wrong := Reasons(err)
			if (len(missing) > 0) != tc.absent || (len(wrong) > 0) == tc.absent || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("missing %v, wrong %v, want %q", missing, wrong, tc.want)
			}
			if err := c.Close(); err != nil || closed != opened {
				t.Errorf("closed %d of %d (%v)", closed, opened, err)
			}
		})
	}
}

// A machine with instructions and without cycles has instructions.
func TestCountersOneEventOnly(t *testing.T) {
	closed := 0
	c := openCounters(sysOf(t, "0"), counted(), func(h hardware, _ int) (pair, error) {
		if h.name == "cycles" {
			return nil, unix.ENOENT
		}
		return &fake{readings: []reading{{}, {ms, ms, 7, 9}}, closed: &closed}, nil
	})
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	got, err := c.Stop()
	missing, wrong := Reasons(err)
	if len(got) != 2 || got["instructions_kernel"] != 9 || len(missing) != 1 || len(wrong) != 0 {
		t.Errorf("%v %v", got, err)
	}
}

func TestCountersWithoutAListOfCPUs(t *testing.T) {
	for _, roots := range []Roots{{Sys: "testdata/none"}, sysOf(t, "many")} {
		c := openCounters(roots, counted(), openPair)
		if err := c.Start(); !errors.Is(err, ErrAbsent) {
			t.Errorf("start: %v", err)
		}
	}
}

// The kernel's own software events go the same way as the hardware's: opening
// on each CPU, the group, the times, user space and kernel apart.
func TestCountersOfTheKernel(t *testing.T) {
	labtest.Root(t)
	faults := []hardware{{"faults", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS}}
	c := openCounters(Roots{Sys: "/sys"}, faults, openPair)
	defer c.Close()
	if err := c.Start(); err != nil {
		labtest.Feature(t, "perf software events", err)
	}
	const pages = 2000
	size := pages * os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Madvise(mem, unix.MADV_NOHUGEPAGE); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < size; i += os.Getpagesize() {
		mem[i] = 1
	}
	if err := unix.Munmap(mem); err != nil {
		t.Fatal(err)
	}
	// Faults of the kernel may be none in so short a time, which is an absence.
	user, _, err := c.events[0].difference()
	if err != nil && !errors.Is(err, ErrAbsent) || err == nil && user < pages {
		t.Errorf("%v page faults in user space (%v), want at least %d", user, err, pages)
	}
}

// BenchmarkEdge is what both edges of a window cost.
func BenchmarkEdge(b *testing.B) {
	events := []hardware{
		{"faults", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS},
		{"switches", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CONTEXT_SWITCHES},
	}
	c := openCounters(Roots{Sys: "/sys"}, events, openPair)
	defer c.Close()
	if err := c.Start(); err != nil {
		b.Skip(err)
	}
	for b.Loop() {
		for i := range c.events {
			if _, err := c.events[i].read(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
