package network

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
)

// KubernetesNode sets what the documents of Kubernetes ask of a node whose pods
// are on a bridge: forwarding, and bridged packets passing iptables (where the
// kernel can: br_netfilter is wanted, not needed).
func KubernetesNode(self Node) error {
	settings := Forwarding(self)
	bridged := []string{"net/bridge/bridge-nf-call-iptables"}
	if self.Dual() {
		bridged = append(bridged, "net/bridge/bridge-nf-call-ip6tables")
	}
	for _, path := range bridged {
		if _, err := netns.Sysctl(self.NS, path); err == nil {
			settings = append(settings, netns.Setting{Path: path, Value: "1"})
		}
	}
	return netns.SetSysctls(self.NS, settings...)
}

// Forwarding is what makes a node a router, of each family that it has.
func Forwarding(self Node) []netns.Setting {
	settings := []netns.Setting{{Path: "net/ipv4/ip_forward", Value: "1"}}
	if self.Dual() {
		settings = append(settings, netns.Setting{Path: "net/ipv6/conf/all/forwarding", Value: "1"})
	}
	return settings
}

// RouteByNode sets on self a route to each other node's pods through that
// node's address.
func RouteByNode(self Node, nodes []Node) error {
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
		if self.Dual() {
			ways[peer.PodCIDR6] = peer.Address6
		}
		for pods, node := range ways {
			err := h.RouteReplace(&netlink.Route{LinkIndex: dev.Attrs().Index, Dst: IPNet(pods), Gw: node.Addr().AsSlice()})
			if err != nil {
				return fmt.Errorf("%s: route to the pods of %s: %w", self.Name, peer.Name, err)
			}
		}
	}
	return nil
}

// DefaultRoute stands for every real node's: the kernel answers the pods' ARP
// for 169.254.1.1 only where it has a route to that address. Nobody need be at
// the gateway, the last address of the nodes' subnet.
func DefaultRoute(self Node) error {
	h, dev, err := netns.Port{NS: self.NS, Device: self.Device}.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	gateway := LastAddress(self.Address)
	err = h.RouteReplace(&netlink.Route{LinkIndex: dev.Attrs().Index, Gw: gateway.AsSlice()})
	if err != nil {
		return fmt.Errorf("%s: default route via %s: %w", self.Name, gateway, err)
	}
	return nil
}
