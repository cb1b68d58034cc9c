package calico

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

// IPIP is Calico with its pool in mode ipipMode: Always, what its
// manifest calico.yaml installs.
func IPIP() network.Network {
	n := network.Network{
		Kind:    result.KindOwnPlugin,
		Name:    "calico/ipip",
		Summary: "Calico with IP in IP between nodes: point-to-point veths, tunl0",
		Model: "Calico v3.27 cni-plugin/pkg/dataplane/linux (pods, by this program's plugin cnibench-calico), " +
			"felix/dataplane/linux/ipip_mgr.go, BIRD's routes",
		LeavesOut:     leavesOut,
		Encapsulation: "ipip",
		Overhead:      dataplane.IPIPOverhead,
		Needs:         []netns.Feature{netns.Veth(), netns.IPIP()},
		Plugins:       []string{"host-local"},
		SetUp: func(_ context.Context, self network.Node, nodes []network.Node) error {
			if err := node(self); err != nil {
				return err
			}
			return dataplane.IPIP{Device: "tunl0", Address: tunnelAddress}.Make(self, nodes)
		},
	}
	n.Conflist = network.Template(directConflist, n)
	return n
}

// leavesOut is what the variants without policy do without.
const leavesOut = "Felix's chains (policy, reverse path filter, NAT) and with them connection tracking; kube-proxy's rules; Calico's IPAM (host-local instead)"

// node is what a node of every variant has.
func node(self network.Node) error {
	if err := netns.SetSysctls(self.NS, network.Forwarding(self)...); err != nil {
		return err
	}
	if err := nodeRoutes(self); err != nil {
		return fmt.Errorf("%s: %w", self.Name, err)
	}
	return nil
}

// tunnelAddress is a node's own address on tunl0 or vxlan.calico. Calico
// takes a free one of the node's block; here it is the one that host-local
// keeps for a gateway.
func tunnelAddress(n network.Node) netip.Addr { return n.PodCIDR.Addr().Next() }
