package weave

import (
	"context"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// What weave's fast datapath has: the UDP port after the router's, and 84
// bytes less than the link's MTU: 50 for VXLAN and 34 kept for IPsec, as
// net/bridge.go reckons its default of 1376 from Google's 1460.
const (
	weaveODP       = "datapath"
	weaveVXLAN     = "vxlan-6784"
	weaveVXLANPort = weavePort + 1
	weaveOverhead  = 84

	weaveBridgePort, weaveTunnelPort = 1, 2
)

// Fastdp is Weave Net as it is by default: a bridge wired to a datapath of
// Open vSwitch in the kernel. That it is in the kernel is what it is for, so
// one in user space would be no model of it.
func Fastdp() network.Network {
	n := network.Network{
		Kind:    result.KindOwnPlugin,
		NoXDP:   noXDP,
		Name:    "weave/fastdp",
		Summary: "Weave Net's fast datapath: a bridge wired to the kernel's Open vSwitch, VXLAN between nodes",
		Model:   model + "router/fastdp.go (a datapath by netlink, without ovs-vswitchd)",
		LeavesOut: leavesOut + "; the router's learning (flows to all pods are set, by destination; it sets them by source and destination, " +
			"at the first packet)",
		Encapsulation: "vxlan",
		Overhead:      weaveOverhead,
		Needs:         []netns.Feature{netns.Veth(), netns.Bridge(), netns.OpenVSwitch(), netns.VXLAN()},
		Wants:         []netns.Feature{netns.BridgeNetfilter()},
		Plugins:       []string{"host-local"},
		PodsAdded:     flows,
	}
	n.SetUp = func(_ context.Context, self network.Node, _ []network.Node) error {
		if err := node(self, n.PodMTUOn(self), weaveODPIf); err != nil {
			return err
		}
		if err := datapath(self); err != nil {
			return fmt.Errorf("fast datapath of %s: %w", self.Name, err)
		}
		return nil
	}
	n.Conflist = network.Template(conflist, n)
	return n
}

// datapath makes the datapath with two ports: the wire to the bridge, and
// a tunnel device that takes where to from each packet.
func datapath(self network.Node) error {
	h, err := netns.Handle(self.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	la := netlink.NewLinkAttrs()
	la.Name = weaveVXLAN
	vxlan := &netlink.Vxlan{LinkAttrs: la, FlowBased: true, Port: weaveVXLANPort}
	if err := h.LinkAdd(vxlan); err != nil {
		return fmt.Errorf("%s: %w", weaveVXLAN, err)
	}
	if err := h.LinkSetMTU(vxlan, self.MTU-50); err != nil {
		return fmt.Errorf("%s: MTU: %w", weaveVXLAN, err)
	}
	if err := h.LinkSetUp(vxlan); err != nil {
		return fmt.Errorf("%s: up: %w", weaveVXLAN, err)
	}
	s, err := newODP(self.NS, weaveODP)
	if err != nil {
		return err
	}
	for number, device := range map[uint32]string{weaveBridgePort: weaveODPIf, weaveTunnelPort: weaveVXLAN} {
		if err := s.addPort(number, device); err != nil {
			return err
		}
	}
	nobody := make(net.HardwareAddr, 6)
	return s.addFlow(weaveTunnelPort, nobody, nobody, weaveBridgePort)
}

// flows sets the flows of the fast datapath to the other nodes: what is
// for one of their pods or their bridge, and to all what is for a group.
func flows(_ context.Context, self network.Node, nodes []network.Node, pods []network.Pod) error {
	h, err := netns.Handle(self.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	dev, err := netns.Link(h, weaveODP)
	if err != nil {
		return err
	}
	s := odpSwitch{ns: self.NS, name: weaveODP, index: dev.Attrs().Index}
	exact := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	var all []odpTunnel
	for _, peer := range nodes {
		if peer.Index == self.Index {
			continue
		}
		// extractPeers and tunnelIDFor: the two nodes' short names.
		tunnel := odpTunnel{id: uint64(self.Index) | uint64(peer.Index)<<12, to: peer.Address.Addr()}
		all = append(all, tunnel)
		macs := []net.HardwareAddr{weaveName(peer)}
		for _, p := range pods {
			if p.Node == peer.Index {
				macs = append(macs, weaveMAC(p.Address))
			}
		}
		for _, mac := range macs {
			if err := s.addFlow(weaveBridgePort, mac, exact, weaveTunnelPort, tunnel); err != nil {
				return err
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	group := net.HardwareAddr{1, 0, 0, 0, 0, 0}
	return s.addFlow(weaveBridgePort, group, group, weaveTunnelPort, all...)
}
