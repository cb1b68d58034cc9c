// Package antrea has Antrea's networks and its service proxy, in flows of a real Open
// vSwitch.
package antrea

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed antrea.conflist
var conflist string

// What Antrea v1.15 calls its bridge and devices; the bridge over the node's
// own device is that of build/images/scripts/start_ovs_netdev.
const (
	antreaBridge  = "br-int"
	antreaGateway = "antrea-gw0"
	antreaTunnel  = "antrea-tun0"

	antreaTunnelPort, antreaGatewayPort = 1, 2

	antreaOverhead   = 50
	antreaGenevePort = 6081

	model = "Antrea v1.15 docs/design/ovs-pipeline.md in a real Open vSwitch (its tables and flows set with ovs-ofctl; " +
		"pods by this program's plugin cnibench-antrea), its iptables rules for pods"
	leavesOut = "the agent: Egress, TrafficControl, L7 policy, multicast, IPv6, packets to the controller; " +
		"Antrea's IPAM (host-local instead)"
)

// Geneve is Antrea in mode encap, its default.
func Geneve() network.Network {
	n := inMode("antrea/geneve", "Antrea in mode encap: Open vSwitch on each node, Geneve between nodes", netns.Geneve())
	n.Encapsulation, n.Overhead = "geneve", antreaOverhead
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		return node(ctx, self, nodes, n.PodMTUOn(self), true)
	}
	n.Conflist = antreaPods(n)
	return n
}

// GenevePolicy is the same where every pod is selected by one policy.
func GenevePolicy() network.Network { return underPolicy(Geneve()) }

func underPolicy(n network.Network) network.Network {
	n.Name, n.Summary = n.Name+"-policy", n.Summary+", with a NetworkPolicy as conjunctive flows"
	n.Policy, n.PodsAdded = true, policy
	n.LeavesOut += "; fragments of datagrams, where its switch runs in user space: connection tracking loses them there"
	n.UserSpaceLoses = network.AllFragments
	n.Conflist = antreaPods(n)
	return n
}

// NoEncap is Antrea in mode noEncap: packets between nodes leave by the
// gateway, and go by the node's routes.
func NoEncap() network.Network {
	n := inMode("antrea/noencap", "Antrea in mode noEncap: Open vSwitch on each node, plain routes between nodes")
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		return node(ctx, self, nodes, n.PodMTUOn(self), false)
	}
	n.Conflist = antreaPods(n)
	return n
}

// NoEncapPolicy is the same where every pod is selected by one policy.
func NoEncapPolicy() network.Network { return underPolicy(NoEncap()) }

// antreaPods is the CNI configuration of a network's pods.
func antreaPods(n network.Network) func(network.Node, []network.Node) ([]byte, error) {
	return func(self network.Node, nodes []network.Node) ([]byte, error) {
		return network.Template(strings.Replace(conflist, "OVSDIR", dataplane.OVSDir(self), 1), n)(self, nodes)
	}
}

// inMode is what its modes have in common. kernel is what they want of the
// kernel, in addition to openvswitch, to use its datapath.
func inMode(name, summary string, kernel ...netns.Feature) network.Network {
	return network.Network{
		Kind: result.KindOwnPlugin,
		Name: name, Summary: summary, Model: model, LeavesOut: leavesOut,
		NoServices: "its pods' packets pass Open vSwitch, where AntreaProxy has them (service_proxies: [antrea])",
		NoXDP:      "its pods' packets pass Open vSwitch, which sends answers past a program at the node's device",
		Needs:      append([]netns.Feature{netns.Veth(), dataplane.OVSTools(), dataplane.OVSCarries(kernel...)}, dataplane.RuleNeeds()...),
		InKernel:   append(kernel[:len(kernel):len(kernel)], netns.OpenVSwitch()),
		Plugins:    []string{"host-local"},

		UserSpaceLoses: network.FloodsOfFragments,
		Datapath: func(ctx context.Context) (string, error) {
			return dataplane.OVSDescribe(ctx, dataplane.OVSDatapath(kernel...))
		},
	}
}

// node is what the agent makes of a node: the switch with its gateway
// and tunnel, routes to peers, the pipeline and the rules outside it.
func node(ctx context.Context, self network.Node, nodes []network.Node, podMTU int, tunnel bool) error {
	if err := dataplane.OVSSettings(self); err != nil {
		return err
	}
	datapath := dataplane.OVSDatapath()
	if tunnel {
		datapath = dataplane.OVSDatapath(netns.Geneve())
	}
	o := dataplane.NodeOVS(self)
	if err := o.Start(ctx); err != nil {
		return fmt.Errorf("open vSwitch of %s: %w", self.Name, err)
	}
	if err := o.Configure(ctx, antreaSwitch(podMTU, datapath, tunnel)...); err != nil {
		return fmt.Errorf("%s of %s: %w", antreaBridge, self.Name, err)
	}
	if tunnel && datapath == dataplane.OVSUser {
		if err := o.Uplink(ctx, self); err != nil {
			return fmt.Errorf("%s of %s: %w", dataplane.OVSPhysical, self.Name, err)
		}
	}
	mac, err := routes(self, nodes, tunnel)
	if err != nil {
		return err
	}
	flows, err := pipeline(self, nodes, mac, tunnel)
	if err != nil {
		return err
	}
	if err := o.AddFlows(ctx, antreaBridge, flows); err != nil {
		return fmt.Errorf("flows of %s: %w", self.Name, err)
	}
	return rules(ctx, self, nodes, tunnel && datapath == dataplane.OVSUser)
}

// antreaSwitch is ovs-vsctl's commands for br-int.
func antreaSwitch(podMTU int, datapath string, tunnel bool) []string {
	args := []string{
		"--", "add-br", antreaBridge,
		"--", "set", "Bridge", antreaBridge, "datapath_type=" + datapath, "fail_mode=secure", "protocols=OpenFlow10,OpenFlow15",
	}
	if tunnel {
		args = append(args, "--", "add-port", antreaBridge, antreaTunnel,
			"--", "set", "Interface", antreaTunnel, "type=geneve", fmt.Sprintf("ofport_request=%d", antreaTunnelPort),
			"options:remote_ip=flow", "options:key=flow")
	}
	return append(args, "--", "add-port", antreaBridge, antreaGateway,
		"--", "set", "Interface", antreaGateway, "type=internal", fmt.Sprintf("ofport_request=%d", antreaGatewayPort),
		fmt.Sprintf("mtu_request=%d", podMTU))
}

// routes gives the gateway its address and sets the routes to the other
// nodes' pods. It gives the gateway's hardware address.
func routes(self network.Node, nodes []network.Node, tunnel bool) (net.HardwareAddr, error) {
	h, dev, err := netns.Port{NS: self.NS, Device: antreaGateway}.Open()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	gateway := &net.IPNet{IP: gatewayOf(self).AsSlice(), Mask: net.CIDRMask(self.PodCIDR.Bits(), 32)}
	if err := h.AddrAdd(dev, &netlink.Addr{IPNet: gateway}); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", antreaGateway, self.Name, err)
	}
	if err := h.LinkSetUp(dev); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", antreaGateway, self.Name, err)
	}
	mac := dev.Attrs().HardwareAddr
	if !tunnel {
		return mac, network.RouteByNode(self, nodes)
	}
	for _, peer := range antreaPeers(self, nodes) {
		err := h.RouteReplace(&netlink.Route{
			LinkIndex: dev.Attrs().Index, Dst: network.IPNet(peer.PodCIDR), Gw: gatewayOf(peer).AsSlice(), Flags: int(netlink.FLAG_ONLINK),
		})
		if err != nil {
			return nil, fmt.Errorf("%s: route to the pods of %s: %w", self.Name, peer.Name, err)
		}
	}
	return mac, nil
}

func antreaPeers(self network.Node, nodes []network.Node) []network.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n network.Node) bool { return n.Index == self.Index })
}

// rules are those that the agent keeps outside the switch
// (pkg/agent/route/route_linux.go): tunnelled packets are not tracked, what
// leaves the cluster is masqueraded. With the switch in user space the node's
// stack drops its copy of what the uplink receives.
func rules(ctx context.Context, self network.Node, nodes []network.Node, uplink bool) error {
	pods, addresses := dataplane.IPSet{Name: "ANTREA-POD-IP", Kind: "hash:net"}, dataplane.IPSet{Name: "ANTREA-NODE-IP", Kind: "hash:ip"}
	for _, n := range nodes {
		pods.Members = append(pods.Members, n.PodCIDR)
		addresses.Members = append(addresses.Members, network.Single(n.Address.Addr()))
	}
	if err := dataplane.FillSets(self, pods, addresses); err != nil {
		return err
	}
	const geneve = "-p udp -m udp --dport 6081 -m addrtype "
	raw, filter, nat := &dataplane.Table{Name: "raw"}, &dataplane.Table{Name: "filter"}, &dataplane.Table{Name: "nat"}
	raw.Chain("ANTREA-PREROUTING", geneve+"--dst-type LOCAL -j NOTRACK")
	raw.Chain("ANTREA-OUTPUT", geneve+"--src-type LOCAL -j NOTRACK")
	raw.Add("PREROUTING", "-j ANTREA-PREROUTING")
	raw.Add("OUTPUT", "-j ANTREA-OUTPUT")
	filter.Chain("ANTREA-FORWARD", "-i "+antreaGateway+" -j ACCEPT", "-o "+antreaGateway+" -j ACCEPT")
	filter.Add("FORWARD", "-j ANTREA-FORWARD")
	if uplink {
		dataplane.DropCopies(filter, self)
	}
	nat.Chain("ANTREA-POSTROUTING", fmt.Sprintf("-s %s -m set ! --match-set %s dst ! -o %s -j MASQUERADE", self.PodCIDR, pods.Name, antreaGateway))
	nat.Add("POSTROUTING", "-j ANTREA-POSTROUTING")
	return dataplane.Restore(ctx, self, raw, filter, nat)
}
