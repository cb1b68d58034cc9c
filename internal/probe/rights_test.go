package probe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/labtest"
)

// withoutRights runs f on a thread of nobody, which ends with it.
func withoutRights(t *testing.T, f func()) {
	t.Helper()
	labtest.Root(t)
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: no other goroutine gets the thread
		const nobody = 65534
		// The bare call: that of the library changes all threads.
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			done <- errno
			return
		}
		f()
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// What nobody may not read is absent and has its reason and its cure; what is there
// is no zero that stands for nothing.
func TestProbesWithoutRights(t *testing.T) {
	paranoid, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	labtest.Feature(t, "perf events", err)
	level, err := strconv.Atoi(strings.TrimSpace(string(paranoid)))
	if err != nil {
		t.Fatal(err)
	}
	withoutRights(t, func() {
		for _, p := range List(Roots{Proc: "/proc", Sys: "/sys"}, nil) {
			values, err := window(p)
			missing, wrong := Reasons(err)
			if len(wrong) > 0 {
				t.Errorf("%s: that this user may not read it is no absence, but an error of the sample: %v", p.Name(), wrong)
			}
			perf := p.Name() == CountersName || p.Name() == StacksName
			if perf && level > 0 && (len(values) > 0 || len(missing) == 0) {
				t.Errorf("%s at perf_event_paranoid %d: %v (%v), want a reason", p.Name(), level, values, err)
			}
			for _, why := range missing {
				if perf && level > 0 && !strings.Contains(why.Error(), "(run as root, or sysctl -w kernel.") && !strings.Contains(why.Error(), "gives no such counter") {
					t.Errorf("%s: no cure in %q", p.Name(), why)
				}
			}
			if !perf && len(values) == 0 {
				t.Errorf("%s: nothing was read, though anybody may: %v", p.Name(), err)
			}
			for name, v := range values {
				if strings.HasPrefix(name, "instructions") || strings.HasPrefix(name, "cycles") || name == "process_cpu_seconds" || name == "stack_samples" {
					if v <= 0 {
						t.Errorf("%s: %s is %v", p.Name(), name, v)
					}
				}
			}
		}
	})
}

// window reads both edges around some work.
func window(p Probe) (values map[string]float64, err error) {
	if c, ok := p.(io.Closer); ok {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	sum := 0
	for i := range 10_000_000 {
		sum += i ^ sum
	}
	if values, err = p.Stop(); err != nil {
		return values, fmt.Errorf("second edge: %w", err)
	}
	runtime.KeepAlive(sum)
	return values, nil
}

// A machine that shows none of what probes read gives no value at all.
func TestProbesOfNothing(t *testing.T) {
	roots := Roots{Proc: t.TempDir(), Sys: t.TempDir()}
	for _, p := range List(roots, nil) {
		if values, err := window(p); err == nil || len(values) > 0 {
			t.Errorf("%s of empty trees: %v (%v)", p.Name(), values, err)
		}
	}
}
