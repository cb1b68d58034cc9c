package lab

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
)

// trace is all of the machine that a lab could leave something in. What other
// tests' labs have at the moment is left out: they may run beside this one.
type trace struct {
	Devices, Addresses, Routes, Neighbours, Legacy, NFT []string
	Sysctls                                             map[string]string
	Mounts, Files, Processes                            []string
}

// foreign is what other tests make in their namespaces' folder.
var foreign = regexp.MustCompile(`/cnb-|/run/netns|/run/cnibench`)

func takeTrace(t *testing.T, dir string) trace {
	t.Helper()
	r := exec.NewRunner()
	defer r.Close()
	lines := func(argv ...string) []string {
		res, err := r.Run(context.Background(), exec.Cmd{Argv: argv})
		if err != nil {
			return []string{err.Error()}
		}
		var keep []string
		for line := range strings.Lines(string(res.Stdout)) {
			if !strings.HasPrefix(line, "#") {
				keep = append(keep, strings.TrimSpace(line))
			}
		}
		return keep
	}
	tr := trace{
		Devices: lines("ip", "-o", "link"), Addresses: lines("ip", "-o", "-4", "address"),
		Routes: lines("ip", "route", "show", "table", "all"), Legacy: lines("iptables-legacy-save"),
		NFT: lines("nft", "list", "ruleset"), Sysctls: sysctls(t), Processes: sameProgram(t),
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
	for _, root := range []string{"/run", "/var/lib/cni", "/var/run/cni", dir} {
		tr.Files = append(tr.Files, files(t, root)...)
	}
	return tr
}

func files(t *testing.T, root string) []string {
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

// sysctls reads all of net but what counts.
func sysctls(t *testing.T) map[string]string {
	all := map[string]string{}
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

// sameProgram are the other processes of this test's program: agents, plugins
// and owners of labs.
func sameProgram(t *testing.T) []string {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && to == self && l != fmt.Sprintf("/proc/%d/exe", os.Getpid()) {
			all = append(all, l)
		}
	}
	return all
}

// leavesNothing runs f and compares the machine before and after. id gives the
// lab that f made, as far as it is known.
func leavesNothing(t *testing.T, dir string, f func() (id string)) {
	t.Helper()
	before := takeTrace(t, dir)
	id := f()
	var diff string
	for range 30 { // processes and namespaces that were killed need a moment
		if diff = cmp.Diff(before, takeTrace(t, dir)); diff == "" {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if diff != "" {
		t.Errorf("the machine is not as before (-before +after):\n%s", diff)
	}
	if id == "" {
		return
	}
	left, err := netns.List(state{ID: id}.prefix())
	if err != nil || len(left) > 0 {
		t.Errorf("namespaces are left: %v (%v)", left, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), "cnb-"+id) {
		t.Errorf("mounts are left (%v)", err)
	}
	all, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	if slices.ContainsFunc(all, func(e fs.DirEntry) bool { return e.Name() == id }) {
		t.Errorf("files of lab %s are left", id)
	}
}
