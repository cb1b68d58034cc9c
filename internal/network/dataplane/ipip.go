package dataplane

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

// IPIPOverhead is the outer IPv4 header.
const IPIPOverhead = 20

// IPIP is an IP in IP device on each node and a route through it to each
// other node's pods.
type IPIP struct {
	Device string
	// Local binds the device to the node's own address, as flannel does; Calico
	// takes tunl0, which takes all.
	Local   bool
	Address func(network.Node) netip.Addr
}

// Make makes the device of a node, or takes the one that exists, and sets the routes.
func (t IPIP) Make(self network.Node, nodes []network.Node) error {
	h, err := netns.Handle(self.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	dev, err := t.link(h, self)
	if err != nil {
		return fmt.Errorf("%s on %s: %w", t.Device, self.Name, err)
	}
	if err := h.LinkSetMTU(dev, self.MTU-IPIPOverhead); err != nil {
		return fmt.Errorf("%s on %s: MTU: %w", t.Device, self.Name, err)
	}
	if err := TunnelUp(h, dev, t.Address(self)); err != nil {
		return fmt.Errorf("%s on %s: %w", t.Device, self.Name, err)
	}
	for _, peer := range nodes {
		if peer.Index == self.Index {
			continue
		}
		err := h.RouteReplace(&netlink.Route{
			LinkIndex: dev.Attrs().Index, Dst: network.IPNet(peer.PodCIDR), Gw: peer.Address.Addr().AsSlice(),
			Flags: int(netlink.FLAG_ONLINK),
		})
		if err != nil {
			return fmt.Errorf("%s on %s: route to the pods of %s: %w", t.Device, self.Name, peer.Name, err)
		}
	}
	return nil
}

// link finds the device, or makes it: tunl0 is in every namespace of most
// kernels that have the module.
func (t IPIP) link(h *netlink.Handle, self network.Node) (netlink.Link, error) {
	l, err := netns.Link(h, t.Device)
	var gone netlink.LinkNotFoundError
	if !errors.As(err, &gone) {
		return l, err
	}
	la := netlink.NewLinkAttrs()
	la.Name = t.Device
	tun := &netlink.Iptun{LinkAttrs: la}
	if t.Local {
		tun.Local = self.Address.Addr().AsSlice()
	}
	if err := h.LinkAdd(tun); err != nil {
		return nil, err
	}
	return tun, nil
}
