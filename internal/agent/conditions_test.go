//go:build linux

package agent

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnibench/cnibench/internal/probe"
)

// tree writes files into a folder that takes the place of /.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// The lowest limit of all cgroups above a process counts, in both versions; no limit is
// absent, and so is one that cannot be read.
func TestMemoryLimit(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64 // 0: none
	}{
		"no cgroups": {nil, 0},
		"version 2, its parent's": {map[string]string{
			"proc/self/cgroup": "0::/pods/a\n", "sys/fs/cgroup/pods/a/memory.max": "max\n", "sys/fs/cgroup/pods/memory.max": "536870912\n",
		}, 512 << 20},
		"version 2, in a namespace": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1048576\n"}, 1 << 20},
		"both versions": {map[string]string{
			"proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/run\n0::/\n",
			"sys/fs/cgroup/memory/run/memory.limit_in_bytes":   "2097152\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":       "9223372036854771712\n",
			"sys/fs/cgroup/unified/memory.max":                 "max\n",
			"sys/fs/cgroup/memory/other/memory.limit_in_bytes": "4096\n",
		}, 2 << 20},
		"version 1 without one": {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"no number":             {map[string]string{"proc/self/cgroup": "0::/\nnonsense\n", "sys/fs/cgroup/memory.max": "lots\n"}, 0},
	} {
		root := tree(t, c.files)
		got, ok := memoryLimit(filepath.Join(root, "proc"), filepath.Join(root, "sys"))
		if got != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %d (%v), want %d", name, got, ok, c.want)
		}
	}
}

// Where CPUs are is in the conditions: each core and node once. A machine that does not say
// has a core for each CPU and no node.
func TestLocate(t *testing.T) {
	const cpus = "sys/devices/system/cpu/"
	files := map[string]string{}
	for cpu, at := range map[string][3]string{"cpu0": {"0", "0", "node0"}, "cpu1": {"0", "0", "node0"}, "cpu2": {"1", "4", "node1"}} {
		files[cpus+cpu+"/topology/physical_package_id"] = at[0] + "\n"
		files[cpus+cpu+"/topology/core_id"] = at[1] + "\n"
		files[cpus+cpu+"/"+at[2]+"/cpulist"] = ""
	}
	s := &server{roots: probe.Roots{Sys: filepath.Join(tree(t, files), "sys")}}
	for name, c := range map[string]struct {
		cpus []int
		want map[string]string
	}{
		"nothing was seen":      {nil, map[string]string{}},
		"two threads of a core": {[]int{0, 1}, map[string]string{ConditionCores: "0/0", ConditionNUMANodes: "0"}},
		"two packages":          {[]int{0, 2}, map[string]string{ConditionCores: "0/0,1/4", ConditionNUMANodes: "0,1"}},
		"one that is not there": {[]int{7}, map[string]string{ConditionCores: "/cpu7"}},
	} {
		got := map[string]string{}
		if s.locate(got, c.cpus); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
