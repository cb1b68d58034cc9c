package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// mostSlow is the share of a pod's packets that may miss its node's flowtable. The first
// packets of each connection do, and so do all that cells with short connections have sent in
// turns with this one.
const mostSlow = 0.9

// watchBypassed verifies that the packets of long connections between nodes are taken by the
// flowtables of both.
func (c *cluster) watchBypassed(ctx context.Context, cell result.Cell, from, to site) func(context.Context) error {
	if cell.Placement != result.InterHost || !longConnections(cell) {
		return func(context.Context) error { return nil }
	}
	type reading struct{ slow, packets uint64 }
	read := func(ctx context.Context, s site) (r reading, err error) {
		if r.slow, err = c.network.Bypassed(ctx, c.nodes[s.node-1]); err != nil {
			return r, err
		}
		r.packets, err = netns.Packets(c.ns(s), device)
		return r, err
	}
	ends := []site{from, to}
	before, errs := make([]reading, len(ends)), make([]error, len(ends))
	for i, s := range ends {
		before[i], errs[i] = read(ctx, s)
	}
	return func(ctx context.Context) error {
		for i, s := range ends {
			after, err := read(ctx, s)
			if err := errors.Join(errs[i], err); err != nil {
				return err
			}
			slow, packets := after.slow-before[i].slow, after.packets-before[i].packets
			if packets == 0 || float64(slow) > mostSlow*float64(packets) {
				return fmt.Errorf("not offloaded: the flowtable on %s left %d of the pod's %d packets to its routes and rules", c.nodes[s.node-1].Name, slow, packets)
			}
		}
		return nil
	}
}

// longConnections reports whether most of a cell's packets are of connections that are known.
func longConnections(cell result.Cell) bool {
	switch cell.Workload {
	case traffic.TCPStream, traffic.UDPStream, traffic.TCPRR, traffic.UDPRR:
		return true
	}
	return false
}
