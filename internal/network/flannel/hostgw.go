package flannel

import (
	"context"

	"github.com/cnibench/cnibench/internal/network"
)

// HostGW does what flannel's backend host-gw does: a route to each
// other node's subnet through that node's address.
func HostGW() network.Network {
	return withBackend(network.Network{
		Name:    "flannel/host-gw",
		Summary: "flannel without encapsulation: cni0 bridge, routes through the nodes",
		Model:   "flannel v0.28.0 pkg/backend/hostgw",
		IPv6:    true,
	}, func(_ context.Context, self network.Node, nodes []network.Node) error {
		return network.RouteByNode(self, nodes)
	})
}
