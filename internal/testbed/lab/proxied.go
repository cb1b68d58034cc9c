package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

var _ testbed.PathVerifier = (*Lab)(nil)

// WatchPath verifies on networks with proxies that TCP between pods passes those of both ends,
// on networks with a flowtable that it takes the packets of long connections, and with a service
// proxy in the driver or in user space that it takes those to a NodePort. All count: where
// several cells of a cluster are measured in turns, what all of them sent. On networks that
// claim a kind of device it verifies those of the pods.
func (l *Lab) WatchPath(ctx context.Context, cell result.Cell) func(context.Context) error {
	c, ok := l.clusters[keyOf(cell)]
	if !ok {
		return func(context.Context) error { return nil }
	}
	from, to, err := sites(cell, c.network.HostNetwork)
	if err != nil {
		return func(context.Context) error { return nil }
	}
	var checks []func(context.Context) error
	if c.network.Attached != nil {
		checks = append(checks, c.watchAttached(cell))
	}
	if byDriver(c.proxy, cell) {
		checks = append(checks, c.watchDriver(to))
	}
	if c.proxy.Requests != nil && cell.Path == result.PathPodToNodePort {
		checks = append(checks, c.watchRequests(ctx, to))
	}
	if from.pod != 0 && to.pod != 0 && !cell.HasManyEnds() {
		switch {
		case c.network.Bypassed != nil:
			checks = append(checks, c.watchBypassed(ctx, cell, from, to))
		case c.network.Proxied != nil && tcpOnly(cell):
			checks = append(checks, c.watchProxied(ctx, from, to))
		}
	}
	return func(ctx context.Context) error {
		var errs []error
		for _, check := range checks {
			errs = append(errs, check(ctx))
		}
		return errors.Join(errs...)
	}
}

// watchRequests verifies that the program which carries NodePorts on the server's node took
// requests of the sample.
func (c *cluster) watchRequests(ctx context.Context, to site) func(context.Context) error {
	node := c.nodes[to.node-1]
	before, err := c.proxy.Requests(ctx, node)
	return func(ctx context.Context) error {
		after, errAfter := c.proxy.Requests(ctx, node)
		if err := errors.Join(err, errAfter); err != nil {
			return fmt.Errorf("not by %s: %s: %w", c.proxy.Name, node.Name, err)
		}
		if after <= before {
			return fmt.Errorf("not by %s: it took no request of the sample on %s", c.proxy.Name, node.Name)
		}
		return nil
	}
}

// watchProxied counts the connections that the proxies at both ends take.
func (c *cluster) watchProxied(ctx context.Context, from, to site) func(context.Context) error {
	before, err := c.readProxied(ctx, from, to)
	return func(ctx context.Context) error {
		after, errAfter := c.readProxied(ctx, from, to)
		if err := errors.Join(err, errAfter); err != nil {
			return err
		}
		for i, s := range []site{from, to} {
			if after[i] <= before[i] {
				return fmt.Errorf("not proxied: no connection of the sample was led to the proxies on %s", c.nodes[s.node-1].Name)
			}
		}
		return nil
	}
}

// tcpOnly reports whether a cell's traffic is TCP: no proxy takes datagrams.
func tcpOnly(cell result.Cell) bool {
	return cell.Workload != result.PodSetupName && cell.Protocol != "udp" &&
		!strings.HasPrefix(cell.Workload, "udp_") && !strings.HasPrefix(strings.ToLower(cell.Test), "udp")
}

// readProxied are the connections that the proxies at each end have taken.
func (c *cluster) readProxied(ctx context.Context, ends ...site) ([]uint64, error) {
	pods := c.knownPods(nil)
	var got []uint64
	for _, s := range ends {
		n, err := c.network.Proxied(ctx, c.nodes[s.node-1], pods)
		if err != nil {
			return nil, err
		}
		got = append(got, n)
	}
	return got, nil
}
