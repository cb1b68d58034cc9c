package lab

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
	"github.com/cnibench/cnibench/internal/testbed/lab/wire"
)

// The sizes that addresses have room for.
const (
	maxNodes       = 254 // each node has a /24 of network.Pods
	maxPodsPerNode = 252 // of a /24 without network, gateway, last and broadcast address
	minMTU, maxMTU = 576, 65535
	minMTU6        = 1280
)

// key is what makes cells share a cluster. Services and policies are in it:
// loading thousands of them takes longer than a sample, so they are loaded once.
type key struct {
	network, link, profile string
	mtu                    int
	services               int
	serviceProxy           string
	policies               int
	encryption             string
	ipv6                   bool // tunnels for IPv6 leave pods less, so IPv4 is measured without
}

func keyOf(c result.Cell) key {
	return key{c.Network, c.Link, c.Profile, c.MTU, c.Services, c.ServiceProxy, c.Policies, c.Encryption, c.Family == familyIPv6}
}

func keyOfSpec(s state.Spec) key {
	return key{s.Network, s.Link, s.Profile, s.MTU, s.Services, s.ServiceProxy, s.Policies, s.Encryption, s.IPv6}
}

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
	case result.PathPodToClusterIP, result.PathPodToNodePort: // behind which is a pod
		podFrom, podTo = true, true
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
	// setsAlgorithm is Options.SetsAlgorithm.
	setsAlgorithm func(workload string) bool
}

func (p *planner) find(name string) (network.Network, error) {
	name = result.OneName(name)
	for _, n := range p.networks {
		if n.Name == name {
			return n, nil
		}
	}
	return catalog.Find(name)
}

// specs gives the clusters that the cells need, and for each cell that cannot
// be built here the reason.
func (p *planner) specs(cells []result.Cell) ([]state.Spec, map[result.Cell]string) {
	var specs []state.Spec
	at := map[key]int{}
	unsupported := map[result.Cell]string{}
	for _, c := range cells {
		ends, err := p.ends(c)
		if err != nil {
			unsupported[c] = err.Error()
			continue
		}
		k := keyOf(c)
		i, ok := at[k]
		if !ok {
			i = len(specs)
			at[k] = i
			spec := specOf(c)
			spec.Pods = []int{0, 0}
			specs = append(specs, spec)
		}
		if a := p.algorithmNeeded(c); a != "" && !slices.Contains(specs[i].Algorithms, a) {
			specs[i].Algorithms = append(specs[i].Algorithms, a)
		}
		for _, s := range ends {
			for len(specs[i].Pods) < s.node {
				specs[i].Pods = append(specs[i].Pods, 0)
			}
			specs[i].Pods[s.node-1] = max(specs[i].Pods[s.node-1], s.pod)
		}
	}
	return specs, unsupported
}

// ends are where the two ends of a cell are, or its ranks; or why the lab cannot build it.
func (p *planner) ends(c result.Cell) ([]site, error) {
	if !c.HasManyEnds() {
		client, server, err := p.support(c)
		return []site{client, server}, err
	}
	n, err := p.find(c.Network)
	if err != nil {
		return nil, err
	}
	sites, err := supportRanks(n, c)
	if err != nil {
		return nil, err
	}
	_, _, err = p.support(c)
	return sites, err
}

// support says where a cell's ends are, or why the lab cannot build it.
func (p *planner) support(c result.Cell) (client, server site, err error) {
	n, err := p.find(c.Network)
	if err != nil {
		return client, server, err
	}
	if err := p.checkFamily(n, c); err != nil {
		return client, server, err
	}
	if err := p.check(n, c.Link, c.Profile, c.MTU); err != nil {
		return client, server, err
	}
	if err := p.checkEncryption(n, c); err != nil {
		return client, server, err
	}
	if c.Workload == result.PodSetupName {
		switch {
		case n.HostNetwork:
			return client, server, fmt.Errorf("%s has no pods to add: they share their node's namespace", c.Network)
		case n.Published != nil:
			return client, server, fmt.Errorf("%s has pods that are reached by published ports, at which their node answers before they do", c.Network)
		case c.Family == "ipv6":
			return client, server, fmt.Errorf("%s asks its pods by IPv4", result.PodSetupName)
		}
	}
	if err := p.checkRules(n, c); err != nil {
		return client, server, err
	}
	if err := p.checkFragments(n, c); err != nil {
		return client, server, err
	}
	client, server, err = sites(c, n.HostNetwork)
	if err != nil {
		return client, server, err
	}
	l, err := wire.Find(c.Link)
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

// familyIPv6 is IPv6 as Cell.Family has it; "" is IPv4.
const familyIPv6 = "ipv6"

// checkFamily says why a network cannot carry a cell's address family.
func (p *planner) checkFamily(n network.Network, c result.Cell) error {
	switch {
	case c.Family != familyIPv6:
		return nil
	case !n.IPv6:
		return fmt.Errorf("%s has no IPv6", c.Network)
	case c.ToService():
		return fmt.Errorf("services by %s have no IPv6", c.ServiceProxy)
	case c.MTU-max(n.Overhead, n.Overhead6) < minMTU6:
		return fmt.Errorf("%s has no IPv6 on an MTU of %d: %d is needed (RFC 8200)", c.Network, c.MTU, minMTU6+max(n.Overhead, n.Overhead6))
	}
	return p.probe(netns.IPv6())
}

// check says why a cluster cannot be built here.
func (p *planner) check(n network.Network, link, profile string, mtu int) error {
	l, err := wire.Find(link)
	if err != nil {
		return err
	}
	if err := p.checkProfile(profile); err != nil {
		return err
	}
	if mtu < minMTU+n.Overhead || mtu > maxMTU {
		return fmt.Errorf("%s cannot be built on an MTU of %d (%d to %d can)", n.Name, mtu, minMTU+n.Overhead, maxMTU)
	}
	for _, f := range append(l.Needs(), n.Needs...) {
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
func checkSize(s state.Spec) error {
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

// specOf is the cluster of a cell, without pods.
func specOf(c result.Cell) state.Spec {
	return state.Spec{
		Network: c.Network, Link: c.Link, Profile: c.Profile, MTU: c.MTU,
		Services: c.Services, ServiceProxy: c.ServiceProxy, Policies: c.Policies, Encryption: c.Encryption, IPv6: c.Family == familyIPv6,
	}
}

// rulesOf says what nodes have more than their network needs, after a comma.
func rulesOf(s state.Spec) string {
	if s.IPv6 {
		s.IPv6 = false
		return ", IPv6" + rulesOf(s)
	}
	if r := (result.Cell{Services: s.Services, ServiceProxy: s.ServiceProxy, Policies: s.Policies, Encryption: s.Encryption}).Rules(); r != "" {
		return ", " + r
	}
	return ""
}

// nodeAddress6 and podCIDR6 are the same for IPv6, of addresses that are local
// to a site (RFC 4193).
func nodeAddress6(i int) netip.Prefix {
	a := netip.MustParseAddr("fd00:198:18::").As16()
	a[14], a[15] = byte(i>>8), byte(i)
	return netip.PrefixFrom(netip.AddrFrom16(a), 64)
}

func podCIDR6(i int) netip.Prefix {
	a := network.Pods6().Addr().As16()
	a[6], a[7] = byte(i>>8), byte(i)
	return netip.PrefixFrom(netip.AddrFrom16(a), 64)
}
