package network

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed antrea.conflist
var antreaConflist string

// What Antrea v1.15 calls its bridge and devices; the bridge over the node's
// own device is that of build/images/scripts/start_ovs_netdev.
const (
	antreaBridge   = "br-int"
	antreaGateway  = "antrea-gw0"
	antreaTunnel   = "antrea-tun0"
	antreaPhysical = "br-phy"

	antreaTunnelPort, antreaGatewayPort = 1, 2

	antreaOverhead   = 50
	antreaGenevePort = 6081

	antreaModel = "Antrea v1.15 docs/design/ovs-pipeline.md in a real Open vSwitch (its tables and flows set with ovs-ofctl; " +
		"pods by this program's plugin cnibench-antrea), its iptables rules for pods"
	antreaLeavesOut = "the agent: Egress, TrafficControl, L7 policy, multicast, IPv6, packets to the controller; " +
		"Antrea's IPAM (host-local instead)"
)

// antreaGeneve is Antrea in mode encap, its default.
func antreaGeneve() Network {
	n := antrea("antrea/geneve", "Antrea in mode encap: Open vSwitch on each node, Geneve between nodes", netns.Geneve())
	n.Encapsulation, n.Overhead = "geneve", antreaOverhead
	n.SetUp = func(ctx context.Context, self Node, nodes []Node) error {
		return antreaNode(ctx, self, nodes, n.Overhead, true)
	}
	n.Conflist = template(antreaConflist, n)
	return n
}

// antreaGenevePolicy is the same where every pod is selected by one policy.
func antreaGenevePolicy() Network { return antreaUnderPolicy(antreaGeneve()) }

func antreaUnderPolicy(n Network) Network {
	n.Name, n.Summary = n.Name+"-policy", n.Summary+", with a NetworkPolicy as conjunctive flows"
	n.Policy, n.PodsAdded = true, antreaPolicy
	n.LeavesOut += "; fragments of datagrams, where its switch runs in user space: connection tracking loses them there"
	n.Conflist = template(antreaConflist, n)
	return n
}

// antreaNoEncap is Antrea in mode noEncap: packets between nodes leave by the
// gateway, and go by the node's routes.
func antreaNoEncap() Network {
	n := antrea("antrea/noencap", "Antrea in mode noEncap: Open vSwitch on each node, plain routes between nodes")
	n.SetUp = func(ctx context.Context, self Node, nodes []Node) error {
		return antreaNode(ctx, self, nodes, 0, false)
	}
	n.Conflist = template(antreaConflist, n)
	return n
}

// antreaNoEncapPolicy is the same where every pod is selected by one policy.
func antreaNoEncapPolicy() Network { return antreaUnderPolicy(antreaNoEncap()) }

// antrea is what its modes have in common. kernel is what they want of the
// kernel, beside openvswitch, to use its datapath.
func antrea(name, summary string, kernel ...netns.Feature) Network {
	return Network{
		Kind: result.KindOwnPlugin,
		Name: name, Summary: summary, Model: antreaModel, LeavesOut: antreaLeavesOut,
		NoServices: "its pods' packets pass Open vSwitch, where AntreaProxy has them (service_proxies: [antrea])",
		Needs:      append([]netns.Feature{netns.Veth(), ovsTools(), ovsCarries(kernel...)}, ruleNeeds()...),
		InKernel:   append(kernel[:len(kernel):len(kernel)], netns.OpenVSwitch()),
		Plugins:    []string{"host-local"},
		Datapath: func(ctx context.Context) (string, error) {
			return ovsDescribe(ctx, ovsDatapath(kernel...))
		},
	}
}

// antreaNode is what the agent makes of a node: the switch with its gateway
// and tunnel, routes to peers, the pipeline and the rules beside it.
func antreaNode(ctx context.Context, self Node, nodes []Node, overhead int, tunnel bool) error {
	if err := antreaSettings(self); err != nil {
		return err
	}
	datapath := ovsDatapath()
	if tunnel {
		datapath = ovsDatapath(netns.Geneve())
	}
	o := nodeOVS(self)
	if err := o.start(ctx); err != nil {
		return fmt.Errorf("open vSwitch of %s: %w", self.Name, err)
	}
	if err := o.configure(ctx, antreaSwitch(self.MTU-overhead, datapath, tunnel)...); err != nil {
		return fmt.Errorf("%s of %s: %w", antreaBridge, self.Name, err)
	}
	if tunnel && datapath == ovsUser {
		if err := antreaUplink(ctx, o, self); err != nil {
			return fmt.Errorf("%s of %s: %w", antreaPhysical, self.Name, err)
		}
	}
	mac, err := antreaRoutes(self, nodes, tunnel)
	if err != nil {
		return err
	}
	flows, err := antreaPipeline(self, nodes, mac, tunnel)
	if err != nil {
		return err
	}
	if err := o.addFlows(ctx, antreaBridge, flows); err != nil {
		return fmt.Errorf("flows of %s: %w", self.Name, err)
	}
	return antreaRules(ctx, self, nodes, tunnel && datapath == ovsUser)
}

// antreaSettings: a node forwards, and asks who has an address by its
// gateway's own (ARPSpoofGuard drops others). Packets of devices that a switch
// in user space reads come to the node's stack as well, which must not answer
// there for its other devices.
func antreaSettings(self Node) error {
	return netns.SetSysctls(self.NS,
		netns.Setting{Path: "net/ipv4/ip_forward", Value: "1"},
		netns.Setting{Path: "net/ipv4/conf/all/arp_announce", Value: "1"},
		netns.Setting{Path: "net/ipv4/conf/all/arp_ignore", Value: "1"})
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

// antreaUplink puts the node's device on a bridge that has its addresses: a
// switch in user space sends tunnelled packets by its own bridges alone
// (Open vSwitch's howto userspace-tunneling).
func antreaUplink(ctx context.Context, o ovs, self Node) error {
	h, dev, err := netns.Port{NS: self.NS, Device: self.Device}.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	err = o.configure(ctx, "--", "add-br", antreaPhysical,
		"--", "set", "Bridge", antreaPhysical, "datapath_type="+ovsUser, "fail_mode=standalone", "other_config:hwaddr=\""+dev.Attrs().HardwareAddr.String()+"\"",
		"--", "set", "Interface", antreaPhysical, fmt.Sprintf("mtu_request=%d", self.MTU),
		"--", "add-port", antreaPhysical, self.Device)
	if err != nil {
		return err
	}
	bridge, err := netns.Link(h, antreaPhysical)
	if err != nil {
		return err
	}
	if err := h.LinkSetUp(bridge); err != nil {
		return err
	}
	if err := h.AddrDel(dev, &netlink.Addr{IPNet: ipNet(self.Address)}); err != nil {
		return err
	}
	return h.AddrAdd(bridge, &netlink.Addr{IPNet: ipNet(self.Address)})
}

// antreaRoutes gives the gateway its address and sets the routes to the other
// nodes' pods. It gives the gateway's hardware address.
func antreaRoutes(self Node, nodes []Node, tunnel bool) (net.HardwareAddr, error) {
	h, dev, err := netns.Port{NS: self.NS, Device: antreaGateway}.Open()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	gateway := &net.IPNet{IP: antreaGatewayOf(self).AsSlice(), Mask: net.CIDRMask(self.PodCIDR.Bits(), 32)}
	if err := h.AddrAdd(dev, &netlink.Addr{IPNet: gateway}); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", antreaGateway, self.Name, err)
	}
	if err := h.LinkSetUp(dev); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", antreaGateway, self.Name, err)
	}
	mac := dev.Attrs().HardwareAddr
	if !tunnel {
		return mac, routeByNode(self, nodes)
	}
	for _, peer := range antreaPeers(self, nodes) {
		err := h.RouteReplace(&netlink.Route{
			LinkIndex: dev.Attrs().Index, Dst: ipNet(peer.PodCIDR), Gw: antreaGatewayOf(peer).AsSlice(), Flags: int(netlink.FLAG_ONLINK),
		})
		if err != nil {
			return nil, fmt.Errorf("%s: route to the pods of %s: %w", self.Name, peer.Name, err)
		}
	}
	return mac, nil
}

func antreaPeers(self Node, nodes []Node) []Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.Index == self.Index })
}

// antreaRules are those that the agent keeps beside the switch
// (pkg/agent/route/route_linux.go): tunnelled packets are not tracked, what
// leaves the cluster is masqueraded. With the switch in user space the node's
// stack drops its copy of what the uplink receives.
func antreaRules(ctx context.Context, self Node, nodes []Node, uplink bool) error {
	pods, addresses := ipset{name: "ANTREA-POD-IP", kind: "hash:net"}, ipset{name: "ANTREA-NODE-IP", kind: "hash:ip"}
	for _, n := range nodes {
		pods.members = append(pods.members, n.PodCIDR)
		addresses.members = append(addresses.members, single(n.Address.Addr()))
	}
	if err := fillSets(self, pods, addresses); err != nil {
		return err
	}
	const geneve = "-p udp -m udp --dport 6081 -m addrtype "
	raw, filter, nat := &table{name: "raw"}, &table{name: "filter"}, &table{name: "nat"}
	raw.chain("ANTREA-PREROUTING", geneve+"--dst-type LOCAL -j NOTRACK")
	raw.chain("ANTREA-OUTPUT", geneve+"--src-type LOCAL -j NOTRACK")
	raw.add("PREROUTING", "-j ANTREA-PREROUTING")
	raw.add("OUTPUT", "-j ANTREA-OUTPUT")
	filter.chain("ANTREA-FORWARD", "-i "+antreaGateway+" -j ACCEPT", "-o "+antreaGateway+" -j ACCEPT")
	filter.add("FORWARD", "-j ANTREA-FORWARD")
	if uplink {
		filter.insert("FORWARD", "-i "+self.Device+" -j DROP")
		filter.insert("INPUT", "-i "+self.Device+" -j DROP")
	}
	nat.chain("ANTREA-POSTROUTING", fmt.Sprintf("-s %s -m set ! --match-set %s dst ! -o %s -j MASQUERADE", self.PodCIDR, pods.name, antreaGateway))
	nat.add("POSTROUTING", "-j ANTREA-POSTROUTING")
	return restore(ctx, self, raw, filter, nat)
}
