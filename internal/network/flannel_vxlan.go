package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
)

// flanneld's defaults (flannel v0.28.0, pkg/backend/vxlan): VNI 1, the Linux
// kernel's own UDP port, 50 bytes of outer Ethernet, IPv4, UDP and VXLAN
// headers.
const (
	flannelVNI      = 1
	flannelPort     = 8472
	flannelDevice   = "flannel.1"
	flannelOverhead = 50
)

// flannelVXLAN does what flannel's backend vxlan does.
func flannelVXLAN() Network {
	n := Network{
		Name:          "flannel/vxlan",
		Summary:       "flannel with VXLAN between nodes: cni0 bridge, flannel.1 tunnel",
		Model:         "flannel v0.28.0 pkg/backend/vxlan, its delegate to the bridge plugin in Documentation/kube-flannel.yml",
		LeavesOut:     flannelLeavesOut,
		Encapsulation: "vxlan",
		Overhead:      flannelOverhead,
		Needs:         []netns.Feature{netns.Veth(), netns.Bridge(), netns.VXLAN()},
		Wants:         []netns.Feature{netns.BridgeNetfilter()},
		Plugins:       []string{"bridge", "host-local"},
		SetUp: func(_ context.Context, self Node, nodes []Node) error {
			if err := kubernetesNode(self); err != nil {
				return err
			}
			return vxlanNode(self, nodes)
		},
	}
	n.Conflist = template(flannelConflist, n)
	return n
}

// vtepMAC is a node's address on the tunnel. flanneld draws one and publishes
// it; here all nodes know all others', so it is made of the node's number.
func vtepMAC(n Node) net.HardwareAddr {
	return net.HardwareAddr{0x0e, 0xcb, 0, 0, byte(n.Index >> 8), byte(n.Index)}
}

// vxlanNode makes flannel.1 and the entries to each other node, in the order of
// vxlan_network.go: neighbour, forwarding entry, and last the route, so that
// the kernel never asks for the address on the tunnel.
func vxlanNode(self Node, nodes []Node) error {
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
	la.Name, la.HardwareAddr, la.MTU = flannelDevice, vtepMAC(self), self.MTU-flannelOverhead
	vxlan := &netlink.Vxlan{
		LinkAttrs: la, VxlanId: flannelVNI, VtepDevIndex: under.Attrs().Index,
		SrcAddr: self.Address.Addr().AsSlice(), Port: flannelPort, Learning: false,
	}
	if err := h.LinkAdd(vxlan); err != nil {
		return fmt.Errorf("%s on %s: %w", flannelDevice, self.Name, err)
	}
	// A /32, so that no broadcast routes come with it.
	subnet := netip.PrefixFrom(self.PodCIDR.Addr(), 32)
	if err := h.AddrAdd(vxlan, &netlink.Addr{IPNet: ipNet(subnet)}); err != nil {
		return fmt.Errorf("%s on %s: address: %w", flannelDevice, self.Name, err)
	}
	if err := h.LinkSetUp(vxlan); err != nil {
		return fmt.Errorf("%s on %s: up: %w", flannelDevice, self.Name, err)
	}
	for _, peer := range nodes {
		if peer.Index == self.Index {
			continue
		}
		if err := vxlanPeer(h, vxlan.Index, peer); err != nil {
			return fmt.Errorf("%s on %s: to %s: %w", flannelDevice, self.Name, peer.Name, err)
		}
	}
	return nil
}

func vxlanPeer(h *netlink.Handle, device int, peer Node) error {
	subnet := peer.PodCIDR.Addr().AsSlice()
	err := h.NeighSet(&netlink.Neigh{
		LinkIndex: device, State: netlink.NUD_PERMANENT, Type: unix.RTN_UNICAST,
		IP: subnet, HardwareAddr: vtepMAC(peer),
	})
	if err != nil {
		return fmt.Errorf("neighbour: %w", err)
	}
	err = h.NeighSet(&netlink.Neigh{
		LinkIndex: device, State: netlink.NUD_PERMANENT, Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF,
		IP: peer.Address.Addr().AsSlice(), HardwareAddr: vtepMAC(peer),
	})
	if err != nil {
		return fmt.Errorf("forwarding entry: %w", err)
	}
	err = h.RouteReplace(&netlink.Route{
		LinkIndex: device, Scope: netlink.SCOPE_UNIVERSE, Dst: ipNet(peer.PodCIDR), Gw: subnet,
		Flags: int(netlink.FLAG_ONLINK),
	})
	if err != nil {
		return fmt.Errorf("route: %w", err)
	}
	return nil
}
