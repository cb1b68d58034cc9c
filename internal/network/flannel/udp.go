package flannel

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/tunnel"
)

// What flannel v0.28.0, pkg/backend/udp has: its device, its port, an IPv4 and
// a UDP header.
const (
	udpDevice   = "flannel0"
	udpPort     = 8285
	udpOverhead = 28
)

// UDP does what flannel's backend udp does.
func UDP() network.Network {
	return withBackend(network.Network{
		Name:          "flannel/udp",
		Summary:       "flannel with UDP from user space between nodes: cni0 bridge, flannel0 tun device",
		Model:         "flannel v0.28.0 pkg/backend/udp (forwarder by this program)",
		LeavesOut:     "the forwarder is Go, flannel's is C",
		Encapsulation: "udp",
		Overhead:      udpOverhead,
		Needs:         []netns.Feature{netns.TUN()},

		UserSpaceLoses: network.FloodsOfFragments,
	}, func(ctx context.Context, self network.Node, nodes []network.Node) error {
		if err := udpNode(ctx, self, nodes); err != nil {
			return fmt.Errorf("%s on %s: %w", udpDevice, self.Name, err)
		}
		return nil
	})
}

func udpNode(ctx context.Context, self network.Node, nodes []network.Node) error {
	if err := startForwarder(self, nodes); err != nil {
		return err
	}
	h, err := netns.Handle(self.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	dev, err := forwarderDevice(ctx, h, self)
	if err != nil {
		return err
	}
	if err := h.LinkSetMTU(dev, self.MTU-udpOverhead); err != nil {
		return fmt.Errorf("MTU: %w", err)
	}
	if err := dataplane.TunnelUp(h, dev, self.PodCIDR.Addr()); err != nil {
		return err
	}
	err = h.RouteReplace(&netlink.Route{LinkIndex: dev.Attrs().Index, Dst: network.IPNet(network.Pods())})
	if err != nil {
		return fmt.Errorf("route to %s: %w", network.Pods(), err)
	}
	return nil
}

// startForwarder starts flannel's forwarder.
func startForwarder(self network.Node, nodes []network.Node) error {
	c := tunnel.Config{Device: udpDevice, Local: netip.AddrPortFrom(self.Address.Addr(), udpPort)}
	for _, peer := range nodes {
		if peer.Index != self.Index {
			c.Routes = append(c.Routes, tunnel.Route{Pods: peer.PodCIDR, Node: netip.AddrPortFrom(peer.Address.Addr(), udpPort)})
		}
	}
	arg, err := c.Arg()
	if err != nil {
		return err
	}
	return dataplane.RunForwarder(self, arg)
}

// forwarderDevice waits for the device, which reports that the forwarder is ready.
func forwarderDevice(ctx context.Context, h *netlink.Handle, self network.Node) (netlink.Link, error) {
	var dev netlink.Link
	err := dataplane.AwaitForwarder(ctx, self, "it made no device", func() (bool, error) {
		var err error
		var gone netlink.LinkNotFoundError
		dev, err = netns.Link(h, udpDevice)
		if errors.As(err, &gone) {
			return false, nil
		}
		return true, err
	})
	return dev, err
}
