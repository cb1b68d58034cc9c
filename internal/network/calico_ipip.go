package network

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

// calicoIPIP is Calico with its pool in mode ipipMode: Always, what its
// manifest calico.yaml installs.
func calicoIPIP() Network {
	n := Network{
		Kind:    result.KindOwnPlugin,
		Name:    "calico/ipip",
		Summary: "Calico with IP in IP between nodes: point-to-point veths, tunl0",
		Model: "Calico v3.27 cni-plugin/pkg/dataplane/linux (pods, by this program's plugin cnibench-calico), " +
			"felix/dataplane/linux/ipip_mgr.go, BIRD's routes",
		LeavesOut:     calicoLeavesOut,
		Encapsulation: "ipip",
		Overhead:      ipipOverhead,
		Needs:         []netns.Feature{netns.Veth(), netns.IPIP()},
		Plugins:       []string{"host-local"},
		SetUp: func(_ context.Context, self Node, nodes []Node) error {
			if err := calicoNode(self); err != nil {
				return err
			}
			return ipipTunnel{device: "tunl0", address: calicoTunnelAddress}.make(self, nodes)
		},
	}
	n.Conflist = template(calicoDirectConflist, n)
	return n
}

// calicoLeavesOut is what the variants without policy do without.
const calicoLeavesOut = "Felix's chains (policy, reverse path filter, NAT) and with them connection tracking; kube-proxy's rules; Calico's IPAM (host-local instead)"

// calicoNode is what a node of every variant has.
func calicoNode(self Node) error {
	if err := netns.SetSysctls(self.NS, forwarding(self)...); err != nil {
		return err
	}
	if err := calicoNodeRoutes(self); err != nil {
		return fmt.Errorf("%s: %w", self.Name, err)
	}
	return nil
}

// calicoTunnelAddress is a node's own address on tunl0 or vxlan.calico. Calico
// takes a free one of the node's block; here it is the one that host-local
// keeps for a gateway.
func calicoTunnelAddress(n Node) netip.Addr { return n.PodCIDR.Addr().Next() }
