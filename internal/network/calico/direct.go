// Package calico has Calico's networks: its routes and tunnels, the policy chains of its
// agent Felix, and its eBPF dataplane.
package calico

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed direct.conflist
var directConflist string

// Direct is Calico without encapsulation: each pod on a point-to-point
// veth, routes between nodes as BIRD sets them.
func Direct() network.Network {
	n := network.Network{
		Kind:    result.KindOwnPlugin,
		Name:    "calico/direct",
		Summary: "Calico without encapsulation: point-to-point veths, /32 routes, proxy ARP",
		Model: "Calico v3 cni-plugin/pkg/dataplane/linux (pods, by this program's plugin cnibench-calico), " +
			"BIRD's routes between nodes of one subnet",
		LeavesOut: leavesOut,
		IPv6:      true,
		Needs:     []netns.Feature{netns.Veth()},
		Plugins:   []string{"host-local"},
		SetUp: func(_ context.Context, self network.Node, nodes []network.Node) error {
			if err := node(self); err != nil {
				return err
			}
			return network.RouteByNode(self, nodes)
		},
	}
	n.Conflist = network.Template(directConflist, n)
	return n
}

// nodeRoutes are the two routes of a node's own. The blackhole for its
// block is BIRD's: an address without a pod must not leave by the default
// route.
func nodeRoutes(self network.Node) error {
	h, err := netns.Handle(self.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	blocks := []netip.Prefix{self.PodCIDR}
	if self.Dual() {
		blocks = append(blocks, self.PodCIDR6)
	}
	for _, b := range blocks {
		if err := h.RouteReplace(&netlink.Route{Dst: network.IPNet(b), Type: unix.RTN_BLACKHOLE}); err != nil {
			return fmt.Errorf("blackhole route for %s: %w", b, err)
		}
	}
	return network.DefaultRoute(self)
}
