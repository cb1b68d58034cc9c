package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

var _ testbed.Gatherer = (*Testbed)(nil)

// rankRole begins the roles of ranks' pods: "rank1" is the first one of a node.
const rankRole = "rank"

// rankEnds says where the ranks of a cell are: each in a pod of its own. They fill one
// node after the other, and a path inside one node has all on the first.
func rankEnds(cell result.Cell) ([]end, error) {
	perNode := max(1, cell.RanksPerNode)
	switch {
	case cell.Path != result.PathPodToPod && cell.Path != result.PathHostToHost:
		return nil, fmt.Errorf("ranks are all pods or all nodes, so there is no path %s between them", cell.Path)
	case cell.IsPair():
		return nil, errors.New("ranks are on several nodes, and pairs of nodes are measured: leave pairs out")
	case cell.Policies > 0:
		return nil, errors.New("policies select one server's pod on a cluster, and ranks have none: measure it in the lab")
	case cell.Placement == result.IntraHost && cell.RanksPerNode > 1:
		return nil, fmt.Errorf("ranks_per_node is for placement %s: a path inside one node has all ranks there", result.InterHost)
	case cell.Placement == result.IntraHost:
		perNode = cell.Ranks
	case perNode >= cell.Ranks:
		return nil, fmt.Errorf("%d ranks per node put all %d ranks on one node: choose placement %s for that", perNode, cell.Ranks, result.IntraHost)
	}
	ends := make([]end, cell.Ranks)
	for rank := range ends {
		ends[rank] = end{role: fmt.Sprintf("%s%d", rankRole, 1+rank%perNode), node: 1 + rank/perNode, host: cell.Path == result.PathHostToHost}
	}
	return ends, nil
}

// needNodes is how many nodes the cells of a campaign need: two, or more for ranks.
func needNodes(cells []result.Cell) int {
	most := 2
	for _, cell := range cells {
		if !cell.HasManyEnds() {
			continue
		}
		if ends, err := rankEnds(cell); err == nil {
			most = max(most, ends[len(ends)-1].node)
		}
	}
	return most
}

// wantRanks notes the ends of a cell's ranks, if the nodes are enough for them.
func (c *cluster) wantRanks(cell result.Cell) {
	ends, err := rankEnds(cell)
	if err != nil || ends[len(ends)-1].node > len(c.nodes) {
		return // supportRanks says so
	}
	for _, s := range ends {
		c.wantEnd(s)
	}
}

// supportRanks says why a cell with ranks cannot be measured here.
func (c *cluster) supportRanks(cell result.Cell) error {
	ends, err := rankEnds(cell)
	if err != nil {
		return err
	}
	switch last := ends[len(ends)-1]; {
	case last.node > len(c.nodes):
		return fmt.Errorf("%d ranks, %d on a node, need %d nodes, and the cluster has %d that are measured; others: %s",
			cell.Ranks, max(1, cell.RanksPerNode), last.node, len(c.nodes), cmp.Or(c.unfit, "none"))
	case last.host && c.noHost != "":
		return fmt.Errorf("no pods in their node's network: %s", c.noHost)
	}
	for _, s := range ends {
		st := c.pods[s]
		if st == nil {
			return fmt.Errorf("%s is not running", s.name())
		}
		if _, err := st.address(familyOf(cell)); err != nil {
			return err
		}
	}
	return nil
}

// Ranks gives the places of a cell's ranks. A pod that is gone is created again.
func (b *Testbed) Ranks(ctx context.Context, cell result.Cell) ([]testbed.Rank, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, err := b.find(cell.Cluster)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, endsWithin, fmt.Errorf("its ranks were not ready within %v", endsWithin))
	defer cancel()
	if err := b.focus(ctx, c.name); err != nil {
		return nil, clusterError(c.name, err)
	}
	ranks, err := c.ranks(ctx, cell)
	return ranks, clusterError(c.name, err)
}

// ranks are those of a cell, with living agents. Where one pod takes the others with it,
// as when its namespace was deleted, all are looked after once more.
func (c *cluster) ranks(ctx context.Context, cell result.Cell) ([]testbed.Rank, error) {
	ends, err := rankEnds(cell)
	if err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		ranks := make([]testbed.Rank, len(ends))
		alive := true
		for i, s := range ends {
			st, err := c.living(ctx, s)
			if err != nil {
				return nil, fmt.Errorf("rank %d: %w", i, err)
			}
			at, err := st.address(familyOf(cell))
			if err != nil {
				return nil, fmt.Errorf("rank %d: %w", i, err)
			}
			ranks[i] = testbed.Rank{Place: c.place(st, familyOf(cell)), Address: at}
		}
		for _, rank := range ranks {
			alive = alive && rank.Agent.Alive()
		}
		if alive || again {
			return ranks, nil
		}
	}
}
