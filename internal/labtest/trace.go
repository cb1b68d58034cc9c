package labtest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Trace is all of the machine that a lab could leave something in. What other
// labs have at the moment is left out: other tests may run beside this one.
type Trace struct {
	Devices, Addresses, Routes, Neighbours, Legacy, NFT []string
	Sysctls                                             map[string]string
	Mounts, Files, Processes                            []string
}

// Ours says which labs, files and processes are those of a test.
type Ours struct {
	// Dir is where the test's labs are written down. Processes whose
	// environment names it (CNIBENCH_STATE_DIR) are the test's.
	Dir string
	// Program is the program whose processes are the test's, an absolute path.
	Program string
}

// foreign is what other tests make in their namespaces' folder, and the folder that the first
// mount of any program on a machine makes.
var foreign = regexp.MustCompile(`/cnb-|/run/netns|/run/cnibench|/run/mount/`)

// LeavesNothing runs f and compares the machine before and after. f gives the
// labs that it made, as far as they are known.
func LeavesNothing(t testing.TB, o Ours, f func() (labs []string)) {
	t.Helper()
	before := TakeTrace(t, o)
	o.Check(t, before, f())
}

// Check compares the machine with what it was before, and looks for what is
// left of labs.
func (o Ours) Check(t testing.TB, before Trace, labs []string) {
	t.Helper()
	var diff string
	for range 30 { // processes and namespaces that were killed need a moment
		if diff = cmp.Diff(before, TakeTrace(t, o)); diff == "" {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if diff != "" {
		t.Errorf("the machine is not as before (-before +after):\n%s", diff)
	}
	for _, id := range labs {
		o.checkGone(t, id)
	}
}

// checkGone looks for the namespaces, mounts and files of a lab.
func (o Ours) checkGone(t testing.TB, id string) {
	t.Helper()
	left, err := filepath.Glob("/run/netns/cnb-" + id + "-*")
	if err != nil || len(left) > 0 {
		t.Errorf("namespaces are left: %v (%v)", left, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), "cnb-"+id) {
		t.Errorf("mounts of lab %s are left (%v)", id, err)
	}
	for _, pattern := range []string{"/sys/fs/cgroup/cnb-" + id + "-*", "/sys/fs/cgroup/*/cnb-" + id + "-*"} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("cgroups are left: %v (%v)", left, err)
		}
	}
	all, err := os.ReadDir(o.Dir)
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	if slices.ContainsFunc(all, func(e fs.DirEntry) bool { return e.Name() == id }) {
		t.Errorf("files of lab %s are left", id)
	}
}

// TakeTrace reads the machine as it is.
func TakeTrace(t testing.TB, o Ours) Trace {
	t.Helper()
	tr := Trace{
		Devices: lines("ip", "-o", "link"), Addresses: lines("ip", "-o", "-4", "address"),
		Routes: lines("ip", "route", "show", "table", "all"), Legacy: lines("iptables-legacy-save"),
		NFT: lines("nft", "list", "ruleset"), Sysctls: sysctls(t), Processes: o.processes(t),
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if !foreign.MatchString(line) {
			tr.Mounts = append(tr.Mounts, line)
		}
	}
	for _, root := range []string{"/run", "/var/lib/cni", "/var/run/cni", o.Dir} {
		tr.Files = append(tr.Files, files(t, root)...)
	}
	return tr
}

// lines is what a program prints, without comments; its error where it fails.
func lines(argv ...string) []string {
	out, err := exec.CommandContext(context.Background(), argv[0], argv[1:]...).Output()
	if err != nil {
		return []string{err.Error()}
	}
	var keep []string
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "#") {
			keep = append(keep, strings.TrimSpace(line))
		}
	}
	return keep
}

func files(t testing.TB, root string) []string {
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone meanwhile, or never there
		}
		if path != root && foreign.MatchString(path+"/") && !strings.HasPrefix(path, root+"/cnb-") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		all = append(all, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sysctls reads all of net but what counts, and a few others.
func sysctls(t testing.TB) map[string]string {
	all := map[string]string{}
	// Those of the whole machine that a kubelet sets where it may.
	for _, path := range []string{"/proc/sys/kernel/panic", "/proc/sys/kernel/panic_on_oops", "/proc/sys/vm/overcommit_memory"} {
		if b, err := os.ReadFile(path); err == nil {
			all[path] = string(b)
		}
	}
	err := filepath.WalkDir("/proc/sys/net", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_count") {
			return nil
		}
		if b, err := os.ReadFile(path); err == nil {
			all[path] = string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// processes names the test's processes: agents, plugins, tools and owners of
// labs.
func (o Ours) processes(t testing.TB) []string {
	var all []string
	for _, pid := range o.PIDs(t) {
		argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && len(argv) > 0 { // a zombie has none
			all = append(all, fmt.Sprintf("%d %s", pid, strings.ReplaceAll(string(argv), "\x00", " ")))
		}
	}
	return all
}

// PIDs are the test's processes: those of its program, those that know its
// folder by their environment or by an argument.
func (o Ours) PIDs(t testing.TB) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	mark := "\x00CNIBENCH_STATE_DIR=" + o.Dir + "\x00"
	var pids []int
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscanf(e.Name(), "%d", &pid); err != nil || pid == os.Getpid() {
			continue
		}
		program, err := os.Readlink(filepath.Join("/proc", e.Name(), "exe"))
		if err != nil {
			continue // one of the kernel's, or it has ended
		}
		// One that has ended meanwhile has neither.
		environ, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		argv, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if program == o.Program || strings.Contains(string(argv), o.Dir+"/") || strings.Contains(string(environ), o.Dir+"/") || strings.Contains("\x00"+string(environ), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}
