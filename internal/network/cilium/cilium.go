// Package cilium has Cilium's networks, in eBPF programs of this project (bpf/cilium.c).
package cilium

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/bpf"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed cilium.conflist
var conflist string

// The names of Cilium's devices on a node.
const (
	ciliumHost = "cilium_host"
	ciliumNet  = "cilium_net"
)

// overhead is what a tunnel of Cilium takes from the MTU, bytes.
const overhead = 50

// Identities: Cilium's reserved ones, and that of all pods of a lab, which have
// no labels. In a tunnel it is the VNI.
const (
	identityHost       = 1
	identityRemoteNode = 6
	identityPods       = 256
)

// endpointHost marks an address of the node itself: ENDPOINT_HOST.
const endpointHost = 1

// variant is one way in which Cilium can be configured.
type variant struct {
	name, summary string
	tunnel        string // "", "vxlan", "geneve"
	policy        bool
	netkit        bool // pods have a netkit in place of a veth
	needs         []netns.Feature
}

// Native is Cilium without encapsulation.
func Native() network.Network {
	return variant{
		name: "cilium/native", summary: "Cilium's eBPF host routing without encapsulation; no connection tracking, no policy",
	}.network()
}

// NativePolicy is the same where every pod is selected by one policy.
func NativePolicy() network.Network {
	return variant{
		name: "cilium/native-policy", policy: true,
		summary: "Cilium's eBPF host routing without encapsulation, each packet tracked and checked against a policy",
	}.network()
}

// VXLAN is Cilium with VXLAN between nodes.
func VXLAN() network.Network {
	return variant{
		name: "cilium/vxlan", tunnel: "vxlan", needs: []netns.Feature{netns.VXLAN()},
		summary: "Cilium's eBPF datapath, VXLAN between nodes; no connection tracking, no policy",
	}.network()
}

// VXLANPolicy is the same where every pod is selected by one policy.
func VXLANPolicy() network.Network {
	return variant{
		name: "cilium/vxlan-policy", tunnel: "vxlan", policy: true, needs: []netns.Feature{netns.VXLAN()},
		summary: "Cilium's eBPF datapath, VXLAN between nodes, each packet tracked and checked against a policy",
	}.network()
}

// Geneve is Cilium with Geneve between nodes.
func Geneve() network.Network {
	return variant{
		name: "cilium/geneve", tunnel: "geneve", needs: []netns.Feature{netns.Geneve()},
		summary: "Cilium's eBPF datapath, Geneve between nodes; no connection tracking, no policy",
	}.network()
}

func (v variant) network() network.Network {
	n := network.Network{
		Kind: result.KindOwnPlugin, Name: v.name, Summary: v.summary, Policy: v.policy, IPv6: !v.policy,
		Model: "Cilium v1.18.5 bpf/bpf_lxc.c, bpf_host.c, bpf_overlay.c, lib/local_delivery.h, lib/fib.h, " +
			"with eBPF host routing and one device, by own programs (bpf/cilium.c) and this program's plugin cnibench-cilium",
		LeavesOut:  "services, masquerading, ICMP errors, trace and drop notifications, tail calls between programs (all is one program), Cilium's IPAM (host-local instead)",
		NoServices: "its eBPF programs pass packets by the node's rules",
		Needs:      append([]netns.Feature{netns.Veth(), netns.BPFRedirect(), netns.BPFAtDevice()}, v.needs...),
		Plugins:    []string{"host-local"}, SetUp: v.setUp,
	}
	if v.tunnel != "" {
		// Outer Ethernet, IPv4 and UDP, and 8 bytes of VXLAN, or of Geneve without options.
		n.Encapsulation, n.Overhead = v.tunnel, overhead
	} else {
		n.NeedsEthernet = "its eBPF programs take Ethernet frames at the node's device, and WireGuard's device has packets without"
	}
	if !v.policy {
		n.LeavesOut = "connection tracking and the lookup of policy, which every packet of a real Cilium has (cilium/native-policy and cilium/vxlan-policy have them); " + n.LeavesOut
	} else {
		n.LeavesOut += "; IPv6; garbage collection of the connection table (least recently used go), TCP state in it"
	}
	n.Distance = distances()[v.name]
	if n.Distance == nil {
		n.LeavesOut += "; how many instructions that saves was not counted"
	}
	if v.netkit {
		n = onNetkit(n)
	}
	if v.policy {
		n.PodsAdded = func(_ context.Context, self network.Node, _ []network.Node, pods []network.Pod) error {
			return others(self, pods)
		}
	}
	text := strings.NewReplacer("$TUNNEL", v.tunnel, "$POLICY", strconv.FormatBool(v.policy), "$NETKIT", strconv.FormatBool(v.netkit)).Replace(conflist)
	n.Conflist = network.Template(text, n)
	return n
}

// distances are how many times the instructions of these models Cilium's own agents take for
// a datagram, as counted in docs/real.md.
func distances() map[string]*result.Distance {
	return map[string]*result.Distance{
		"cilium/native":        {BetweenNodesRatio: 1.48, InsideNodeRatio: 1.38},
		"cilium/native-policy": {BetweenNodesRatio: 1.24, InsideNodeRatio: 1.12},
		"cilium/vxlan":         {BetweenNodesRatio: 1.70, InsideNodeRatio: 1.36},
		"cilium/vxlan-policy":  {BetweenNodesRatio: 1.56, InsideNodeRatio: 1.11},
		"cilium/geneve":        {BetweenNodesRatio: 1.72, InsideNodeRatio: 1.37},
		"cilium/native+netkit": {BetweenNodesRatio: 1.46, InsideNodeRatio: 1.36},
	}
}

// tunnelDevice is the tunnel device's name: cilium_vxlan.
func tunnelDevice(tunnel string) string { return "cilium_" + tunnel }

// setUp does on a node what cilium-agent does.
func (v variant) setUp(_ context.Context, self network.Node, nodes []network.Node) error {
	if err := netns.SetSysctls(self.NS, network.Forwarding(self)...); err != nil {
		return err
	}
	if v.tunnel == "" { // auto-direct-node-routes
		if err := network.RouteByNode(self, nodes); err != nil {
			return err
		}
	}
	err := netns.Do(self.NS, func() error {
		if err := v.devices(self, nodes); err != nil {
			return err
		}
		return v.programs(self, nodes)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", self.Name, err)
	}
	return nil
}

// devices makes cilium_host, by which the node reaches pods, and the tunnel.
func (v variant) devices(self network.Node, nodes []network.Node) error {
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = ciliumHost, self.MTU
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: la, PeerName: ciliumNet, PeerMTU: uint32(self.MTU)}); err != nil {
		return fmt.Errorf("%s: %w", ciliumHost, err)
	}
	for _, name := range []string{ciliumNet, ciliumHost} {
		dev, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("device %s: %w", name, err)
		}
		if err := netlink.LinkSetARPOff(dev); err != nil {
			return fmt.Errorf("device %s: ARP off: %w", name, err)
		}
		if err := netlink.LinkSetUp(dev); err != nil {
			return fmt.Errorf("device %s: up: %w", name, err)
		}
	}
	if v.tunnel != "" {
		if err := v.tunnelDevice(self); err != nil {
			return err
		}
	}
	return v.hostRoutes(self, nodes)
}

// tunnelDevice makes a device that takes each packet's tunnel from the packet.
// It leaves with the port of Cilium's documents: 8472, or Geneve's 6081.
func (v variant) tunnelDevice(self network.Node) error {
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = tunnelDevice(v.tunnel), self.MTU-overhead
	var dev netlink.Link = &netlink.Vxlan{LinkAttrs: la, FlowBased: true, Port: 8472, Learning: false}
	if v.tunnel == "geneve" {
		dev = &netlink.Geneve{LinkAttrs: la, FlowBased: true, Dport: 6081}
	}
	if err := netlink.LinkAdd(dev); err != nil {
		return fmt.Errorf("%s: %w", la.Name, err)
	}
	if err := netlink.LinkSetUp(dev); err != nil {
		return fmt.Errorf("%s: up: %w", la.Name, err)
	}
	return nil
}

// ciliumRouter is the node's address among its pods, and their gateway: the
// first, which host-local keeps for a gateway.
func ciliumRouter(n network.Node) netip.Addr { return n.PodCIDR.Addr().Next() }

func ciliumRouter6(n network.Node) netip.Addr { return n.PodCIDR6.Addr().Next() }

// hostRoutes takes what the node itself sends to pods to cilium_host: to its
// own, and with a tunnel to all.
func (v variant) hostRoutes(self network.Node, nodes []network.Node) error {
	dev, err := netlink.LinkByName(ciliumHost)
	if err != nil {
		return fmt.Errorf("device %s: %w", ciliumHost, err)
	}
	router := netip.PrefixFrom(ciliumRouter(self), 32)
	if err := netlink.AddrAdd(dev, &netlink.Addr{IPNet: network.IPNet(router)}); err != nil {
		return fmt.Errorf("%s: address: %w", ciliumHost, err)
	}
	routes := []*netlink.Route{{Dst: network.IPNet(router), Scope: netlink.SCOPE_LINK}}
	for _, n := range nodes {
		if n.Index == self.Index || v.tunnel != "" {
			route := &netlink.Route{Dst: network.IPNet(n.PodCIDR), Gw: router.Addr().AsSlice(), Src: router.Addr().AsSlice()}
			if v.tunnel != "" {
				route.MTU = self.MTU - overhead
			}
			routes = append(routes, route)
		}
	}
	if self.Dual() {
		router := network.Single(ciliumRouter6(self))
		// At once: a route may not have a source that is still looked for elsewhere.
		if err := netlink.AddrAdd(dev, &netlink.Addr{IPNet: network.IPNet(router), Flags: unix.IFA_F_NODAD}); err != nil {
			return fmt.Errorf("%s: address: %w", ciliumHost, err)
		}
		for _, n := range nodes {
			if n.Index == self.Index || v.tunnel != "" {
				route := &netlink.Route{Dst: network.IPNet(n.PodCIDR6), Src: router.Addr().AsSlice()}
				if v.tunnel != "" {
					route.MTU = self.MTU - overhead
				}
				routes = append(routes, route)
			}
		}
	}
	for _, r := range routes {
		r.LinkIndex = dev.Attrs().Index
		if err := netlink.RouteReplace(r); err != nil {
			return fmt.Errorf("route to %s: %w", r.Dst, err)
		}
	}
	return nil
}

// programs loads and attaches what is the node's own, with maps that the pods'
// programs will share.
func (v variant) programs(self network.Node, nodes []network.Node) error {
	spec, err := bpf.LoadCilium()
	if err != nil {
		return err
	}
	if !v.policy { // the programs name the maps all the same
		spec.Maps[bpf.CiliumMapCnbCt].MaxEntries = 1
		spec.Maps[bpf.CiliumMapCnbPolicy].MaxEntries = 1
	}
	at := []struct {
		device, program string
		direction       dataplane.Direction
	}{
		{ciliumHost, bpf.CiliumProgCnbFromHost, dataplane.Egress()},
		{self.Device, bpf.CiliumProgCnbFromNetdev, dataplane.Ingress()},
	}
	if v.tunnel != "" {
		at = append(at, at[0])
		at[2].device, at[2].program, at[2].direction = tunnelDevice(v.tunnel), bpf.CiliumProgCnbFromOverlay, dataplane.Ingress()
	}
	var names []string
	for _, a := range at {
		names = append(names, a.program)
	}
	constants, err := ciliumConstants(self.Device, v.tunnel, v.policy)
	if err != nil {
		return err
	}
	constants[bpf.CiliumVarWithIpv6] = self.Dual()
	coll, err := dataplane.LoadEBPF(spec, constants, nil, names...)
	if err != nil {
		return err
	}
	defer coll.Close()
	if err := v.fill(coll.Maps, self, nodes); err != nil {
		return err
	}
	if self.Dual() {
		if err := v.fill6(coll.Maps, self, nodes); err != nil {
			return err
		}
	}
	for _, a := range at {
		dev, err := netlink.LinkByName(a.device)
		if err != nil {
			return fmt.Errorf("device %s: %w", a.device, err)
		}
		if err := dataplane.AttachEBPF(dev, a.direction, coll.Programs[a.program]); err != nil {
			return err
		}
	}
	return nil
}

// ciliumConstants are those that all programs of a node share.
func ciliumConstants(device, tunnel string, policy bool) (map[string]any, error) {
	dev, err := netlink.LinkByName(device)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", device, err)
	}
	c := map[string]any{bpf.CiliumVarNetdevIfindex: uint32(dev.Attrs().Index), bpf.CiliumVarWithPolicy: policy}
	if tunnel != "" {
		dev, err := netlink.LinkByName(tunnelDevice(tunnel))
		if err != nil {
			return nil, fmt.Errorf("device %s: %w", tunnelDevice(tunnel), err)
		}
		c[bpf.CiliumVarTunnelIfindex] = uint32(dev.Attrs().Index)
	}
	return c, nil
}

// fill writes what the node knows before it has pods: its own addresses, and
// who is where on other nodes. cilium-agent writes an entry for each pod; here
// all pods have one identity, so an entry for each node says the same.
func (v variant) fill(maps map[string]*ebpf.Map, self network.Node, nodes []network.Node) error {
	for _, a := range []netip.Addr{self.Address.Addr(), ciliumRouter(self)} {
		host := bpf.CiliumEndpoint{Identity: identityHost, Flags: endpointHost}
		if err := maps[bpf.CiliumMapCnbEndpoints].Put(dataplane.EBPFAddress(a), host); err != nil {
			return fmt.Errorf("endpoint %s: %w", a, err)
		}
	}
	for _, n := range nodes {
		pods := bpf.CiliumRemote{Identity: identityPods}
		node := bpf.CiliumRemote{Identity: identityRemoteNode}
		router := node
		if v.tunnel != "" && n.Index != self.Index {
			pods.Tunnel = dataplane.EBPFAddress(n.Address.Addr())
			router.Tunnel = pods.Tunnel
		}
		for prefix, r := range map[netip.Prefix]bpf.CiliumRemote{
			n.PodCIDR: pods, netip.PrefixFrom(n.Address.Addr(), 32): node, netip.PrefixFrom(ciliumRouter(n), 32): router,
		} {
			key := bpf.CiliumPrefix{Prefixlen: uint32(prefix.Bits()), Address: dataplane.EBPFAddress(prefix.Addr())}
			if err := maps[bpf.CiliumMapCnbIpcache].Put(key, r); err != nil {
				return fmt.Errorf("who has %s: %w", prefix, err)
			}
		}
	}
	return nil
}

// fill6 is fill for IPv6. Tunnels are in IPv4 all the same.
func (v variant) fill6(maps map[string]*ebpf.Map, self network.Node, nodes []network.Node) error {
	for _, a := range []netip.Addr{self.Address6.Addr(), ciliumRouter6(self)} {
		host := bpf.CiliumEndpoint{Identity: identityHost, Flags: endpointHost}
		if err := maps[bpf.CiliumMapCnbEndpoints6].Put(a.As16(), host); err != nil {
			return fmt.Errorf("endpoint %s: %w", a, err)
		}
	}
	for _, n := range nodes {
		pods := bpf.CiliumRemote{Identity: identityPods}
		if v.tunnel != "" && n.Index != self.Index {
			pods.Tunnel = dataplane.EBPFAddress(n.Address.Addr())
		}
		key := bpf.CiliumPrefix6{Prefixlen: uint32(n.PodCIDR6.Bits())}
		key.Address.In6U.U6Addr8 = n.PodCIDR6.Addr().As16()
		if err := maps[bpf.CiliumMapCnbIpcache6].Put(key, pods); err != nil {
			return fmt.Errorf("who has %s: %w", n.PodCIDR6, err)
		}
	}
	return nil
}

func macBytes(mac net.HardwareAddr) (b [6]uint8) {
	copy(b[:], mac)
	return b
}
