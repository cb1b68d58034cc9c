package lab

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

var _ testbed.Gatherer = (*Lab)(nil)

// rankSites says where the ranks of a cell are: they fill one node after the other, and a
// path inside one node has all on node 1. Each has a pod of its own; where pods share
// their node they share its addresses.
func rankSites(c result.Cell, hostNetwork bool) ([]site, error) {
	perNode := max(1, c.RanksPerNode)
	onPods := false
	switch c.Path {
	case result.PathPodToPod:
		onPods = !hostNetwork
	case result.PathHostToHost:
	default:
		return nil, fmt.Errorf("ranks are all pods or all nodes, so there is no path %s between them", c.Path)
	}
	switch {
	case c.Placement == result.IntraHost && c.RanksPerNode > 1:
		return nil, fmt.Errorf("ranks_per_node is for placement %s: a path inside one node has all ranks there", result.InterHost)
	case c.Placement == result.IntraHost:
		perNode = c.Ranks
	case c.Placement != result.InterHost:
		return nil, fmt.Errorf("the lab has no placement %q", c.Placement)
	case perNode >= c.Ranks:
		return nil, fmt.Errorf("%d ranks per node put all %d ranks on one node: choose placement %s for that", perNode, c.Ranks, result.IntraHost)
	}
	sites := make([]site, c.Ranks)
	for rank := range sites {
		sites[rank] = site{node: 1 + rank/perNode}
		if onPods {
			sites[rank].pod = 1 + rank%perNode
		}
	}
	return sites, nil
}

// supportRanks says why a cell with ranks cannot be built; its network and link can.
func supportRanks(n network.Network, c result.Cell) ([]site, error) {
	sites, err := rankSites(c, n.HostNetwork)
	if err != nil {
		return nil, err
	}
	if n.Published != nil && c.Path == result.PathPodToPod {
		return nil, fmt.Errorf("%s has pods that are reached by a few published ports, and ranks choose their own", c.Network)
	}
	last := sites[len(sites)-1]
	if last.node > maxNodes {
		return nil, fmt.Errorf("%d nodes for %d ranks: a lab has at most %d", last.node, c.Ranks, maxNodes)
	}
	if n.Nodes > 0 && last.node > n.Nodes {
		return nil, fmt.Errorf("%s has conflists for %d nodes, and %d ranks need %d: name one for each node, or one for all", c.Network, n.Nodes, c.Ranks, last.node)
	}
	return sites, nil
}

// Ranks gives the places of a cell's ranks.
func (l *Lab) Ranks(ctx context.Context, cell result.Cell) ([]testbed.Rank, error) {
	c, ok := l.clusters[keyOf(cell)]
	if !ok || l.held == nil {
		return nil, fmt.Errorf("the lab was not built for network %s, link %s, profile %s, MTU %d%s",
			cell.Network, cell.Link, cell.Profile, cell.MTU, rulesOf(specOf(cell)))
	}
	sites, err := rankSites(cell, c.network.HostNetwork)
	if err != nil {
		return nil, err
	}
	for _, s := range sites {
		if !c.has(s) {
			return nil, fmt.Errorf("the lab was not built for %d ranks on network %s", cell.Ranks, cell.Network)
		}
	}
	if err := l.useProfile(ctx, c); err != nil {
		return nil, err
	}
	if _, err := l.useAlgorithm(c, cell, sites...); err != nil {
		return nil, err
	}
	for _, s := range sites { // the ends of other cells may have had them
		if err := c.moveCarriers(s.node, nil); err != nil {
			return nil, err
		}
	}
	ranks := make([]testbed.Rank, len(sites))
	at := map[site]int{} // ranks so far
	for i, s := range sites {
		place, err := l.place(ctx, c, s, farthest(c, sites, i, cell.Family), rankRole(at[s]))
		at[s]++
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", i, err)
		}
		ranks[i] = testbed.Rank{Place: place, Address: c.addressOf(s, cell.Family)}
	}
	return ranks, nil
}

// farthest is the address of a rank on another node, or of any other: what the MTU of a
// rank's device is asked for.
func farthest(c *cluster, sites []site, rank int, family string) netip.Addr {
	other := sites[(rank+1)%len(sites)]
	for _, s := range sites {
		if s.node != sites[rank].node {
			other = s
			break
		}
	}
	return c.addressOf(other, family)
}

// rankRole is the role of a rank at a site that has some already. The first two use the
// agents of samples with two ends.
func rankRole(before int) string {
	switch before {
	case 0:
		return roleClient
	case 1:
		return roleServer
	}
	return "rank" + strconv.Itoa(before)
}
