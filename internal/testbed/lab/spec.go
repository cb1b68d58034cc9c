package lab

import (
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// Spec is one cluster of a lab: nodes on a switch of their own, one network on
// them.
type Spec struct {
	Network string `json:"network"`
	Link    string `json:"link"`
	Profile string `json:"profile"`
	MTU     int    `json:"mtu"` // of the link, bytes
	// Pods is the number of pods on each node; its length that of nodes.
	Pods []int `json:"pods"`
}

// The sizes that addresses have room for.
const (
	maxNodes       = 254 // each node has a /24 of network.Pods
	maxPodsPerNode = 252 // of a /24 without network, gateway, last and broadcast address
	minMTU, maxMTU = 576, 65535
)

// key is what makes cells share a cluster.
type key struct {
	network, link, profile string
	mtu                    int
}

func keyOf(c result.Cell) key { return key{c.Network, c.Link, c.Profile, c.MTU} }

func (s Spec) key() key { return key{s.Network, s.Link, s.Profile, s.MTU} }

// sites says where the two ends of a cell are: from node 1 to node 2, or both
// on node 1.
func sites(c result.Cell, hostNetwork bool) (client, server site, err error) {
	podFrom, podTo := false, false
	switch c.Path {
	case result.PathPodToPod:
		podFrom, podTo = true, true
	case result.PathHostToPod:
		podTo = true
	case result.PathPodToHost:
		podFrom = true
	case result.PathHostToHost:
	default:
		return client, server, fmt.Errorf("the lab has no path %q", c.Path)
	}
	client, server = site{node: 1}, site{node: 2}
	switch c.Placement {
	case result.InterHost:
	case result.IntraHost:
		server.node = 1
	default:
		return client, server, fmt.Errorf("the lab has no placement %q", c.Placement)
	}
	if hostNetwork { // a pod is its node
		return client, server, nil
	}
	if podFrom {
		client.pod = 1
	}
	if podTo {
		server.pod = 1
		if server.node == client.node && podFrom {
			server.pod = 2
		}
	}
	return client, server, nil
}

// site is a node, or one of its pods; both count from 1, pod 0 is the node.
type site struct{ node, pod int }

// planner turns cells into specs. It asks the kernel for each feature once.
type planner struct {
	networks []network.Network // the user's own, before the list
	features map[string]error
	machine  bool // it may be changed
}

func (p *planner) find(name string) (network.Network, error) {
	name = result.OneName(name)
	for _, n := range p.networks {
		if n.Name == name {
			return n, nil
		}
	}
	return network.Find(name)
}

// specs gives the clusters that the cells need, and for each cell that cannot
// be built here the reason.
func (p *planner) specs(cells []result.Cell) ([]Spec, map[result.Cell]string) {
	var specs []Spec
	at := map[key]int{}
	unsupported := map[result.Cell]string{}
	for _, c := range cells {
		client, server, err := p.support(c)
		if err != nil {
			unsupported[c] = err.Error()
			continue
		}
		k := keyOf(c)
		i, ok := at[k]
		if !ok {
			i = len(specs)
			at[k] = i
			specs = append(specs, Spec{Network: c.Network, Link: c.Link, Profile: c.Profile, MTU: c.MTU, Pods: []int{0, 0}})
		}
		for _, s := range []site{client, server} {
			specs[i].Pods[s.node-1] = max(specs[i].Pods[s.node-1], s.pod)
		}
	}
	return specs, unsupported
}

// support says where a cell's ends are, or why the lab cannot build it.
func (p *planner) support(c result.Cell) (client, server site, err error) {
	n, err := p.find(c.Network)
	if err != nil {
		return client, server, err
	}
	if c.Family != "" && c.Family != "ipv4" {
		return client, server, fmt.Errorf("the lab has no %s: its addresses are IPv4", c.Family)
	}
	if err := p.check(n, c.Link, c.Profile, c.MTU); err != nil {
		return client, server, err
	}
	client, server, err = sites(c, n.HostNetwork)
	if err != nil {
		return client, server, err
	}
	l, err := findLink(c.Link)
	if err != nil {
		return client, server, err
	}
	if client.node != server.node && l.NoInterHost != "" {
		return client, server, fmt.Errorf("the link %s has no path between nodes: %s", c.Link, l.NoInterHost)
	}
	if client.node != server.node && n.NoInterHost != "" {
		return client, server, fmt.Errorf("%s has no path between nodes: %s", c.Network, n.NoInterHost)
	}
	if (client.pod == 0) != (server.pod == 0) && n.NoHostPaths != "" {
		return client, server, fmt.Errorf("%s has no path %s: %s", c.Network, c.Path, n.NoHostPaths)
	}
	return client, server, nil
}

// check says why a cluster cannot be built here.
func (p *planner) check(n network.Network, link, profile string, mtu int) error {
	l, err := findLink(link)
	if err != nil {
		return err
	}
	if err := p.checkProfile(profile); err != nil {
		return err
	}
	if mtu < minMTU+n.Overhead || mtu > maxMTU {
		return fmt.Errorf("%s cannot be built on an MTU of %d (%d to %d can)", n.Name, mtu, minMTU+n.Overhead, maxMTU)
	}
	for _, f := range append(l.needs(), n.Needs...) {
		if err := p.probe(f); err != nil {
			return err
		}
	}
	return nil
}

func (p *planner) probe(f netns.Feature) error {
	err, asked := p.features[f.Name]
	if !asked {
		err = f.Probe()
		p.features[f.Name] = err
	}
	return err
}

// checkSize refuses what addresses have no room for.
func (s Spec) checkSize() error {
	if len(s.Pods) < 1 || len(s.Pods) > maxNodes {
		return fmt.Errorf("a lab of %d nodes: 1 to %d can be", len(s.Pods), maxNodes)
	}
	for _, pods := range s.Pods {
		if pods < 0 || pods > maxPodsPerNode {
			return fmt.Errorf("%d pods on a node: 0 to %d can be", pods, maxPodsPerNode)
		}
	}
	return nil
}

// nodeAddress is that of node i (from 1), of the range for tests of networks
// (RFC 2544).
func nodeAddress(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), 16)
}

// podCIDR is the range of node i's pods (from 1).
func podCIDR(i int) netip.Prefix {
	a := network.Pods().Addr().As4()
	a[2] = byte(i)
	return netip.PrefixFrom(netip.AddrFrom4(a), 24)
}
