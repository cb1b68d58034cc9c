package network

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
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed cilium.conflist
var ciliumConflist string

// The names of Cilium's devices on a node.
const (
	ciliumHost = "cilium_host"
	ciliumNet  = "cilium_net"
)

// ciliumOverhead is what a tunnel of Cilium takes from the MTU, bytes.
const ciliumOverhead = 50

// Identities: Cilium's reserved ones, and that of all pods of a lab, which have
// no labels. In a tunnel it is the VNI.
const (
	identityHost       = 1
	identityRemoteNode = 6
	identityPods       = 256
)

// ciliumEndpointHost marks an address of the node itself: ENDPOINT_HOST.
const ciliumEndpointHost = 1

// ciliumVariant is one way in which Cilium can be configured.
type ciliumVariant struct {
	name, summary string
	tunnel        string // "", "vxlan", "geneve"
	policy        bool
	needs         []netns.Feature
}

func ciliumNative() Network {
	return ciliumVariant{
		name: "cilium/native", summary: "Cilium's eBPF host routing without encapsulation; no connection tracking, no policy",
	}.network()
}

func ciliumNativePolicy() Network {
	return ciliumVariant{
		name: "cilium/native-policy", policy: true,
		summary: "Cilium's eBPF host routing without encapsulation, each packet tracked and checked against a policy",
	}.network()
}

func ciliumVXLAN() Network {
	return ciliumVariant{
		name: "cilium/vxlan", tunnel: "vxlan", needs: []netns.Feature{netns.VXLAN()},
		summary: "Cilium's eBPF datapath, VXLAN between nodes; no connection tracking, no policy",
	}.network()
}

func ciliumVXLANPolicy() Network {
	return ciliumVariant{
		name: "cilium/vxlan-policy", tunnel: "vxlan", policy: true, needs: []netns.Feature{netns.VXLAN()},
		summary: "Cilium's eBPF datapath, VXLAN between nodes, each packet tracked and checked against a policy",
	}.network()
}

func ciliumGeneve() Network {
	return ciliumVariant{
		name: "cilium/geneve", tunnel: "geneve", needs: []netns.Feature{netns.Geneve()},
		summary: "Cilium's eBPF datapath, Geneve between nodes; no connection tracking, no policy",
	}.network()
}

func (v ciliumVariant) network() Network {
	n := Network{
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
		n.Encapsulation, n.Overhead = v.tunnel, ciliumOverhead
	}
	if !v.policy {
		n.LeavesOut = "connection tracking and the lookup of policy, which every packet of a real Cilium has (cilium/native-policy and cilium/vxlan-policy have them); " + n.LeavesOut
	} else {
		n.LeavesOut += "; IPv6; garbage collection of the connection table (least recently used go), TCP state in it"
	}
	if v.policy {
		n.PodsAdded = func(_ context.Context, self Node, _ []Node, pods []Pod) error { return ciliumOthers(self, pods) }
	}
	text := strings.NewReplacer("$TUNNEL", v.tunnel, "$POLICY", strconv.FormatBool(v.policy)).Replace(ciliumConflist)
	n.Conflist = template(text, n)
	return n
}

// ciliumTunnelDevice is the tunnel device's name: cilium_vxlan.
func ciliumTunnelDevice(tunnel string) string { return "cilium_" + tunnel }

// setUp does on a node what cilium-agent does.
func (v ciliumVariant) setUp(_ context.Context, self Node, nodes []Node) error {
	if err := netns.SetSysctls(self.NS, forwarding(self)...); err != nil {
		return err
	}
	if v.tunnel == "" { // auto-direct-node-routes
		if err := routeByNode(self, nodes); err != nil {
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
func (v ciliumVariant) devices(self Node, nodes []Node) error {
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
func (v ciliumVariant) tunnelDevice(self Node) error {
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = ciliumTunnelDevice(v.tunnel), self.MTU-ciliumOverhead
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
func ciliumRouter(n Node) netip.Addr { return n.PodCIDR.Addr().Next() }

func ciliumRouter6(n Node) netip.Addr { return n.PodCIDR6.Addr().Next() }

// hostRoutes takes what the node itself sends to pods to cilium_host: to its
// own, and with a tunnel to all.
func (v ciliumVariant) hostRoutes(self Node, nodes []Node) error {
	dev, err := netlink.LinkByName(ciliumHost)
	if err != nil {
		return fmt.Errorf("device %s: %w", ciliumHost, err)
	}
	router := netip.PrefixFrom(ciliumRouter(self), 32)
	if err := netlink.AddrAdd(dev, &netlink.Addr{IPNet: ipNet(router)}); err != nil {
		return fmt.Errorf("%s: address: %w", ciliumHost, err)
	}
	routes := []*netlink.Route{{Dst: ipNet(router), Scope: netlink.SCOPE_LINK}}
	for _, n := range nodes {
		if n.Index == self.Index || v.tunnel != "" {
			route := &netlink.Route{Dst: ipNet(n.PodCIDR), Gw: router.Addr().AsSlice(), Src: router.Addr().AsSlice()}
			if v.tunnel != "" {
				route.MTU = self.MTU - ciliumOverhead
			}
			routes = append(routes, route)
		}
	}
	if self.dual() {
		router := single(ciliumRouter6(self))
		// At once: a route may not have a source that is still looked for elsewhere.
		if err := netlink.AddrAdd(dev, &netlink.Addr{IPNet: ipNet(router), Flags: unix.IFA_F_NODAD}); err != nil {
			return fmt.Errorf("%s: address: %w", ciliumHost, err)
		}
		for _, n := range nodes {
			if n.Index == self.Index || v.tunnel != "" {
				route := &netlink.Route{Dst: ipNet(n.PodCIDR6), Src: router.Addr().AsSlice()}
				if v.tunnel != "" {
					route.MTU = self.MTU - ciliumOverhead
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
func (v ciliumVariant) programs(self Node, nodes []Node) error {
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
		direction       direction
	}{
		{ciliumHost, bpf.CiliumProgCnbFromHost, egress()},
		{self.Device, bpf.CiliumProgCnbFromNetdev, ingress()},
	}
	if v.tunnel != "" {
		at = append(at, at[0])
		at[2].device, at[2].program, at[2].direction = ciliumTunnelDevice(v.tunnel), bpf.CiliumProgCnbFromOverlay, ingress()
	}
	var names []string
	for _, a := range at {
		names = append(names, a.program)
	}
	constants, err := ciliumConstants(self.Device, v.tunnel, v.policy)
	if err != nil {
		return err
	}
	constants[bpf.CiliumVarWithIpv6] = self.dual()
	coll, err := loadEBPF(spec, constants, nil, names...)
	if err != nil {
		return err
	}
	defer coll.Close()
	if err := v.fill(coll.Maps, self, nodes); err != nil {
		return err
	}
	if self.dual() {
		if err := v.fill6(coll.Maps, self, nodes); err != nil {
			return err
		}
	}
	for _, a := range at {
		dev, err := netlink.LinkByName(a.device)
		if err != nil {
			return fmt.Errorf("device %s: %w", a.device, err)
		}
		if err := attachEBPF(dev, a.direction, coll.Programs[a.program]); err != nil {
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
		dev, err := netlink.LinkByName(ciliumTunnelDevice(tunnel))
		if err != nil {
			return nil, fmt.Errorf("device %s: %w", ciliumTunnelDevice(tunnel), err)
		}
		c[bpf.CiliumVarTunnelIfindex] = uint32(dev.Attrs().Index)
	}
	return c, nil
}

// fill writes what the node knows before it has pods: its own addresses, and
// who is where on other nodes. cilium-agent writes an entry for each pod; here
// all pods have one identity, so an entry for each node says the same.
func (v ciliumVariant) fill(maps map[string]*ebpf.Map, self Node, nodes []Node) error {
	for _, a := range []netip.Addr{self.Address.Addr(), ciliumRouter(self)} {
		host := bpf.CiliumEndpoint{Identity: identityHost, Flags: ciliumEndpointHost}
		if err := maps[bpf.CiliumMapCnbEndpoints].Put(ebpfAddress(a), host); err != nil {
			return fmt.Errorf("endpoint %s: %w", a, err)
		}
	}
	for _, n := range nodes {
		pods := bpf.CiliumRemote{Identity: identityPods}
		node := bpf.CiliumRemote{Identity: identityRemoteNode}
		router := node
		if v.tunnel != "" && n.Index != self.Index {
			pods.Tunnel = ebpfAddress(n.Address.Addr())
			router.Tunnel = pods.Tunnel
		}
		for prefix, r := range map[netip.Prefix]bpf.CiliumRemote{
			n.PodCIDR: pods, netip.PrefixFrom(n.Address.Addr(), 32): node, netip.PrefixFrom(ciliumRouter(n), 32): router,
		} {
			key := bpf.CiliumPrefix{Prefixlen: uint32(prefix.Bits()), Address: ebpfAddress(prefix.Addr())}
			if err := maps[bpf.CiliumMapCnbIpcache].Put(key, r); err != nil {
				return fmt.Errorf("who has %s: %w", prefix, err)
			}
		}
	}
	return nil
}

// fill6 is fill for IPv6. Tunnels are in IPv4 all the same.
func (v ciliumVariant) fill6(maps map[string]*ebpf.Map, self Node, nodes []Node) error {
	for _, a := range []netip.Addr{self.Address6.Addr(), ciliumRouter6(self)} {
		host := bpf.CiliumEndpoint{Identity: identityHost, Flags: ciliumEndpointHost}
		if err := maps[bpf.CiliumMapCnbEndpoints6].Put(a.As16(), host); err != nil {
			return fmt.Errorf("endpoint %s: %w", a, err)
		}
	}
	for _, n := range nodes {
		pods := bpf.CiliumRemote{Identity: identityPods}
		if v.tunnel != "" && n.Index != self.Index {
			pods.Tunnel = ebpfAddress(n.Address.Addr())
		}
		key := bpf.CiliumPrefix6{Prefixlen: uint32(n.PodCIDR6.Bits())}
		key.Address.In6U.U6Addr8 = n.PodCIDR6.Addr().As16()
		if err := maps[bpf.CiliumMapCnbIpcache6].Put(key, pods); err != nil {
			return fmt.Errorf("who has %s: %w", n.PodCIDR6, err)
		}
	}
	return nil
}

// ebpfAddress is an IPv4 address as it is in a packet, for a little-endian
// machine, for which alone the programs are compiled.
func ebpfAddress(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// ciliumPolicy gives the entries of one endpoint: what PolicyPorts says, both
// ways, for nodes and pods.
func ciliumPolicy(endpoint uint32) []bpf.CiliumPolicyKey {
	return ciliumAllow(endpoint, identityHost, identityRemoteNode, identityPods)
}

// ciliumAllow gives the entries that let an endpoint and some identities speak
// to each other. A range of ports is a few prefixes.
func ciliumAllow(endpoint uint32, identities ...uint32) []bpf.CiliumPolicyKey {
	const fixed = 8 * (4 + 4 + 1 + 1) // endpoint, identity, direction, protocol
	var keys []bpf.CiliumPolicyKey
	first, last := PolicyPorts()
	for port, bits := uint32(first), 0; port <= uint32(last); port += 1 << (16 - bits) {
		for bits = 0; port%(1<<(16-bits)) != 0 || port+1<<(16-bits)-1 > uint32(last); {
			bits++
		}
		for _, identity := range identities {
			for direction := range uint8(2) {
				for _, protocol := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
					keys = append(keys, bpf.CiliumPolicyKey{
						Prefixlen: uint32(fixed + bits), Endpoint: endpoint, Identity: identity,
						Direction: direction, Protocol: protocol, Port: uint16(port>>8 | port<<8),
					})
				}
			}
		}
	}
	return keys
}

func macBytes(mac net.HardwareAddr) (b [6]uint8) {
	copy(b[:], mac)
	return b
}
