package netns

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/labtest"
)

// newNS makes a namespace that the test's end deletes.
func newNS(t *testing.T) NS {
	t.Helper()
	labtest.Root(t)
	ns, err := New(fmt.Sprintf("cnb-t%06x", rand.Uint32()&0xffffff))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ns.Delete(); err != nil {
			t.Error(err)
		}
	})
	return ns
}

// own is the namespace that this process's first thread is in.
func own(t *testing.T) string {
	t.Helper()
	s, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDoIsInTheNamespaceAndComesBack(t *testing.T) {
	before := own(t)
	ns := newNS(t)
	inode, err := ns.Inode()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			err := Do(ns, func() error {
				got, err := os.Readlink("/proc/thread-self/ns/net")
				if want := fmt.Sprintf("net:[%d]", inode); got != want {
					t.Errorf("in %s, want %s", got, want)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			if got, err := os.Readlink("/proc/thread-self/ns/net"); err != nil || got != before {
				t.Errorf("outside of Do in %s (%v), want %s", got, err, before)
			}
		})
	}
	wg.Wait()
	if after := own(t); after != before {
		t.Errorf("this process moved from %s to %s", before, after)
	}
}

func TestDoSurvivesAFunctionThatEndsItsGoroutine(t *testing.T) {
	ns := newNS(t)
	if err := Do(ns, func() error { runtime.Goexit(); return nil }); err == nil {
		t.Error("no error")
	}
	if err := Do(ns, func() error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestLoopbackIsUp(t *testing.T) {
	ns := newNS(t)
	h, err := Handle(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	links, err := Dump(h.LinkList)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Attrs().Name == "lo" && l.Attrs().Flags&1 != 0 {
			return
		}
	}
	t.Errorf("no loopback device that is up among %d devices", len(links))
}

func TestNewRefusesANameThatIsTaken(t *testing.T) {
	ns := newNS(t)
	if _, err := New(ns.Name); !errors.Is(err, os.ErrExist) {
		t.Errorf("error %v, want exists", err)
	}
	if _, err := ns.Inode(); err != nil {
		t.Errorf("the first one is gone: %v", err)
	}
}

func TestDeleteOfWhatIsNotThere(t *testing.T) {
	if err := Named("cnb-never-made").Delete(); err != nil {
		t.Error(err)
	}
	ns := newNS(t)
	// As left by a maker that was killed between file and mount.
	if err := unix.Unmount(ns.Path, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if err := ns.Delete(); err != nil {
		t.Error(err)
	}
}

func TestSysctlsAreTheNamespacesOwn(t *testing.T) {
	ns := newNS(t)
	const path = "net/ipv4/ip_forward"
	machine, err := os.ReadFile("/proc/sys/" + path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1", "0"} {
		if err := SetSysctls(ns, Setting{path, want}); err != nil {
			t.Fatal(err)
		}
		if got, err := Sysctl(ns, path); err != nil || got != want {
			t.Errorf("read %q (%v), want %q", got, err, want)
		}
	}
	if after, _ := os.ReadFile("/proc/sys/" + path); string(after) != string(machine) {
		t.Errorf("the machine's own changed from %q to %q", machine, after)
	}
	err = SetSysctls(ns, Setting{"kernel/panic", "0"})
	if err == nil || !strings.Contains(err.Error(), "would change the machine") {
		t.Errorf("error %v, want refusal", err)
	}
}

func TestDumpRepeatsInterruptedListings(t *testing.T) {
	calls := 0
	got, err := Dump(func() (int, error) {
		if calls++; calls < 3 {
			return 0, fmt.Errorf("partial: %w", netlink.ErrDumpInterrupted)
		}
		return 7, nil
	})
	if got != 7 || err != nil || calls != 3 {
		t.Errorf("got %d, %v after %d calls", got, err, calls)
	}
}

func TestFeaturesAnswer(t *testing.T) {
	labtest.Root(t)
	before := own(t)
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range Features() {
		if seen[f.Name] || f.Doc == "" || f.Cure == "" {
			t.Errorf("feature %+v: name not unique, or not explained", f)
		}
		seen[f.Name] = true
		err := f.Probe()
		var missing *MissingError
		if err != nil && !errors.As(err, &missing) {
			t.Errorf("%s: %v is neither there nor missing", f.Name, err)
		}
		t.Logf("%-16s %v", f.Name, err)
	}
	if err := Veth().Probe(); err != nil {
		t.Errorf("veth: %v", err)
	}
	if err := device("cnbnosuchkind", "", "", "").Probe(); err == nil || err.Error() != "kernel has no cnbnosuchkind" {
		t.Errorf("unknown kind of device: %v", err)
	}
	if err := qdisc("cnbnosuch", "", "").Probe(); err == nil || err.Error() != "kernel has no cnbnosuch" {
		t.Errorf("unknown queueing discipline: %v", err)
	}
	after, err := netlink.LinkList()
	if err != nil || len(after) != len(links) || own(t) != before {
		t.Errorf("the machine's own namespace changed: %d devices, then %d (%v)", len(links), len(after), err)
	}
}
