package campaign

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/traffic"
)

func jobCampaign(workload, path string) []byte {
	return []byte("name: c\nnetworks: [host, bridge]\nworkloads: [" + workload + "]\npaths: [" + path + "]\n")
}

const podToPod = "{from: pod, to: pod}"

// What a file leaves open is four ranks on four nodes, by the first algorithm.
func TestRanksByDefault(t *testing.T) {
	c, err := Parse("c.yaml", jobCampaign("{name: all_gather}, {name: incast}", podToPod), testKnown())
	if err != nil {
		t.Fatal(err)
	}
	w := c.Workloads[0]
	if !slices.Equal(w.numbers("ranks"), []int{4}) || !slices.Equal(w.numbers("ranks_per_node"), []int{1}) || !slices.Equal(w.texts("algorithm"), []string{"ring"}) || !slices.Equal(w.numbers("message_bytes"), []int{4096}) {
		t.Errorf("%+v", w)
	}
	if w := c.Workloads[1]; w.has("algorithm") {
		t.Errorf("incast has the algorithms %v", w.texts("algorithm"))
	}
}

// The table of factors cannot ask the engine, which knows nothing of this program.
func TestMostRanksAreTheEngines(t *testing.T) {
	for _, k := range workloadKeys(testKnown()) {
		if strings.HasPrefix(k.name, "ranks") && k.bounds.Max != traffic.MaxRanks {
			t.Errorf("%s: at most %v, and the engine takes %d", k.name, k.bounds.Max, traffic.MaxRanks)
		}
	}
}

// A combination that cannot be run is one error, which names the place and the cure.
func TestRanksRefused(t *testing.T) {
	for _, c := range []struct{ workload, path, want string }{
		{"{name: all_gather, ranks: [4, 6], algorithm: [ring, recursive_doubling]}", podToPod,
			"workloads[0].algorithm[1]: all_gather by recursive_doubling requires a power of two of ranks (2, 4, 8 …), found 6: choose ring"},
		{"{name: all_gather, algorithm: [pairwise]}", podToPod, `workloads[0].algorithm[0]: unknown algorithm "pairwise"`},
		{"{name: incast, algorithm: [ring]}", podToPod, `workload "incast" takes no algorithm; it takes message_bytes, ranks, ranks_per_node`},
		{"{name: all_gather, ranks: [1]}", podToPod, "workloads[0].ranks[0]: expected a whole number from 2 to 256, found 1"},
		{"{name: all_gather, ranks: [4], ranks_per_node: [4]}", podToPod, "4 ranks per node put all 4 ranks of all_gather on one node, and the path's placement is inter-host"},
		{"{name: all_gather, ranks_per_node: [2]}", "{from: pod, to: pod, placement: intra-host}", "a path with placement intra-host has all ranks of all_gather on one node"},
		{"{name: all_gather}", podToPod + ", {from: pod, to: host}", "paths[1]: all_gather has ranks that are all pods or all nodes: there is no path from pod to host between them"},
		{"{name: tcp_rr, ranks: [4]}", podToPod, `workload "tcp_rr" takes no ranks`},
	} {
		_, err := Parse("c.yaml", jobCampaign(c.workload, c.path), testKnown())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.workload, err, c.want)
			continue
		}
		if n := strings.Count(err.Error(), "c.yaml:"); n != 1 {
			t.Errorf("%s: %d errors: %v", c.workload, n, err)
		}
	}
	if _, err := Parse("c.yaml", jobCampaign("{name: all_gather}", "{from: pod, to: pod, placement: intra-host}"), testKnown()); err != nil {
		t.Errorf("all ranks on one node: %v", err)
	}
}
