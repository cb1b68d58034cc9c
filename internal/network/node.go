package network

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	texttemplate "text/template"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
)

// KubernetesNode sets what the documents of Kubernetes ask of a node whose pods
// are on a bridge: forwarding, and bridged packets passing iptables (where the
// kernel can: br_netfilter is wanted, not needed).
func KubernetesNode(self Node) error {
	settings := forwarding(self)
	bridged := []string{"net/bridge/bridge-nf-call-iptables"}
	if self.dual() {
		bridged = append(bridged, "net/bridge/bridge-nf-call-ip6tables")
	}
	for _, path := range bridged {
		if _, err := netns.Sysctl(self.NS, path); err == nil {
			settings = append(settings, netns.Setting{Path: path, Value: "1"})
		}
	}
	return netns.SetSysctls(self.NS, settings...)
}

// forwarding is what makes a node a router, of each family that it has.
func forwarding(self Node) []netns.Setting {
	settings := []netns.Setting{{Path: "net/ipv4/ip_forward", Value: "1"}}
	if self.dual() {
		settings = append(settings, netns.Setting{Path: "net/ipv6/conf/all/forwarding", Value: "1"})
	}
	return settings
}

// routeByNode sets on self a route to each other node's pods through that
// node's address.
func routeByNode(self Node, nodes []Node) error {
	h, dev, err := netns.Port{NS: self.NS, Device: self.Device}.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", self.Name, err)
	}
	defer h.Close()
	for _, peer := range nodes {
		if peer.Index == self.Index {
			continue
		}
		ways := map[netip.Prefix]netip.Prefix{peer.PodCIDR: peer.Address}
		if self.dual() {
			ways[peer.PodCIDR6] = peer.Address6
		}
		for pods, node := range ways {
			err := h.RouteReplace(&netlink.Route{LinkIndex: dev.Attrs().Index, Dst: ipNet(pods), Gw: node.Addr().AsSlice()})
			if err != nil {
				return fmt.Errorf("%s: route to the pods of %s: %w", self.Name, peer.Name, err)
			}
		}
	}
	return nil
}

// conflistData is what the templates beside the networks are filled from.
type conflistData struct {
	PodCIDR, Pods, First, Last, Device string
	Services                           string // ServiceRange
	PodMTU                             int
	Node                               Node
	// Ranges are host-local's ranges of the node's pods, of each family; in
	// SharedRanges the subnet is that of all nodes' pods. Routes are to all pods.
	Ranges, SharedRanges, Routes string
	// Underlay is the nodes' own subnet, of which this node may give
	// UnderlayFirst to UnderlayLast to pods.
	Underlay, UnderlayFirst, UnderlayLast string
	// Sandbox is the file of the namespace that dockerSandbox names.
	Sandbox string
	// Gateway is the address of a node's bridge, where that is none of the
	// range's first.
	Gateway string
	// OVS is the folder of the node's Open vSwitch.
	OVS string
}

// template makes a Network's Conflist of a text/template.
func template(text string, n Network) func(Node, []Node) ([]byte, error) {
	return func(self Node, _ []Node) ([]byte, error) {
		t, err := texttemplate.New(n.Name).Option("missingkey=error").Parse(text)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		underlay := underlayRange(self)
		ranges, shared, routes := hostLocalRanges(self)
		err = t.Execute(&b, conflistData{
			PodCIDR: self.PodCIDR.String(), Pods: Pods().String(), Services: ServiceRange().String(),
			First: self.PodCIDR.Addr().Next().Next().String(), Last: lastAddress(self.PodCIDR).String(),
			Device: self.Device, PodMTU: n.PodMTUOn(self), Node: self,
			Ranges: ranges, SharedRanges: shared, Routes: routes,
			Underlay:      self.Address.Masked().String(),
			UnderlayFirst: underlay.Addr().Next().String(), UnderlayLast: lastAddress(underlay).String(),
			Sandbox: dockerSandbox(self).Path, OVS: ovsDir(self), Gateway: weaveGateway(self).String(),
		})
		if err != nil {
			return nil, err
		}
		if !json.Valid(b.Bytes()) {
			return nil, fmt.Errorf("conflist of %s: not valid JSON:\n%s", n.Name, b.Bytes())
		}
		return b.Bytes(), nil
	}
}

// hostLocalRanges are the fields Ranges, SharedRanges and Routes of a node.
func hostLocalRanges(self Node) (ranges, shared, routes string) {
	add := func(pods, all netip.Prefix, first, last netip.Addr) {
		comma := ""
		if ranges != "" {
			comma = ", "
		}
		ranges += fmt.Sprintf(`%s[{"subnet": "%s"}]`, comma, pods)
		shared += fmt.Sprintf(`%s[{"subnet": "%s", "rangeStart": "%s", "rangeEnd": "%s"}]`, comma, all, first, last)
		routes += fmt.Sprintf(`%s{"dst": "%s"}`, comma, all)
	}
	add(self.PodCIDR, Pods(), self.PodCIDR.Addr().Next().Next(), lastAddress(self.PodCIDR))
	if self.dual() {
		first := self.PodCIDR6.Addr().Next().Next()
		last := self.PodCIDR6.Addr().As16()
		last[14], last[15] = 0xff, 0xfe
		add(self.PodCIDR6, Pods6(), first, netip.AddrFrom16(last))
	}
	return "[" + ranges + "]", "[" + shared + "]", "[" + routes + "]"
}

// underlayRange is the part of the nodes' subnet that is one node's to give to
// pods: 198.18.N.0/24 of 198.18.0.0/16, of which nodes themselves have the
// addresses 198.18.0.1 to 198.18.0.254.
func underlayRange(self Node) netip.Prefix {
	a := self.Address.Masked().Addr().As4()
	a[2] = byte(self.Index)
	return netip.PrefixFrom(netip.AddrFrom4(a), 24)
}

// lastAddress is the last address of an IPv4 prefix that a device can have.
func lastAddress(p netip.Prefix) netip.Addr {
	a := p.Masked().Addr().As4()
	for i := p.Bits(); i < 31; i++ {
		a[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(a)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
