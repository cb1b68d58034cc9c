package lab

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/testbed"
)

func loopback() netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) }

// loopbackOf is that of a family.
func loopbackOf(family string) netip.Addr {
	if family == familyIPv6 {
		return netip.IPv6Loopback()
	}
	return loopback()
}

func (c *cluster) has(s site) bool {
	return s.node <= len(c.nodes) && s.pod <= len(c.pods[s.node-1])
}

func (c *cluster) ns(s site) netns.NS {
	if s.pod == 0 {
		return c.nodes[s.node-1].NS
	}
	return c.pods[s.node-1][s.pod-1].ns
}

func (c *cluster) address(s site) netip.Addr {
	if s.pod == 0 {
		return c.nodes[s.node-1].Address.Addr()
	}
	return c.pods[s.node-1][s.pod-1].address
}

// addressOf is that of a family.
func (c *cluster) addressOf(s site, family string) netip.Addr {
	switch {
	case family != familyIPv6:
		return c.address(s)
	case s.pod == 0:
		return c.nodes[s.node-1].Address6.Addr()
	}
	return c.pods[s.node-1][s.pod-1].address6
}

// names says what a site and its node are called: "flannel/vxlan node1 pod1".
// If a network is built more than once, link, profile, MTU, services and
// policies distinguish them.
func (l *Lab) names(c *cluster, s site) (place, node string) {
	node = c.spec.Network
	for _, other := range l.ordered {
		if other != c && other.spec.Network == c.spec.Network {
			node = fmt.Sprintf("%s (%s, MTU %d%s)", c.spec.Network, c.spec.Link, c.spec.MTU, rulesOf(c.spec))
			if c.spec.Profile != DefaultProfile {
				node = fmt.Sprintf("%s (%s, %s, MTU %d%s)", c.spec.Network, c.spec.Link, c.spec.Profile, c.spec.MTU, rulesOf(c.spec))
			}
			break
		}
	}
	node += " " + c.nodes[s.node-1].Name
	if s.pod == 0 {
		return node, node
	}
	return fmt.Sprintf("%s pod%d", node, s.pod), node
}

// place gives a site with a living agent. Both ends of a sample have agents of
// their own even at one site, so that they share no process.
func (l *Lab) place(ctx context.Context, c *cluster, s site, peer netip.Addr, role string) (testbed.Place, error) {
	ns := c.ns(s)
	name, node := l.names(c, s)
	mtu, err := netns.MTUTo(ns, peer)
	if err != nil {
		return testbed.Place{}, fmt.Errorf("%s: %w", name, err)
	}
	a, err := l.agent(ctx, c, s, role)
	if err != nil {
		return testbed.Place{}, fmt.Errorf("%s: agent: %w", name, err)
	}
	return l.withSettings(testbed.Place{Name: name, Node: node, MTU: mtu, Agent: a}, c, s), nil
}

// greetWithin is how long a new agent may take to greet: a hundred may start at once.
const greetWithin = 20 * time.Second

// agent starts an agent at a site, as the network's Wrap makes of it, or gives
// the one that lives.
func (l *Lab) agent(ctx context.Context, c *cluster, s site, role string) (*agent.Client, error) {
	ns := c.ns(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	id := ns.Name + " " + role
	if a, ok := l.agents[id]; ok {
		if a.Alive() {
			return a, nil
		}
		delete(l.agents, id)
		_ = a.Close() // it is dead; why it died was the answer to its last call
	}
	argv, err := c.argv(s, l.options.Agent)
	if err != nil {
		return nil, err
	}
	within := cmp.Or(l.options.Greeting, greetWithin)
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no greeting within %v: see whether it is stopped: ps -eo pid,stat,args", within))
	defer cancel()
	a, err := agent.StartCmd(ctx, l.options.Runner, exec.Cmd{
		Argv: argv, NetNS: ns.Path, Cgroup: c.cgroup(s.node),
		Env: []string{agent.Carriers(c.carriersOf(s, role))},
	})
	if err != nil {
		return nil, err
	}
	l.agents[id] = a
	return a, nil
}

// argv is that of a program at a site, as the network starts programs there.
func (c *cluster) argv(s site, program []string) ([]string, error) {
	if c.network.Wrap == nil {
		return program, nil
	}
	wrap, err := c.network.Wrap(c.nodes[s.node-1])
	return slices.Concat(wrap, program), err
}
