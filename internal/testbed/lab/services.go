package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/wire"
)

// checkRules says why a cell's services or policies cannot be on the network.
func (p *planner) checkRules(n network.Network, c result.Cell) error {
	if c.Policies > 0 && !n.Policy {
		return fmt.Errorf("%s enforces no policy", c.Network)
	}
	if !c.ToService() {
		if c.Workload == result.ServiceUpdateName {
			return fmt.Errorf("%s needs a path to a service, and this one has none", c.Workload)
		}
		return nil
	}
	proxy, err := catalog.FindServiceProxy(c.ServiceProxy)
	if err != nil {
		return err
	}
	if c.Services < 1 {
		return errors.New("a path to a service needs at least one")
	}
	needs := proxy.Needs
	if why := refusedBy(proxy, n, c); why != "" {
		return fmt.Errorf("%s cannot have services by %s: %s", c.Network, proxy.Name, why)
	}
	switch {
	case n.HostNetwork:
		return fmt.Errorf("%s has no services: its programs are in their nodes' own network, without Kubernetes", c.Network)
	case n.Published != nil:
		return fmt.Errorf("%s has no services: %s", c.Network, n.NoServices) // not even those at sockets
	case c.Workload == result.ServiceUpdateName && c.Path != result.PathPodToClusterIP:
		return fmt.Errorf("%s changes the service of a path to a cluster-ip, on the node of the client", c.Workload)
	case proxy.Family != "" && !strings.HasPrefix(n.Name, proxy.Family):
		return fmt.Errorf("%s cannot have services by %s: they are of the networks %s… alone", c.Network, proxy.Name, proxy.Family)
	case proxy.AtSockets != nil || proxy.Requests != nil || proxy.Family != "":
	case n.NoServices != "":
		return fmt.Errorf("%s cannot have services by %s: %s", c.Network, proxy.Name, n.NoServices)
	default:
		// A reply between two pods on one bridge passes the node's rules by this
		// alone.
		needs = append(append(needs[:len(needs):len(needs)], n.Wants...), n.Needs...)
	}
	for _, f := range needs {
		if err := p.probe(f); err != nil {
			return err
		}
	}
	return nil
}

// refusedBy says why a proxy cannot have the services of a cell; "" where it can.
func refusedBy(proxy network.ServiceProxy, n network.Network, c result.Cell) string {
	if proxy.Passed != nil {
		switch l, err := wire.Find(c.Link); {
		case c.Encryption != "":
			return "its program is at the device where packets from other nodes are still encrypted"
		case err == nil && l.Wires > 1:
			return "the node's device is several wires, aggregated, and its program is for one"
		}
	}
	if proxy.Refuses == nil {
		return ""
	}
	return proxy.Refuses(n, c)
}

// measuredPort is the port of the service that is measured, of its endpoint and
// of the node: one number, so that a server's answer names the one it was asked
// at. There is one service for both placements, whose ports lead to one pod
// each, and after each port the next, on which netperf has its data.
func measuredPort(placement string) uint16 {
	if placement == result.IntraHost {
		return 30090
	}
	return 30080
}

// serviceAddress is that of service i, from 0.
func serviceAddress(i int) netip.Addr {
	a := network.ServiceRange().Addr().As4()
	i += 10 // the first are Kubernetes' own
	return netip.AddrFrom4([4]byte{a[0], a[1] + byte(i>>16), byte(i >> 8), byte(i)})
}

// serviceTarget is where the client of a cell sends to.
func (c *cluster) serviceTarget(cell result.Cell, server site) netip.Addr {
	if cell.Path == result.PathPodToNodePort {
		return c.nodes[server.node-1].Address.Addr()
	}
	return serviceAddress(0)
}

// services are all that the cluster has: the one that is measured amid the
// others. kube-proxy lists services in the order of a map of Go's, so any may
// be anywhere; amid is what is to be expected.
func (c *cluster) services() []network.Service {
	var all []network.Service
	for i := 1; i < c.spec.Services; i++ {
		if i == 1+(c.spec.Services-1)/2 {
			all = append(all, c.measured()...)
		}
		all = append(all, c.idle(i))
	}
	if c.spec.Services == 1 {
		all = c.measured()
	}
	return all
}

// measured is the service that is measured.
func (c *cluster) measured() []network.Service {
	var ports []network.Service
	for _, placement := range []string{result.InterHost, result.IntraHost} {
		_, to, err := sites(result.Cell{Path: result.PathPodToPod, Placement: placement}, c.network.HostNetwork)
		if err != nil || !c.has(to) {
			continue // it is not measured
		}
		for port := measuredPort(placement); port <= measuredPort(placement)+1; port++ {
			for _, protocol := range []string{"tcp", "udp"} {
				ports = append(ports, network.Service{
					Name: "default/measured", PortName: fmt.Sprintf("%s-%d", protocol, port), Protocol: protocol,
					Address: netip.AddrPortFrom(serviceAddress(0), port), NodePort: port,
					Endpoints: []netip.AddrPort{netip.AddrPortFrom(c.address(to), port)},
				})
			}
		}
	}
	return ports
}

// idle is service i, which nobody uses: two endpoints, one on each of two nodes,
// at addresses that no pod has.
func (c *cluster) idle(i int) network.Service {
	s := network.Service{
		Name: fmt.Sprintf("default/idle-%d", i), Protocol: "tcp", Address: netip.AddrPortFrom(serviceAddress(i), 80),
	}
	for _, n := range c.nodes[:min(2, len(c.nodes))] {
		a := n.PodCIDR.Addr().As4()
		a[3] = 254
		s.Endpoints = append(s.Endpoints, netip.AddrPortFrom(netip.AddrFrom4(a), uint16(1024+i)))
	}
	return s
}

// startProxy does on each node what the service proxy does before it knows of
// any service.
func (c *cluster) startProxy(ctx context.Context) error {
	if c.proxy.Start == nil {
		return nil
	}
	for _, n := range c.nodes {
		if err := c.proxy.Start(ctx, n); err != nil {
			return fmt.Errorf("network %s: services by %s: %w", c.spec.Network, c.proxy.Name, err)
		}
	}
	return nil
}

// syncProxy programs services on all nodes at once.
func (c *cluster) syncProxy(ctx context.Context, services []network.Service) error {
	if len(services) == 0 {
		return nil
	}
	c.programmedNow = services
	c.programmed = make([]time.Duration, len(c.nodes))
	timed := func(node int, began time.Time) { c.programmed[node] = time.Since(began) }
	if c.proxy.AtSockets != nil {
		for i, dir := range c.cgroups {
			began := time.Now()
			held, err := c.proxy.AtSockets(dir, c.nodes[i], c.nodes, services)
			if err != nil {
				return fmt.Errorf("network %s: services by %s: cgroup %s: %w", c.spec.Network, c.proxy.Name, dir.Name(), err)
			}
			c.held, c.atSockets = append(c.held, held), append(c.atSockets, held)
			timed(i, began)
		}
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	for i, n := range c.nodes {
		g.Go(func() error {
			defer timed(i, time.Now())
			return c.proxy.Sync(ctx, n, services)
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("network %s: services by %s: %w", c.spec.Network, c.proxy.Name, err)
	}
	return nil
}
