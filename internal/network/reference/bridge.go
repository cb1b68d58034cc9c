// Package reference has the networks of the CNI project's reference plugins.
package reference

import (
	"context"
	_ "embed"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed bridge.conflist
var bridgeConflist string

// BridgeDevice is the bridge that the pods of a node are on (bridge.conflist).
const BridgeDevice = "cni0"

// Bridge is the reference plugin bridge, and a route to each other node's pods
// on every node, as a cloud's route controller sets them.
func Bridge() network.Network {
	n := network.Network{
		Kind:    result.KindReal,
		Name:    "bridge",
		Summary: "reference plugin bridge on each node, plain routes between nodes",
		IPv6:    true,
		Needs:   []netns.Feature{netns.Veth(), netns.Bridge()},
		Wants:   []netns.Feature{netns.BridgeNetfilter()},
		Plugins: []string{"bridge", "host-local"},
		SetUp: func(_ context.Context, self network.Node, nodes []network.Node) error {
			if err := network.KubernetesNode(self); err != nil {
				return err
			}
			return network.RouteByNode(self, nodes)
		},
	}
	n.Conflist = network.Template(bridgeConflist, n)
	return n
}
