package lab

import (
	"context"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// watchAttached verifies before and after a sample that the pods at its ends have the devices
// that their network claims, with its programs at them.
func (c *cluster) watchAttached(cell result.Cell) func(context.Context) error {
	pods, err := c.podsOf(cell)
	verify := func() error {
		for _, n := range c.nodes {
			if err := c.network.Attached(n, pods); err != nil {
				return err
			}
		}
		return nil
	}
	if err == nil {
		err = verify()
	}
	return func(context.Context) error {
		if err != nil {
			return err
		}
		return verify()
	}
}

// podsOf are the pods at the ends of a cell; of one with many ends all that the cluster has.
func (c *cluster) podsOf(cell result.Cell) ([]network.Pod, error) {
	if cell.HasManyEnds() {
		return c.knownPods(nil), nil
	}
	from, to, err := sites(cell, c.network.HostNetwork)
	if err != nil {
		return nil, err
	}
	var pods []network.Pod
	for _, s := range []site{from, to} {
		if s.pod == 0 || !c.has(s) { // Ends says why
			continue
		}
		p := c.pods[s.node-1][s.pod-1]
		pods = append(pods, network.Pod{ID: p.ns.Name, Node: s.node, Address: p.address})
	}
	return pods, nil
}
