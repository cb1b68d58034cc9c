package network

import (
	"context"
	_ "embed"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed bridge.conflist
var bridgeConflist string

// bridge is the reference plugin bridge, and a route to each other node's pods
// on every node, as a cloud's route controller sets them.
func bridge() Network {
	n := Network{
		Kind:    result.KindReal,
		Name:    "bridge",
		Summary: "reference plugin bridge on each node, plain routes between nodes",
		IPv6:    true,
		Needs:   []netns.Feature{netns.Veth(), netns.Bridge()},
		Wants:   []netns.Feature{netns.BridgeNetfilter()},
		Plugins: []string{"bridge", "host-local"},
		SetUp: func(_ context.Context, self Node, nodes []Node) error {
			if err := KubernetesNode(self); err != nil {
				return err
			}
			return routeByNode(self, nodes)
		},
	}
	n.Conflist = template(bridgeConflist, n)
	return n
}
