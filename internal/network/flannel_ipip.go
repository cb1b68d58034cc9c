package network

import (
	"context"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
)

// flannelIPIP does what flannel's backend ipip does.
func flannelIPIP() Network {
	return flannel(Network{
		Name:          "flannel/ipip",
		Summary:       "flannel with IP in IP between nodes: cni0 bridge, flannel.ipip tunnel",
		Model:         "flannel v0.28.0 pkg/backend/ipip",
		Encapsulation: "ipip",
		Overhead:      ipipOverhead,
		Needs:         []netns.Feature{netns.IPIP()},
	}, func(_ context.Context, self Node, nodes []Node) error {
		t := ipipTunnel{
			device: "flannel.ipip", local: true,
			address: func(n Node) netip.Addr { return n.PodCIDR.Addr() },
		}
		return t.make(self, nodes)
	})
}
