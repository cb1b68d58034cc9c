// Package ovn has OVN itself, with the topology of OVN-Kubernetes' default network or of
// Kube-OVN's.
package ovn

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed ovn.conflist
var ovnConflist string

// What OVN-Kubernetes calls the parts of its default network.
const (
	ovnBridge     = "br-int"
	ovnRouter     = "ovn_cluster_router"
	ovnManagement = "ovn-k8s-mp0" // the node's own device in its logical switch

	// Prefixes of logical ports, before a node's name: the router's, the switch's to the
	// router, and that of ovn-k8s-mp0.
	ovnRouterPort, ovnSwitchPort, ovnManagementPort = "rtos-", "stor-", "k8s-"

	// ovnOverhead is what Geneve with OVN's option takes, in bytes: IPv4 20, UDP 8,
	// Geneve 8, the option 8, the inner Ethernet header 14.
	ovnOverhead = 58
)

// Geneve is OVN itself with the topology of OVN-Kubernetes' default network.
func Geneve() network.Network {
	n := geneveMode().network("ovn/geneve")
	n.Summary = "OVN itself, with OVN-Kubernetes' default topology: a logical switch for each node, a router between them, Geneve between nodes"
	return n
}

// NoOverlay is OVN itself as in OVN-Kubernetes' no-overlay mode: each node has a router
// and databases of its own (a zone), and plain routes lead to other nodes' pods.
func NoOverlay() network.Network {
	n := noOverlayMode().network("ovn/no-overlay")
	n.Summary = "OVN itself without tunnels: a logical switch and a router for each node, plain routes between nodes"
	return n
}

// ovnMode is a logical network, and how packets reach other nodes' pods: by a tunnel, with
// what that wants of the kernel, in addition to openvswitch, to use its datapath; or by the
// nodes' routes.
type ovnMode struct {
	topology topology
	tunnel   []netns.Feature
	policy   bool // every pod is under a policy
}

func geneveMode() ovnMode { return ovnMode{topology: ovnKubernetes(), tunnel: geneveTunnel()} }

func noOverlayMode() ovnMode { return ovnMode{topology: ovnKubernetes()} }

// topology is what a project makes of OVN's parts.
type topology struct {
	overhead int    // what pods' MTU is less than the link's, in bytes, where OVN tunnels
	conflist string // a template of the CNI configuration
	// noServices is network.NoServices of its networks.
	noServices string
	// device is the node's own in the logical network, which has the logical port that port
	// gives. address is that of the device, with the length of its subnet.
	device  string
	port    func(self network.Node) string
	address func(self network.Node) netip.Prefix
	// gateway is the router's address behind device. source is the address with which the
	// node sends to pods; not valid where that is the device's.
	gateway, source func(self network.Node) netip.Addr
	// logical is ovn-nbctl's commands for the logical network of a zone.
	logical func(zone []network.Node) []string
	// rules are those of a node, in its tables filter and nat.
	rules func(self network.Node, filter, nat *dataplane.Table)
}

// ovnKubernetes is the topology of OVN-Kubernetes' default network.
func ovnKubernetes() topology {
	return topology{
		overhead: ovnOverhead, conflist: ovnConflist,
		noServices: "its pods' packets pass Open vSwitch, where OVN's load balancers have them (service_proxies: [ovn])",
		device:     ovnManagement,
		port:       func(self network.Node) string { return ovnManagementPort + self.Name },
		address: func(self network.Node) netip.Prefix {
			return netip.PrefixFrom(ovnManagementAddress(self), self.PodCIDR.Bits())
		},
		gateway: ovnGateway,
		source:  func(network.Node) netip.Addr { return netip.Addr{} },
		logical: ovnTopology,
		rules:   ovnRules,
	}
}

func geneveTunnel() []netns.Feature { return []netns.Feature{netns.Geneve()} }

func (m ovnMode) overlay() bool { return len(m.tunnel) > 0 }

func (m ovnMode) datapath() string { return dataplane.OVSDatapath(m.tunnel...) }

// zone is the nodes that share one pair of databases and one router with a node. The first
// of them has the databases.
func (m ovnMode) zone(self network.Node, nodes []network.Node) []network.Node {
	if m.overlay() {
		return nodes
	}
	return []network.Node{self}
}

func (m ovnMode) network(name string) network.Network {
	n := network.Network{
		Kind:       result.KindReal,
		Name:       name,
		NoServices: m.topology.noServices,
		NoXDP:      "its pods' packets pass Open vSwitch, which sends answers past a program at the node's device",
		Needs: []netns.Feature{
			netns.Veth(), dataplane.OVSTools(), ovnTools(), dataplane.OVSCarries(m.tunnel...), dataplane.IPTablesTool(), netns.NFTables(), netns.Conntrack(),
		},
		InKernel:  append(m.tunnel[:len(m.tunnel):len(m.tunnel)], netns.OpenVSwitch()),
		Plugins:   []string{"host-local"},
		PodsAdded: m.settled,
		Datapath: func(ctx context.Context) (string, error) {
			version, err := ovnVersion(ctx)
			if err != nil {
				return "", err
			}
			datapath, err := dataplane.OVSDescribe(ctx, m.datapath())
			if m.policy && m.datapath() == dataplane.OVSUser {
				datapath += ", where connection tracking loses fragments of datagrams"
			}
			return version + " over " + datapath, err
		},
	}
	n.UserSpaceLoses = network.FloodsOfFragments
	if m.policy {
		n.UserSpaceLoses = network.AllFragments
	}
	if m.overlay() {
		n.Encapsulation, n.Overhead = "geneve", m.topology.overhead
	}
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		return m.setUp(ctx, self, nodes, n.PodMTUOn(self))
	}
	n.Conflist = func(self network.Node, nodes []network.Node) ([]byte, error) {
		northbound := nodeOVN(m.zone(self, nodes)[0]).socket(ovnNorthbound)
		return network.Template(strings.NewReplacer("OVSDIR", dataplane.OVSDir(self), "NORTHBOUND", northbound, "FIRST", ovnFirst(self).String()).Replace(m.topology.conflist), n)(self, nodes)
	}
	return n
}

// ovnGateway is the address of a node's logical router port, the first of its pods'.
func ovnGateway(self network.Node) netip.Addr { return self.PodCIDR.Addr().Next() }

// ovnManagementAddress is that of the node's own device in its logical switch.
func ovnManagementAddress(self network.Node) netip.Addr { return ovnGateway(self).Next() }

// ovnFirst is the first address of a node's pods.
func ovnFirst(self network.Node) netip.Addr { return ovnManagementAddress(self).Next() }

// ovnMAC is the hardware address that OVN-Kubernetes gives to what has an IPv4 address.
func ovnMAC(ip netip.Addr) net.HardwareAddr {
	b := ip.As4()
	return net.HardwareAddr{0x0a, 0x58, b[0], b[1], b[2], b[3]}
}

// ovnTunnelKey is a node's logical switch in the tunnel: the VNI of packets to its pods.
// The router has 1.
func ovnTunnelKey(self network.Node) int { return 1 + self.Index }

// setUp makes one node: its switch, its ovn-controller, its own device in the logical
// network. The first of its zone has the databases too, and is made first.
func (m ovnMode) setUp(ctx context.Context, self network.Node, nodes []network.Node, podMTU int) error {
	if err := dataplane.OVSSettings(self); err != nil {
		return err
	}
	zone, datapath, remote := m.zone(self, nodes), m.datapath(), ""
	if m.overlay() {
		remote = ovnRemote(zone[0].Address.Addr())
	} else {
		remote = nodeOVN(self).remote(ovnSouthbound)
	}
	o, v := dataplane.NodeOVS(self), nodeOVN(self)
	if err := o.Start(ctx); err != nil {
		return fmt.Errorf("open vSwitch of %s: %w", self.Name, err)
	}
	if err := o.Configure(ctx, m.topology.bridge(self, remote, datapath, podMTU)...); err != nil {
		return fmt.Errorf("%s of %s: %w", ovnBridge, self.Name, err)
	}
	uplink := m.overlay() && datapath == dataplane.OVSUser
	if uplink { // its tunnels leave by its own bridges alone, as Antrea's do
		if err := o.Uplink(ctx, self); err != nil {
			return fmt.Errorf("%s of %s: %w", dataplane.OVSPhysical, self.Name, err)
		}
	}
	if self.Index == zone[0].Index {
		logical := m.topology.logical(zone)
		if m.policy {
			logical = append(logical, ovnPolicies(self.Policies)...)
		}
		if err := v.central(ctx, remote, zone[0].Address.Addr(), logical); err != nil {
			return fmt.Errorf("OVN's databases on %s: %w", self.Name, err)
		}
	} else if err := v.usesDatabases(nodeOVN(zone[0])); err != nil {
		return err
	}
	if err := v.daemon("ovn-controller", o.Socket()); err != nil {
		return err
	}
	if err := m.routes(self, nodes); err != nil {
		return fmt.Errorf("%s of %s: %w", m.topology.device, self.Name, err)
	}
	if err := m.rules(ctx, self, uplink); err != nil {
		return err
	}
	if self.Index < zone[len(zone)-1].Index {
		return nil
	}
	return m.topology.ready(ctx, zone)
}

// ready waits until each node's ovn-controller has put its node's own device into the
// logical network, which it does once it has read the southbound database.
func (t topology) ready(ctx context.Context, nodes []network.Node) error {
	for _, n := range nodes {
		if err := ovnInstalled(ctx, dataplane.NodeOVS(n), t.device); err != nil {
			return fmt.Errorf("%s: %w", n.Name, nodeOVN(n).explain("ovn-controller", err))
		}
	}
	return nil
}

// ovnInstalled waits until ovn-controller says of a device that its flows are in the
// switch, as OVN-Kubernetes' plugin does.
func ovnInstalled(ctx context.Context, o dataplane.OVS, device string) error {
	if _, err := o.VSCtl(ctx, "--no-wait", "wait-until", "Interface", device, "external_ids:ovn-installed=true"); err != nil {
		return fmt.Errorf("OVN has no flows for the device %s: %w", device, err)
	}
	return nil
}

// settled puts, on the last node of a zone, the zone's pods under the policies, and waits
// until all of its nodes have flows for all pods.
func (m ovnMode) settled(ctx context.Context, self network.Node, nodes []network.Node, pods []network.Pod) error {
	zone := m.zone(self, nodes)
	if self.Index < zone[len(zone)-1].Index {
		return nil
	}
	v := nodeOVN(zone[0])
	if m.policy {
		if _, err := v.nbctl(ctx, m.members(zone, nodes, pods)...); err != nil {
			return err
		}
	}
	_, err := v.nbctl(ctx, "--wait=hv", "sync")
	return err
}

// bridge is ovs-vsctl's commands for br-int: what ovn-controller reads of the node,
// and the node's own device.
func (t topology) bridge(self network.Node, remote, datapath string, podMTU int) []string {
	mac := ovnMAC(t.address(self).Addr())
	return []string{
		"--", "set", "Open_vSwitch", ".",
		"external_ids:system-id=" + self.Name, "external_ids:hostname=" + self.Name,
		"external_ids:ovn-remote=" + remote,
		"external_ids:ovn-encap-type=geneve", "external_ids:ovn-encap-ip=" + self.Address.Addr().String(),
		"external_ids:ovn-bridge-datapath-type=" + datapath,
		"external_ids:ovn-monitor-all=true", "external_ids:ovn-remote-probe-interval=100000", "external_ids:ovn-openflow-probe-interval=180",
		"--", "add-br", ovnBridge,
		"--", "set", "Bridge", ovnBridge, "datapath_type=" + datapath, "fail_mode=secure", "other_config:disable-in-band=true",
		"--", "add-port", ovnBridge, t.device,
		"--", "set", "Interface", t.device, "type=internal", fmt.Sprintf("mtu_request=%d", podMTU),
		fmt.Sprintf("mac=%q", mac), "external_ids:iface-id=" + t.port(self),
	}
}

// ovnTopology is ovn-nbctl's commands for a zone's logical network: a switch for each node, a
// router between them. What a pod sends to no pod leaves by its node's own device, as in
// OVN-Kubernetes' gateway mode local.
func ovnTopology(nodes []network.Node) []string {
	args := []string{"--", "lr-add", ovnRouter, "--", "set", "Logical_Router", ovnRouter, "options:requested-tnl-key=1"}
	for _, n := range nodes {
		router, toRouter, own := ovnRouterPort+n.Name, ovnSwitchPort+n.Name, ovnManagementPort+n.Name
		gateway, address := ovnGateway(n), ovnManagementAddress(n)
		args = append(args,
			"--", "ls-add", n.Name,
			"--", "set", "Logical_Switch", n.Name, "other_config:subnet="+n.PodCIDR.String(),
			fmt.Sprintf("other_config:requested-tnl-key=%d", ovnTunnelKey(n)),
			"--", "lrp-add", ovnRouter, router, ovnMAC(gateway).String(), netip.PrefixFrom(gateway, n.PodCIDR.Bits()).String(),
			"--", "lsp-add", n.Name, toRouter, "--", "lsp-set-type", toRouter, "router",
			"--", "lsp-set-addresses", toRouter, "router", "--", "lsp-set-options", toRouter, "router-port="+router,
			"--", "lsp-add", n.Name, own, "--", "lsp-set-addresses", own, ovnMAC(address).String()+" "+address.String(),
			"--", "--policy=src-ip", "lr-route-add", ovnRouter, n.PodCIDR.String(), address.String(),
		)
	}
	return args
}

// routes gives the node's own device its address, and the node routes to the pods of other
// nodes: by it where OVN tunnels, else by those nodes.
func (m ovnMode) routes(self network.Node, nodes []network.Node) error {
	t := m.topology
	h, dev, err := netns.Port{NS: self.NS, Device: t.device}.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	address := t.address(self)
	if want, has := ovnMAC(address.Addr()).String(), dev.Attrs().HardwareAddr.String(); has != want {
		return fmt.Errorf("it has the hardware address %s, and OVN knows it by %s", has, want)
	}
	if err := h.AddrAdd(dev, &netlink.Addr{IPNet: network.IPNet(address)}); err != nil {
		return err
	}
	if err := h.LinkSetUp(dev); err != nil {
		return err
	}
	if !m.overlay() {
		return network.RouteByNode(self, nodes)
	}
	return h.RouteReplace(&netlink.Route{
		LinkIndex: dev.Attrs().Index, Dst: network.IPNet(network.Pods()), Gw: t.gateway(self).AsSlice(), Src: t.source(self).AsSlice(),
	})
}

// rules sets those of the topology. With the switch in user space the node's stack drops its
// copy of what the uplink receives.
func (m ovnMode) rules(ctx context.Context, self network.Node, uplink bool) error {
	filter, nat := &dataplane.Table{Name: "filter"}, &dataplane.Table{Name: "nat"}
	m.topology.rules(self, filter, nat)
	if uplink {
		dataplane.DropCopies(filter, self)
	}
	return dataplane.Restore(ctx, self, filter, nat)
}

// ovnRules are those of OVN-Kubernetes' gateway mode local: what leaves the pods' range is
// masqueraded.
func ovnRules(self network.Node, filter, nat *dataplane.Table) {
	filter.Add("FORWARD", "-i "+ovnManagement+" -j ACCEPT", "-o "+ovnManagement+" -j ACCEPT")
	filter.Add("INPUT", "-i "+ovnManagement+" -j ACCEPT")
	nat.Add("POSTROUTING", fmt.Sprintf("-s %s ! -d %s -j MASQUERADE", self.PodCIDR, network.Pods()))
}
