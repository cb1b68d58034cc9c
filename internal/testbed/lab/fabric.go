package lab

import (
	"fmt"
	"os"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

// fabricSettings make a switch of the fabric's bridge: no IPv6 of its own, and
// no packet passes iptables.
func fabricSettings() []netns.Setting {
	settings := []netns.Setting{
		{Path: "net/ipv6/conf/all/disable_ipv6", Value: "1"},
		{Path: "net/ipv6/conf/default/disable_ipv6", Value: "1"},
		{Path: "net/bridge/bridge-nf-call-iptables", Value: "0"},
		{Path: "net/bridge/bridge-nf-call-ip6tables", Value: "0"},
		{Path: "net/bridge/bridge-nf-call-arptables", Value: "0"},
	}
	var there []netns.Setting
	for _, s := range settings { // br_netfilter and IPv6 may not be in the kernel
		if _, err := os.Stat("/proc/sys/" + s.Path); err == nil {
			there = append(there, s)
		}
	}
	return there
}

// wire makes the fabric's switch and each node's link to it.
func (c *cluster) wire(fabric netns.NS) error {
	h, err := netns.Handle(fabric)
	if err != nil {
		return err
	}
	defer h.Close()
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = "br0", c.spec.MTU
	quiet := false
	bridge := &netlink.Bridge{LinkAttrs: la, MulticastSnooping: &quiet}
	if err := h.LinkAdd(bridge); err != nil {
		return fmt.Errorf("fabric %s: bridge: %w", fabric.Name, err)
	}
	if err := h.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("fabric %s: bridge: %w", fabric.Name, err)
	}
	for _, n := range c.nodes {
		if err := c.connect(h, bridge.Index, n); err != nil {
			return fmt.Errorf("fabric %s: %s: %w", fabric.Name, n.Name, err)
		}
		if err := nodeSide(n); err != nil {
			return fmt.Errorf("fabric %s: %s: %w", fabric.Name, n.Name, err)
		}
	}
	return nil
}

// connect makes a veth between the switch and a node, shaped at the port.
func (c *cluster) connect(h *netlink.Handle, bridge int, n network.Node) error {
	node, err := os.Open(n.NS.Path)
	if err != nil {
		return err
	}
	defer node.Close()
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU, la.MasterIndex = n.Name, n.MTU, bridge
	port := &netlink.Veth{LinkAttrs: la, PeerName: n.Device, PeerNamespace: netlink.NsFd(int(node.Fd()))}
	if err := h.LinkAdd(port); err != nil {
		return fmt.Errorf("veth: %w", err)
	}
	if err := h.LinkSetUp(port); err != nil {
		return fmt.Errorf("port up: %w", err)
	}
	if c.link.RateBitsPerSecond > 0 {
		if err := h.QdiscAdd(c.link.shape(port)); err != nil {
			return fmt.Errorf("shape to %s: %w", c.link.Name, err)
		}
	}
	return checkMTU(port.Name, h, n.MTU)
}

// nodeSide gives the node its address.
func nodeSide(n network.Node) error {
	h, err := netns.Handle(n.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	dev, err := netns.Link(h, n.Device)
	if err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(n.Address.String())
	if err != nil {
		return err
	}
	if err := h.AddrAdd(dev, addr); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if err := h.LinkSetUp(dev); err != nil {
		return fmt.Errorf("%s up: %w", n.Device, err)
	}
	return checkMTU(n.Device, h, n.MTU)
}

// checkMTU reads an MTU back.
func checkMTU(device string, h *netlink.Handle, want int) error {
	l, err := netns.Link(h, device)
	if err != nil {
		return err
	}
	if got := l.Attrs().MTU; got != want {
		return fmt.Errorf("%s: asked for an MTU of %d, it is %d", device, want, got)
	}
	return nil
}
