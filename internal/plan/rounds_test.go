package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
)

// meshOf is a plan of pairs of nodes on two networks.
func meshOf(pairs [][2]string) Plan {
	c := campaign.Campaign{Testbed: campaign.Kubernetes, Pairs: campaign.AllPairs, Networks: []campaign.Network{{Name: "host"}, {Name: campaign.Detected}},
		Clusters: []campaign.Cluster{{Name: "a", Found: campaign.Found{Network: "bridge", MTU: 1500, Pairs: pairs}}},
		Links:    []string{"unshaped"}, Profiles: []string{"default_settings"}, Families: []string{"ipv4"},
		Paths:     []campaign.Path{{From: "pod", To: "pod", Placement: "inter-host"}},
		Workloads: []campaign.Workload{{Name: "tcp_rr", Values: campaign.Values{"message_bytes": {64}}}}}
	c.Sampling.MinBlocks, c.Sampling.MaxBlocks = 2, 20
	return New(c, 1)
}

func named(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("n%02d", i))
	}
	return names
}

// checkRounds checks that a block consists of rounds, and counts them.
func checkRounds(t *testing.T, p Plan, block int) int {
	t.Helper()
	seen := map[result.Cell]bool{}
	rounds := Together(p.Block(block, nil))
	for _, round := range rounds {
		busy := map[string]bool{}
		for _, s := range round {
			if seen[s.Cell] || busy[s.Cell.ClientNode] || busy[s.Cell.ServerNode] || s.Cell.OfAnyPair() != round[0].Cell.OfAnyPair() {
				t.Errorf("block %d: %s to %s is in a round that it cannot be in, or twice", block, s.Cell.ClientNode, s.Cell.ServerNode)
			}
			seen[s.Cell], busy[s.Cell.ClientNode], busy[s.Cell.ServerNode] = true, true, true
		}
	}
	if len(seen) != len(p.Cells) {
		t.Errorf("block %d has %d of %d cells", block, len(seen), len(p.Cells))
	}
	return len(rounds)
}

func TestBlocksOfPairs(t *testing.T) {
	for n, want := range map[int]int{2: 2, 4: 6, 5: 10, 20: 38} { // 2(n-1), odd: 2n
		p := meshOf(campaign.EveryPair(named(n)))
		if len(p.Cells) != 2*n*(n-1) {
			t.Fatalf("%d cells", len(p.Cells))
		}
		for block := range 3 {
			if got := checkRounds(t, p, block+1); got != 2*want {
				t.Errorf("%d nodes: %d rounds for two networks, want %d", n, got, 2*want)
			}
		}
	}
}

// TestPairsAcrossZones: the 200 ordered pairs of twice ten nodes take 20 rounds.
func TestPairsAcrossZones(t *testing.T) {
	var pairs [][2]string
	for _, p := range campaign.EveryPair(named(20)) {
		if (p[0] < "n10") != (p[1] < "n10") {
			pairs = append(pairs, p)
		}
	}
	p := meshOf(pairs)
	if len(pairs) != 200 || checkRounds(t, p, 1) != 2*20 {
		t.Errorf("%d pairs in %d rounds of two networks", len(pairs), checkRounds(t, p, 1))
	}
	if turns, rounds := p.Turns(); turns != 40 || rounds != 40 {
		t.Errorf("%d turns, %d rounds", turns, rounds)
	}
}

// A pair that needs no more samples is measured as long as another pair of its round is; the
// order is that of seed and block, and the next block combines others.
func TestRoundsStayWhole(t *testing.T) {
	p := meshOf(campaign.EveryPair(named(4)))
	if !slices.Equal(p.Block(7, nil), p.Block(7, nil)) {
		t.Error("a block is not the same twice")
	}
	one := p.Block(1, func(i int) bool {
		return p.Cells[i].Network == "bridge" && p.Cells[i].ClientNode == "n00" && p.Cells[i].ServerNode == "n01"
	})
	if rounds := Together(one); len(rounds) != 2 || len(rounds[0]) != 2 || len(rounds[1]) != 2 {
		t.Errorf("rounds of one active pair and its baseline: %v", rounds)
	}
	beside := func(block int) string {
		for _, round := range Together(p.Block(block, nil)) {
			for i, s := range round {
				if s.Cell.Network == "bridge" && s.Cell.ClientNode == "n00" && s.Cell.ServerNode == "n01" {
					return round[1-i].Cell.ClientNode
				}
			}
		}
		return "nobody"
	}
	met := map[string]bool{}
	for block := range 20 {
		met[beside(block+1)] = true
	}
	if len(met) != 2 || met["nobody"] {
		t.Errorf("n00 to n01 was measured at the same time as those from %v", met)
	}
}
