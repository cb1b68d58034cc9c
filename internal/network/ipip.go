package network

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
)

// ipipOverhead is the outer IPv4 header.
const ipipOverhead = 20

// ipipTunnel is an IP in IP device on each node and a route through it to each
// other node's pods.
type ipipTunnel struct {
	device string
	// local binds the device to the node's own address, as flannel does; Calico
	// takes tunl0, which takes all.
	local   bool
	address func(Node) netip.Addr
}

func (t ipipTunnel) make(self Node, nodes []Node) error {
	h, err := netns.Handle(self.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	dev, err := t.link(h, self)
	if err != nil {
		return fmt.Errorf("%s on %s: %w", t.device, self.Name, err)
	}
	if err := h.LinkSetMTU(dev, self.MTU-ipipOverhead); err != nil {
		return fmt.Errorf("%s on %s: MTU: %w", t.device, self.Name, err)
	}
	if err := tunnelUp(h, dev, t.address(self)); err != nil {
		return fmt.Errorf("%s on %s: %w", t.device, self.Name, err)
	}
	for _, peer := range nodes {
		if peer.Index == self.Index {
			continue
		}
		err := h.RouteReplace(&netlink.Route{
			LinkIndex: dev.Attrs().Index, Dst: ipNet(peer.PodCIDR), Gw: peer.Address.Addr().AsSlice(),
			Flags: int(netlink.FLAG_ONLINK),
		})
		if err != nil {
			return fmt.Errorf("%s on %s: route to the pods of %s: %w", t.device, self.Name, peer.Name, err)
		}
	}
	return nil
}

// link finds the device, or makes it: tunl0 is in every namespace of most
// kernels that have the module.
func (t ipipTunnel) link(h *netlink.Handle, self Node) (netlink.Link, error) {
	l, err := netns.Link(h, t.device)
	var gone netlink.LinkNotFoundError
	if !errors.As(err, &gone) {
		return l, err
	}
	la := netlink.NewLinkAttrs()
	la.Name = t.device
	tun := &netlink.Iptun{LinkAttrs: la}
	if t.local {
		tun.Local = self.Address.Addr().AsSlice()
	}
	if err := h.LinkAdd(tun); err != nil {
		return nil, err
	}
	return tun, nil
}
