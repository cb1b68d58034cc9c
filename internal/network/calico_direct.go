package network

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed calico_direct.conflist
var calicoDirectConflist string

// calicoDirect is Calico without encapsulation: each pod on a point-to-point
// veth, routes between nodes as BIRD sets them.
func calicoDirect() Network {
	n := Network{
		Kind:    result.KindOwnPlugin,
		Name:    "calico/direct",
		Summary: "Calico without encapsulation: point-to-point veths, /32 routes, proxy ARP",
		Model: "Calico v3 cni-plugin/pkg/dataplane/linux (pods, by this program's plugin cnibench-calico), " +
			"BIRD's routes between nodes of one subnet",
		LeavesOut: calicoLeavesOut,
		IPv6:      true,
		Needs:     []netns.Feature{netns.Veth()},
		Plugins:   []string{"host-local"},
		SetUp: func(_ context.Context, self Node, nodes []Node) error {
			if err := calicoNode(self); err != nil {
				return err
			}
			return routeByNode(self, nodes)
		},
	}
	n.Conflist = template(calicoDirectConflist, n)
	return n
}

// calicoNodeRoutes are the two routes of a node's own. The blackhole for its
// block is BIRD's: an address without a pod must not leave by the default
// route.
func calicoNodeRoutes(self Node) error {
	h, err := netns.Handle(self.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	blocks := []netip.Prefix{self.PodCIDR}
	if self.dual() {
		blocks = append(blocks, self.PodCIDR6)
	}
	for _, b := range blocks {
		if err := h.RouteReplace(&netlink.Route{Dst: ipNet(b), Type: unix.RTN_BLACKHOLE}); err != nil {
			return fmt.Errorf("blackhole route for %s: %w", b, err)
		}
	}
	return defaultRoute(self)
}

// defaultRoute stands for every real node's: the kernel answers the pods' ARP
// for 169.254.1.1 only where it has a route to that address. Nobody need be at
// the gateway, the last address of the nodes' subnet.
func defaultRoute(self Node) error {
	h, dev, err := netns.Port{NS: self.NS, Device: self.Device}.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	gateway := lastAddress(self.Address)
	err = h.RouteReplace(&netlink.Route{LinkIndex: dev.Attrs().Index, Gw: gateway.AsSlice()})
	if err != nil {
		return fmt.Errorf("%s: default route via %s: %w", self.Name, gateway, err)
	}
	return nil
}
