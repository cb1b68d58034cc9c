package baremetal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/profile"
)

// TestMain lets the test binary be the owner of the machine's settings, for the
// test that kills it.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "owner" {
		os.Exit(owner(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// owner gives the machine a profile, says so and waits to be killed.
func owner(dir, name string) int {
	r := exec.NewRunner()
	defer r.Close()
	m, err := TakeMachine(context.Background(), r, dir)
	if err == nil {
		var p profile.Profile
		if p, err = profile.Find(name); err == nil {
			_, err = m.Use(context.Background(), p)
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("in force")
	wait := make(chan os.Signal, 1)
	signal.Notify(wait, syscall.SIGTERM)
	<-wait
	return 0
}

// volatile are what the kernel counts or draws on its own under /proc/sys.
var volatile = regexp.MustCompile(`^(kernel\.(ns_last_pid|random\.|pty\.nr|sched_domain)|fs\.(dentry-state|file-nr|inode-|nr_open|quota|aio-nr|epoll)|dev\.cdrom|net\.(netfilter\.nf_conntrack_count|ipv4\.route)|vm\.stat_refresh)`)

// settingsOfMachine is all that tuned and the profiles may change here.
func settingsOfMachine(t *testing.T, r *exec.Runner) []string {
	t.Helper()
	res, err := r.Run(t.Context(), exec.Cmd{Argv: []string{"sh", "-c", `sysctl -a 2>/dev/null; cd /sys
		for f in kernel/mm/transparent_hugepage/enabled devices/system/cpu/cpu*/cpufreq/scaling_governor block/*/queue/read_ahead_kb block/*/queue/scheduler; do
			[ -r "$f" ] && echo "$f $(cat "$f")"; done
		cd /etc/tuned 2>/dev/null && for f in *; do [ -f "$f" ] && echo "$f $(md5sum <"$f")"; done; true`}})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(res.Stdout)) {
		if !volatile.MatchString(line) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

func newMachine(t *testing.T) (r *exec.Runner, dir string, asBefore func()) {
	t.Helper()
	labtest.Root(t)
	labtest.Tool(t, "ansible-playbook", "ansible-core")
	labtest.Tool(t, "tuned", "tuned")
	r = exec.NewRunner()
	t.Cleanup(r.Close)
	dir = filepath.Join(t.TempDir(), "machine")
	before := settingsOfMachine(t, r)
	return r, dir, func() {
		t.Helper()
		if diff := cmp.Diff(before, settingsOfMachine(t, r)); diff != "" {
			t.Errorf("the machine is not as before (-before +now)\n%s", diff)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
}

// TestEveryProfileChangesMachine: every profile's part that is the whole machine's is applied (those
// of tuned by tuned), read back, and put back. What did not take has a reason.
func TestEveryProfileChangesMachine(t *testing.T) {
	r, dir, asBefore := newMachine(t)
	m, err := TakeMachine(t.Context(), r, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeMachine(t.Context(), r, dir); !errors.Is(err, errMachineInUse) {
		t.Errorf("a second owner: %v", err)
	}
	all, err := profile.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		settings, err := m.Use(t.Context(), p)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		took := 0
		for _, s := range settings {
			if s.Reason == "" && s.Value != s.Asked && s.Asked != "" && !strings.HasPrefix(s.Name, "net.core.somaxconn") {
				t.Errorf("%s: %+v is not as asked, and has no reason", p.Name, s)
			}
			if s.Reason == "" {
				took++
			} else {
				t.Logf("%s: %s is %q, asked %q: %s", p.Name, s.Name, s.Value, s.Asked, s.Reason)
			}
		}
		if changes := p.Tuned != "" || p.Name == "kernel_optimizations"; changes != (took > 0) {
			t.Errorf("%s: %d settings took: %+v", p.Name, took, settings)
		}
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	asBefore()
}

// TestKilledOwnerChangesMachine: with the owner killed, and tuned with it, what is
// kept on the disk is enough to put everything back.
func TestKilledOwnerChangesMachine(t *testing.T) {
	// Commands of other tests clear what killed owners left, too.
	t.Setenv("TMPDIR", labtest.OpenTempDir(t))
	r, dir, asBefore := newMachine(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kernel_optimizations", "network-latency"} {
		p, err := r.StartPiped(t.Context(), exec.Cmd{Argv: []string{self, "owner", dir, name}})
		if err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 200)
		n, _ := p.Stdout.Read(said)
		if string(said[:n]) != "in force\n" {
			t.Fatalf("%s: the owner said %q", name, said[:n])
		}
		if restored, err := RestoreMachine(t.Context(), r, dir); restored || err != nil {
			t.Errorf("%s: restored under a living owner: %v, %v", name, restored, err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait()
		if pid, err := os.ReadFile("/run/tuned/tuned.pid"); name == "network-latency" && err == nil {
			if _, err := r.Run(t.Context(), exec.Cmd{Argv: []string{"kill", "-9", strings.TrimSpace(string(pid))}}); err != nil {
				t.Error(err)
			}
		}
		if restored, err := RestoreMachine(t.Context(), r, dir); !restored || err != nil {
			t.Errorf("%s: not put back: %v, %v", name, restored, err)
		}
		asBefore()
		if left, err := ClearScratch(); err != nil || len(left) != 1 {
			t.Errorf("%s: cleared %q, %v; want what the killed owner left", name, left, err)
		}
	}
}
