package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/traffic"
)

var _ testbed.ServiceUpdater = (*Lab)(nil)

// UpdateService has the measured TCP port of a cell's service lead to a port of the server's
// pod, on the node of the client alone: there connections to the service get their endpoint.
func (l *Lab) UpdateService(ctx context.Context, cell result.Cell, port uint16) (result.ServiceChange, error) {
	var change result.ServiceChange
	c, ok := l.clusters[keyOf(cell)]
	if !ok || l.held == nil {
		return change, fmt.Errorf("the lab was not built for network %s", cell.Network)
	}
	from, _, err := sites(cell, c.network.HostNetwork)
	if err != nil {
		return change, err
	}
	at := netip.AddrPortFrom(serviceAddress(0), measuredPort(cell.Placement))
	i := slices.IndexFunc(c.programmedNow, func(s network.Service) bool { return s.Protocol == "tcp" && s.Address == at })
	if i < 0 {
		return change, fmt.Errorf("the nodes of %s have no service %s", cell.Network, at)
	}
	// Other nodes keep what they have: nothing goes to the service from there.
	changed := c.programmedNow[i]
	changed.Endpoints = []netip.AddrPort{netip.AddrPortFrom(changed.Endpoints[0].Addr(), port)}
	c.programmedNow[i] = changed
	change.Began = traffic.Now()
	if c.proxy.AtSockets != nil {
		err = c.atSockets[from.node-1].UpdateService(changed)
	} else {
		err = c.proxy.Update(ctx, c.nodes[from.node-1], c.programmedNow, i)
	}
	change.Took = time.Duration(traffic.Now() - change.Began)
	if err != nil {
		return change, fmt.Errorf("network %s: services by %s: %w", c.spec.Network, c.proxy.Name, err)
	}
	return change, nil
}
