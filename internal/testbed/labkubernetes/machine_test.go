package labkubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// On machines whose iptables writes to nf_tables, as Debian's does, the kernel's legacy
// tables are not asked for.
func TestIPTablesKernel(t *testing.T) {
	for program, want := range map[string]string{"xtables-nft-multi": "nf_tables", "xtables-legacy-multi": "ip_tables"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, program), nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, filepath.Join(dir, "iptables")); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir)
		if got := iptablesKernel().Name; got != want {
			t.Errorf("iptables is %s: it needs %s, want %s", program, got, want)
		}
	}
}

// A cgroup of version 2 gives the cgroups in it all controllers that it has; those of
// version 1 have no such file.
func TestControllersArePassedOn(t *testing.T) {
	dir := t.TempDir()
	if err := passOn(dir); err != nil {
		t.Errorf("version 1: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte("cpuset cpu memory pids\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := passOn(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")); err != nil || string(got) != "+cpuset +cpu +memory +pids" {
		t.Errorf("it passes on %q (%v)", got, err)
	}
}

// A node has one BPF file system, also on a machine that has some, as systemd mounts one.
func TestNodeHasOneBPFFileSystem(t *testing.T) {
	labtest.Root(t)
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err == nil && !(strings.Contains(string(filesystems), "\tbpf\n") && strings.Contains(string(filesystems), "overlay")) {
		err = fmt.Errorf("no bpf or no overlay in /proc/filesystems")
	}
	labtest.Feature(t, "BPF and overlay file systems", err)
	lab := t.TempDir()
	node := filepath.Join(lab, "node")
	if err := os.MkdirAll(filepath.Join(node, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := exec.NewRunner()
	defer r.Close() // it ends the holder
	p, err := r.StartPiped(t.Context(), exec.Cmd{Argv: []string{
		"unshare", "--mount", "--propagation", "private", "sh", "-c",
		`mount -t bpf a /sys/fs/bpf && mount -t bpf b /sys/fs/bpf && exec "$0" lab hold "$1" "$2"`, options(nil, "").Self, lab, node,
	}})
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(node, readyFile)); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the node's mounts are not ready: %s", p.Stderr())
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", p.PID()))
	if n := strings.Count(string(mounts), " /sys/fs/bpf "); err != nil || n != 1 {
		t.Errorf("%d BPF file systems at /sys/fs/bpf (%v), want 1:\n%s", n, err, mounts)
	}
}
