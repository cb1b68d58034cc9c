package network

import (
	"context"
)

// flannelHostGW does what flannel's backend host-gw does: a route to each
// other node's subnet through that node's address.
func flannelHostGW() Network {
	return flannel(Network{
		Name:    "flannel/host-gw",
		Summary: "flannel without encapsulation: cni0 bridge, routes through the nodes",
		Model:   "flannel v0.28.0 pkg/backend/hostgw",
		IPv6:    true,
	}, func(_ context.Context, self Node, nodes []Node) error {
		return routeByNode(self, nodes)
	})
}
