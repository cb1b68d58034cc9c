package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/result"
)

// TestCarriersAreKnown: what carries packets in user space is counted with an
// end of a sample, that of each node once, and runs on the CPU of both ends.
func TestCarriersAreKnown(t *testing.T) {
	for name, want := range map[string][]string{
		"bridge": nil, "flannel/udp": {"lab.test"}, "weave/sleeve": {"lab.test"},
		"antrea/geneve": {"ovs-vswitchd", "ovsdb-server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := New(options(newRunner(t), t.TempDir()))
			all := cells(name)
			buildLab(t, l, all)
			c := l.clusters[keyOf(all[0])]
			for _, cell := range all {
				cell.CPUs = result.CPUsSame
				client, server, err := sites(cell, false)
				if err != nil {
					t.Fatal(err)
				}
				got := map[int][]string{}
				for role, at := range map[string]site{roleClient: client, roleServer: server} {
					if err := c.placeCarriers(cell, client, server); err != nil {
						t.Error(err)
					}
					for _, pid := range c.carriersOf(at, role) {
						mayRunOn(t, pid, 1)
						program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
						if err != nil {
							t.Error(err)
						}
						got[at.node] = append(got[at.node], filepath.Base(program))
					}
				}
				cell.Workload = result.ServiceUpdateName
				if err := c.placeCarriers(cell, client, server); err != nil {
					t.Error(err)
				}
				for _, pid := range c.carriers[client.node-1] {
					mayRunOn(t, pid, runtime.NumCPU())
				}
				for node := 1; node <= server.node; node++ {
					slices.Sort(got[node])
					if self, _ := os.Executable(); len(want) == 1 {
						want = []string{filepath.Base(self)}
					}
					if !slices.Equal(got[node], want) {
						t.Errorf("%s: node %d: %v, want %v", cell.Placement, node, got[node], want)
					}
				}
			}
		})
	}
}

// mayRunOn: all threads of a process may run on as many CPUs.
func mayRunOn(t *testing.T, pid, cpus int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(tasks) == 0 {
		t.Errorf("process %d has no threads (%v)", pid, err)
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(filepath.Base(task))
		if err != nil {
			t.Fatal(err)
		}
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(tid, &set); err != nil || set.Count() != cpus {
			t.Errorf("thread %d of process %d may run on %d CPUs (%v), want %d", tid, pid, set.Count(), err, cpus)
		}
	}
}
