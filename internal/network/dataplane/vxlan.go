// Package dataplane is what several families of networks build their datapaths from:
// tunnels, sets and rules, Open vSwitch, eBPF programs, forwarders in user space.
package dataplane

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

// VXLANPort is the port that IANA gave to VXLAN (RFC 7348).
const VXLANPort = 4789

// VXLAN is a VXLAN device on each node whose entries are all static, as
// flannel (v0.28.0, pkg/backend/vxlan) and Calico (v3.27, felix/vxlan) make it.
type VXLAN struct {
	Device              string
	VNI, Port, Overhead int
	// Address is a node's own on the tunnel.
	Address func(network.Node) netip.Addr
	// Six: it carries IPv6 in IPv6. Agents have a tunnel for each family.
	Six bool
}

// outer is a node's address around what is in the tunnel, pods what is behind
// the node.
func (v VXLAN) outer(n network.Node) netip.Addr {
	if v.Six {
		return n.Address6.Addr()
	}
	return n.Address.Addr()
}

func (v VXLAN) pods(n network.Node) netip.Prefix {
	if v.Six {
		return n.PodCIDR6
	}
	return n.PodCIDR
}

// vtepMAC is a node's address on the tunnel. Agents draw one and publish it;
// here all nodes know all others', so it is made of the node's number.
func vtepMAC(n network.Node) net.HardwareAddr {
	return net.HardwareAddr{0x0e, 0xcb, 0, 0, byte(n.Index >> 8), byte(n.Index)}
}

// Make makes the device and the entries to each other node, in the order of
// flannel's vxlan_network.go: neighbour, forwarding entry, and last the route,
// so that the kernel never asks for the address on the tunnel.
func (v VXLAN) Make(self network.Node, nodes []network.Node) error {
	h, err := netns.Handle(self.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	under, err := netns.Link(h, self.Device)
	if err != nil {
		return err
	}
	la := netlink.NewLinkAttrs()
	la.Name, la.HardwareAddr, la.MTU = v.Device, vtepMAC(self), self.MTU-v.Overhead
	vxlan := &netlink.Vxlan{
		LinkAttrs: la, VxlanId: v.VNI, VtepDevIndex: under.Attrs().Index,
		SrcAddr: v.outer(self).AsSlice(), Port: v.Port, Learning: false,
	}
	if err := h.LinkAdd(vxlan); err != nil {
		return fmt.Errorf("%s on %s: %w", v.Device, self.Name, err)
	}
	if err := TunnelUp(h, vxlan, v.Address(self)); err != nil {
		return fmt.Errorf("%s on %s: %w", v.Device, self.Name, err)
	}
	for _, peer := range nodes {
		if peer.Index == self.Index {
			continue
		}
		if err := v.peer(h, vxlan.Index, peer); err != nil {
			return fmt.Errorf("%s on %s: to %s: %w", v.Device, self.Name, peer.Name, err)
		}
	}
	return nil
}

func (v VXLAN) peer(h *netlink.Handle, device int, peer network.Node) error {
	address := v.Address(peer).AsSlice()
	err := h.NeighSet(&netlink.Neigh{
		LinkIndex: device, State: netlink.NUD_PERMANENT, Type: unix.RTN_UNICAST,
		IP: address, HardwareAddr: vtepMAC(peer),
	})
	if err != nil {
		return fmt.Errorf("neighbour: %w", err)
	}
	err = h.NeighSet(&netlink.Neigh{
		LinkIndex: device, State: netlink.NUD_PERMANENT, Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF,
		IP: v.outer(peer).AsSlice(), HardwareAddr: vtepMAC(peer),
	})
	if err != nil {
		return fmt.Errorf("forwarding entry: %w", err)
	}
	err = h.RouteReplace(&netlink.Route{
		LinkIndex: device, Scope: netlink.SCOPE_UNIVERSE, Dst: network.IPNet(v.pods(peer)), Gw: address,
		Flags: int(netlink.FLAG_ONLINK),
	})
	if err != nil {
		return fmt.Errorf("route: %w", err)
	}
	return nil
}

// TunnelUp gives a tunnel device its address, alone in its prefix so that no broadcast
// routes come with it, and sets it up.
func TunnelUp(h *netlink.Handle, dev netlink.Link, address netip.Addr) error {
	if err := h.AddrAdd(dev, &netlink.Addr{IPNet: network.IPNet(network.Single(address))}); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if err := h.LinkSetUp(dev); err != nil {
		return fmt.Errorf("up: %w", err)
	}
	return nil
}
