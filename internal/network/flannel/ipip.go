package flannel

import (
	"context"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// IPIP does what flannel's backend ipip does.
func IPIP() network.Network {
	return withBackend(network.Network{
		Name:          "flannel/ipip",
		Summary:       "flannel with IP in IP between nodes: cni0 bridge, flannel.ipip tunnel",
		Model:         "flannel v0.28.0 pkg/backend/ipip",
		Encapsulation: "ipip",
		Overhead:      dataplane.IPIPOverhead,
		Needs:         []netns.Feature{netns.IPIP()},
	}, func(_ context.Context, self network.Node, nodes []network.Node) error {
		t := dataplane.IPIP{
			Device: "flannel.ipip", Local: true,
			Address: func(n network.Node) netip.Addr { return n.PodCIDR.Addr() },
		}
		return t.Make(self, nodes)
	})
}
