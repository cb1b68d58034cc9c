package lab

import (
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// Pods that are added while the lab is in use answer the other node's pod, each of
// their steps is seen, and they leave nothing; a second time is like the first. On
// a busy machine a step may be seen late, so that their order is not held here.
func TestAddPods(t *testing.T) {
	for _, name := range []string{"bridge", "calico/direct", "calico/direct-policy", "podman/macvlan", "docker/macvlan"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := New(options(newRunner(t), t.TempDir()))
			cell := cells(name)[0]
			cell.Workload, cell.Pods = workload.PodSetupName, 4
			buildLab(t, l, []result.Cell{cell})
			before, err := netns.List(l.state.Prefix())
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				set, err := l.AddPods(t.Context(), cell)
				if err != nil {
					t.Fatal(err)
				}
				m, err := workload.PodsAdded(set)
				if err != nil || len(set.Pods) != 4 {
					t.Fatalf("%d pods: %v", len(set.Pods), err)
				}
				t.Log(m.Metrics)
				for _, p := range set.Pods {
					if p.Device == nil || p.Address == nil || p.Route == nil || p.Added == nil || p.Answered == nil || p.Removed == nil ||
						(p.Allocated == nil) != (name == "docker/macvlan") || len(p.Plugins) < 2 { // Docker gives addresses out itself
						t.Errorf("a pod's steps: %+v", p)
					}
					if (p.Policy != nil) != (name == "calico/direct-policy") {
						t.Errorf("the agent's part: %v", p.Policy)
					}
				}
			}
			after, err := netns.List(l.state.Prefix())
			if err != nil || !slices.Equal(before, after) {
				t.Errorf("left behind: %v, were %v (%v)", after, before, err)
			}
		})
	}
}

// host has no pods to add.
func TestAddPodsNeedsPods(t *testing.T) {
	cell := cells("host")[0]
	cell.Workload, cell.Pods = workload.PodSetupName, 1
	if _, unsupported := New(Options{}).planner.specs([]result.Cell{cell}); unsupported[cell] == "" {
		t.Error("pods can be added to host")
	}
}
