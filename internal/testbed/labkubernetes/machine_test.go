package labkubernetes

import (
	"os"
	"path/filepath"
	"testing"
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
