package lab

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/network/encryption"
	"github.com/cnibench/cnibench/internal/network/inspect"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
	"github.com/cnibench/cnibench/internal/testbed/lab/wire"
)

// device is the name of the device of nodes on the link and of pods in their
// network.
const device = "eth0"

// attachTimeout bounds one ADD or DEL.
const attachTimeout = time.Minute

// cluster is a fabric, its nodes and their pods.
type cluster struct {
	index      int // from 1, in the lab
	spec       state.Spec
	network    network.Network
	proxy      network.ServiceProxy // of nothing where there are no services
	link       wire.Link
	encryption encryption.Method // of nothing where packets between nodes are plain
	nodes      []network.Node
	conflists  []*cni.Conflist // of each node; none where pods share their node
	pods       [][]pod         // of each node
	carriers   [][]int         // of each node, the processes that carry its packets in user space
	cgroups    []*os.File      // of each node, where the network wants them
	held       []io.Closer     // what the network has there
	// programmedNow are the services that nodes have, and atSockets what carries them out in
	// the cgroup of each node, where the proxy does it there.
	programmedNow []network.Service
	atSockets     []network.ServiceUpdater
	// algorithms are the congestion controls that nodes' cgroups have now, by node.
	algorithms map[int]algorithm
	rules      map[int]*inspect.RuleReader // of each node from 1, once it was read
	// profile is what its namespaces are given, settings what became of that.
	profile  profile.Profile
	settings map[site][]result.Setting
	// machine is what became of those that are the whole machine's; tunedToo
	// means that its namespaces have what tuned gave the machine's own.
	machine  []result.Setting
	tunedToo bool
	// programmed is how long the services of each node took; nil without services.
	programmed []time.Duration
}

type pod struct {
	ns      netns.NS
	address netip.Addr
	// address6 is not valid on a cluster of IPv4 alone.
	address6 netip.Addr
}

// newCluster names everything of a cluster and makes nothing.
func newCluster(st state.State, dir string, index int, spec state.Spec, n network.Network) (*cluster, error) {
	if err := checkSize(spec); err != nil {
		return nil, err
	}
	link, err := wire.Find(spec.Link)
	if err != nil {
		return nil, err
	}
	settings, err := profile.Find(spec.Profile)
	if err != nil {
		return nil, err
	}
	crypt, err := encryption.Find(spec.Encryption)
	if err != nil {
		return nil, err
	}
	if n.HostNetwork { // a pod is its node
		spec.Pods = make([]int, len(spec.Pods))
	}
	c := &cluster{index: index, spec: spec, network: n, link: link, encryption: crypt, profile: settings, pods: make([][]pod, len(spec.Pods))}
	if spec.Services > 0 {
		if c.proxy, err = catalog.FindServiceProxy(spec.ServiceProxy); err != nil {
			return nil, err
		}
	}
	for i := 1; i <= len(spec.Pods); i++ {
		c.nodes = append(c.nodes, network.Node{
			Name: "node" + strconv.Itoa(i), Index: i, NS: st.Node(index, i), Device: device,
			Address: nodeAddress(i), PodCIDR: podCIDR(i), MTU: crypt.NodeMTU(spec.MTU, spec.IPv6), Policies: spec.Policies,
			MasqueradeAll: n.MasqueradeAll,
			DataDir:       filepath.Join(dir, fmt.Sprintf("%d-node%d", index, i)),
			Switch:        netns.Port{NS: st.Fabric(index), Device: wire.Bridge},
		})
		if spec.IPv6 {
			c.nodes[i-1].Address6, c.nodes[i-1].PodCIDR6 = nodeAddress6(i), podCIDR6(i)
		}
		for j := 1; j <= spec.Pods[i-1]; j++ {
			c.pods[i-1] = append(c.pods[i-1], pod{ns: st.Pod(index, i, j)})
		}
	}
	if n.HostNetwork {
		return c, nil
	}
	return c, c.readConflists()
}

// readConflists asks the network for each node's.
func (c *cluster) readConflists() error {
	for _, node := range c.nodes {
		data, err := c.network.Conflist(node, c.nodes)
		if err != nil {
			return err
		}
		list, err := cni.ParseConflist(c.network.Name, data)
		if err != nil {
			return err
		}
		if list, err = list.WithDataDir(node.DataDir); err != nil {
			return err
		}
		c.conflists = append(c.conflists, list)
	}
	return nil
}

// state is what is written down of the cluster before it is made.
func (c *cluster) state() state.Cluster {
	s := state.Cluster{Spec: c.spec}
	for _, l := range c.conflists {
		s.Conflists = append(s.Conflists, l.JSON())
	}
	return s
}

// build makes the cluster. What it made is left to the caller where it fails.
func (c *cluster) build(ctx context.Context, st state.State, rt *cni.Runtime, parallel int) error {
	if err := c.namespaces(ctx, st, parallel); err != nil {
		return err
	}
	wired := make([]network.Node, len(c.nodes))
	for i, n := range c.nodes {
		wired[i] = c.encryption.Wire(n, c.spec.MTU)
	}
	if err := wire.Connect(st.Fabric(c.index), c.link, c.spec.MTU, wired); err != nil {
		return err
	}
	if err := c.encryption.Start(ctx, c.nodes); err != nil {
		return err
	}
	if err := c.startProxy(ctx); err != nil {
		return err
	}
	if c.network.SetUp != nil {
		for _, n := range c.nodes {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := c.network.SetUp(ctx, n, c.nodes); err != nil {
				return err
			}
		}
	}
	if err := c.joinCgroups(); err != nil {
		return err
	}
	if err := c.attach(ctx, rt, parallel); err != nil {
		return err
	}
	if err := c.checkAddresses(); err != nil {
		return err
	}
	if err := c.announcePods(ctx); err != nil {
		return err
	}
	if err := c.syncProxy(ctx, c.services()); err != nil {
		return err
	}
	return c.findCarriers()
}

// announcePods lets the network do what its agent does once it knows all pods,
// also of pods that are added later.
func (c *cluster) announcePods(ctx context.Context, news ...*newcomer) error {
	if c.network.PodsAdded == nil {
		return nil
	}
	pods := c.knownPods(news)
	for _, n := range c.nodes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.network.PodsAdded(ctx, n, c.nodes, pods); err != nil {
			return fmt.Errorf("network %s on %s: %w", c.spec.Network, n.Name, err)
		}
	}
	return nil
}

// namespaces makes all of the cluster's namespaces. The settings that a new
// namespace copies from the machine are set to the kernel's own defaults, so
// that a lab is the same on every machine.
func (c *cluster) namespaces(ctx context.Context, st state.State, parallel int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	defaults := nodeDefaults(c.spec.IPv6)
	g.Go(makeNamespace(ctx, st.Fabric(c.index), wire.FabricSettings()))
	for i, n := range c.nodes {
		g.Go(makeNamespace(ctx, n.NS, defaults))
		for _, p := range c.pods[i] {
			g.Go(makeNamespace(ctx, p.ns, defaults))
		}
	}
	return g.Wait()
}

// makeNamespace gives what makes a namespace with settings.
func makeNamespace(ctx context.Context, ns netns.NS, settings []netns.Setting) func() error {
	return func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := netns.New(ns.Name); err != nil {
			return err
		}
		return netns.SetSysctls(ns, settings...)
	}
}

// nodeDefaults are podSettings and, where there is IPv6, what that wants.
func nodeDefaults(six bool) []netns.Setting {
	defaults := podSettings()
	if six {
		// Nobody else can have the lab's addresses: they are used at once.
		for _, which := range []string{"all", "default"} {
			for name, value := range map[string]string{"disable_ipv6": "0", "accept_dad": "0", "accept_ra": "0"} {
				defaults = append(defaults, netns.Setting{Path: "net/ipv6/conf/" + which + "/" + name, Value: value})
			}
		}
	}
	return defaults
}

// podSettings are the kernel's own defaults of a namespace.
func podSettings() []netns.Setting {
	return []netns.Setting{
		{Path: "net/ipv4/ip_forward", Value: "0"},
		{Path: "net/ipv4/conf/all/rp_filter", Value: "0"},
		{Path: "net/ipv4/conf/default/rp_filter", Value: "0"},
	}
}

// attach runs CNI ADD for every pod. The first one of a node is alone: it makes
// what the node's pods share, and not every plugin expects company in that.
func (c *cluster) attach(ctx context.Context, rt *cni.Runtime, parallel int) error {
	if c.network.HostNetwork {
		return nil
	}
	add := func(node, i int) func() error {
		return func() error {
			ctx, cancel := context.WithTimeout(ctx, attachTimeout)
			defer cancel()
			p := &c.pods[node][i]
			got, err := rt.Add(ctx, attachment(c.conflists[node], p.ns, c.nodes[node].NS))
			if err != nil {
				return fmt.Errorf("network %s: %w", c.spec.Network, err)
			}
			return p.take(got.Addresses, c.spec.IPv6)
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	outer := ctx
	ctx = gctx
	for node := range c.nodes {
		if len(c.pods[node]) > 0 {
			g.Go(add(node, 0))
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	g, ctx = errgroup.WithContext(outer)
	g.SetLimit(parallel)
	for node := range c.nodes {
		for i := 1; i < len(c.pods[node]); i++ {
			g.Go(add(node, i))
		}
	}
	return g.Wait()
}

// take notes a pod's addresses.
func (p *pod) take(got []netip.Addr, six bool) error {
	p.address = got[0]
	if !six {
		return nil
	}
	for _, a := range got {
		if a.Is4() {
			p.address = a
		} else {
			p.address6 = a
		}
	}
	if !p.address.Is4() || !p.address6.IsValid() {
		return fmt.Errorf("%s got the addresses %v, want one of IPv4 and one of IPv6", p.ns.Name, got)
	}
	return nil
}

func attachment(list *cni.Conflist, pod, node netns.NS) cni.Attachment {
	return cni.Attachment{Conflist: list, ContainerID: pod.Name, PodNS: pod.Path, NodeNS: node.Path, Device: device}
}

// checkAddresses finds pods of two nodes with one address, which is what one
// conflist on two nodes gives.
func (c *cluster) checkAddresses() error {
	if c.network.HostNetwork {
		return nil
	}
	who := map[netip.Addr]string{}
	for i, pods := range c.pods {
		for _, p := range pods {
			name := fmt.Sprintf("%s's %s", c.nodes[i].Name, p.ns.Name)
			for _, a := range []netip.Addr{p.address, p.address6} {
				if other, taken := who[a]; taken && a.IsValid() {
					return fmt.Errorf("network %s: %s and %s both got the address %s: name one conflist per node "+
						"(conflists: [node1.conflist, node2.conflist]) with subnets or ranges of their own",
						c.spec.Network, other, name, a)
				}
				who[a] = name
			}
		}
	}
	return nil
}

// makeDirs makes the nodes' data folders.
func (c *cluster) makeDirs() error {
	for _, n := range c.nodes {
		if err := os.MkdirAll(n.DataDir, 0o755); err != nil {
			return err
		}
	}
	return nil
}
