package cluster

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/kubeclient/kubetest"
	"github.com/cnibench/cnibench/internal/result"
)

// jobCell is a cell with ranks.
func jobCell(path, placement string, ranks, perNode int) result.Cell {
	c := cell(path, placement)
	c.Workload, c.Ranks, c.RanksPerNode = "all_to_all", ranks, perNode
	return c
}

// Each rank has a pod and an agent of its own; they fill one node after the other.
func TestRanksFillTheNodes(t *testing.T) {
	c := kubetest.New("a", "b", "c", "d", "e")
	b, _ := open(t, c)
	want := map[result.Cell][]string{
		jobCell(result.PathPodToPod, result.InterHost, 8, 2): {
			"pod-rank1-1 on a", "pod-rank2-1 on a", "pod-rank1-2 on b", "pod-rank2-2 on b",
			"pod-rank1-3 on c", "pod-rank2-3 on c", "pod-rank1-4 on d", "pod-rank2-4 on d"},
		jobCell(result.PathPodToPod, result.IntraHost, 3, 1):   {"pod-rank1-1 on a", "pod-rank2-1 on a", "pod-rank3-1 on a"},
		jobCell(result.PathHostToHost, result.InterHost, 3, 2): {"host-rank1-1 on a", "host-rank2-1 on a", "host-rank1-2 on b"},
	}
	var cells []result.Cell
	for one := range want {
		cells = append(cells, one)
	}
	if _, err := b.Prepare(t.Context(), cells); err != nil {
		t.Fatal(err)
	}
	if unsupported, err := b.Build(t.Context(), cells); err != nil || len(unsupported) > 0 {
		t.Errorf("%v, %v", unsupported, err)
	}
	for one, names := range want {
		ranks, err := b.Ranks(t.Context(), one)
		if err != nil || len(ranks) != len(names) {
			t.Errorf("%s: %d ranks, %v", one.Path, len(ranks), err)
			continue
		}
		agents := map[*agent.Client]bool{}
		for i, rank := range ranks {
			agents[rank.Agent] = true
			if rank.Name != names[i] || !rank.Agent.Alive() || rank.Address.String() != kubetest.Loopback {
				t.Errorf("rank %d is %s at %s, want %s", i, rank.Name, rank.Address, names[i])
			}
		}
		if len(agents) != len(names) {
			t.Errorf("%s: %d agents for %d ranks", one.Path, len(agents), len(names))
		}
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if names := left(t, c); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}

// A rank whose agent has ended gets another one before the next sample.
func TestRankIsRevived(t *testing.T) {
	c := kubetest.New("a", "b")
	b, _ := open(t, c)
	job := jobCell(result.PathPodToPod, result.InterHost, 2, 1)
	if _, err := b.Prepare(t.Context(), []result.Cell{job}); err != nil {
		t.Fatal(err)
	}
	ranks, err := b.Ranks(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if err := ranks[1].Agent.Close(); err != nil || ranks[1].Agent.Alive() {
		t.Fatalf("it is alive: %v", err)
	}
	again, err := b.Ranks(t.Context(), job)
	if err != nil || !again[1].Agent.Alive() || again[1].Agent == ranks[1].Agent || again[0].Agent != ranks[0].Agent {
		t.Errorf("%+v, %v", again, err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// What has no place for its ranks is unsupported with the reason, and the others are
// measured.
func TestRanksAreUnsupported(t *testing.T) {
	b, _ := open(t, kubetest.New("a", "b"))
	policies := jobCell(result.PathPodToPod, result.InterHost, 2, 1)
	policies.Policies = 10
	service := jobCell(result.PathPodToClusterIP, result.InterHost, 2, 1)
	want := map[result.Cell]string{
		jobCell(result.PathPodToPod, result.InterHost, 8, 2): "8 ranks, 2 on a node, need 4 nodes, and the cluster has 2 that are measured",
		jobCell(result.PathPodToPod, result.InterHost, 4, 4): "all 4 ranks on one node",
		policies: "measure it in the lab",
		service:  "no path " + result.PathPodToClusterIP,
	}
	good := cell(result.PathPodToPod, result.InterHost)
	cells := []result.Cell{good}
	for one := range want {
		cells = append(cells, one)
	}
	if _, err := b.Prepare(t.Context(), cells); err != nil {
		t.Fatal(err)
	}
	unsupported, err := b.Build(t.Context(), cells)
	if err != nil || unsupported[good] != "" {
		t.Errorf("%v, %q", err, unsupported[good])
	}
	for one, why := range want {
		if !strings.Contains(unsupported[one], why) {
			t.Errorf("%q, want %q", unsupported[one], why)
		}
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
