package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestCarriersAreKnown: what carries packets in user space is counted with an
// end of a sample, that of each node once.
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
				client, server, err := sites(cell, false)
				if err != nil {
					t.Fatal(err)
				}
				got := map[int][]string{}
				for role, at := range map[string]site{roleClient: client, roleServer: server} {
					for _, pid := range c.carriersOf(at, role) {
						program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
						if err != nil {
							t.Error(err)
						}
						got[at.node] = append(got[at.node], filepath.Base(program))
					}
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
