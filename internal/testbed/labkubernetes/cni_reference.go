package labkubernetes

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
)

// reference is a reference plugin with host-local, as the lab's network of the
// same name has it: the same configuration and the same routes between nodes,
// which exist from the beginning as a cloud's route controller would set them.
func reference(n network.Network) CNI {
	setUp := func(ctx context.Context, c *Cluster, self *Node) error {
		if n.SetUp == nil {
			return nil
		}
		return n.SetUp(ctx, self.Node, workers(c))
	}
	return CNI{
		Name: n.Name, Summary: n.Summary, IPv6: n.IPv6, Plugins: n.Plugins, Needs: n.Needs,
		Conflist: func(ctx context.Context, c *Cluster, self *Node) ([]byte, error) {
			if err := setUp(ctx, c, self); err != nil {
				return nil, err
			}
			return n.Conflist(self.Node, workers(c))
		},
		// Pods ask the API server too, by its service: it needs a way back to them.
		StartOnce: func(ctx context.Context, c *Cluster) error { return setUp(ctx, c, c.Control()) },
	}
}

// workers are the nodes with pods.
func workers(c *Cluster) []network.Node {
	var all []network.Node
	for _, n := range c.Nodes() {
		all = append(all, n.Node)
	}
	return all
}

// pointToPoint is the reference plugin ptp on nodes that are as those of bridge:
// a veth for each pod, whose node routes to it.
func pointToPoint(bridge network.Network) network.Network {
	return network.Network{
		Name: "ptp", Summary: "reference plugin ptp: a veth and a route for each pod, plain routes between nodes",
		IPv6: true, Needs: bridge.Needs[:1], Plugins: []string{"ptp", "host-local"}, SetUp: bridge.SetUp,
		Conflist: func(self network.Node, _ []network.Node) ([]byte, error) {
			ranges, routes := [][]any{{map[string]any{"subnet": self.PodCIDR}}}, []any{map[string]any{"dst": "0.0.0.0/0"}}
			if self.PodCIDR6.IsValid() {
				ranges = append(ranges, []any{map[string]any{"subnet": self.PodCIDR6}})
				routes = append(routes, map[string]any{"dst": "::/0"})
			}
			return json.Marshal(map[string]any{
				"cniVersion": "1.0.0", "name": "ptp",
				"plugins": []any{map[string]any{
					"type": "ptp", "mtu": self.MTU, "ipMasq": false,
					"ipam": map[string]any{"type": "host-local", "ranges": ranges, "routes": routes},
				}},
			})
		},
	}
}

// references are the CNIs of reference plugins, of those networks of the lab's
// list that are what they say.
func references() ([]CNI, error) {
	var all []CNI
	for _, name := range []string{"bridge", "macvlan"} {
		n, err := catalog.Find(name)
		if err != nil {
			return nil, fmt.Errorf("reference CNIs: %w", err)
		}
		all = append(all, reference(n))
		if name == "bridge" {
			all = append(all, reference(pointToPoint(n)))
		}
	}
	return all, nil
}
