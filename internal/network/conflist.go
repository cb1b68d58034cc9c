package network

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

// FromConflist makes a network of a user's own CNI configuration lists: one for
// all nodes, or one for each node in order.
//
// Where every node's list names a subnet of its own for host-local, nodes get
// forwarding and a route to each other node's subnet, as with the network
// bridge. Where they share one subnet no routes are set: such plugins (macvlan
// and its like) put pods on the wire.
func FromConflist(name string, perNode [][]byte) (Network, error) {
	if len(perNode) == 0 {
		return Network{}, fmt.Errorf("network %s: no conflist", name)
	}
	subnets := make([][]netip.Prefix, len(perNode))
	plugins := map[string]bool{}
	n := Network{Name: name, Kind: result.KindReal, Summary: "a conflist of the user's own", Needs: []netns.Feature{netns.Veth()}}
	if len(perNode) > 1 {
		n.Nodes = len(perNode)
	}
	for i, data := range perNode {
		list, err := readUserList(data)
		if err != nil {
			return Network{}, fmt.Errorf("network %s: conflist %d of %d: %w", name, i+1, len(perNode), err)
		}
		subnets[i] = list.subnets()
		for _, p := range list.names() {
			if !plugins[p] {
				plugins[p] = true
				n.Plugins = append(n.Plugins, p)
				if p == "macvlan" || p == "ipvlan" {
					n.NoEncryption = OnTheWire
				}
			}
		}
	}
	n.Conflist = func(self Node, nodes []Node) ([]byte, error) {
		if len(perNode) == 1 {
			return perNode[0], nil
		}
		if self.Index > len(perNode) {
			return nil, fmt.Errorf("network %s: %d conflists for %d nodes: name one for each node, or one for all", name, len(perNode), len(nodes))
		}
		return perNode[self.Index-1], nil
	}
	n.SetUp = func(_ context.Context, self Node, nodes []Node) error {
		return userRoutes(self, nodes, subnets)
	}
	return n, nil
}

// userRoutes treats each node's subnets as its PodCIDR where they differ.
func userRoutes(self Node, nodes []Node, subnets [][]netip.Prefix) error {
	if len(subnets) < len(nodes) || !disjoint(subnets) {
		return nil
	}
	if err := KubernetesNode(self); err != nil {
		return err
	}
	var routed []Node
	for _, n := range nodes {
		for _, s := range subnets[n.Index-1] {
			n.PodCIDR = s
			routed = append(routed, n)
		}
	}
	return RouteByNode(self, routed)
}

// disjoint reports that no subnet of one node overlaps one of another.
func disjoint(subnets [][]netip.Prefix) bool {
	for i, a := range subnets {
		for _, b := range subnets[i+1:] {
			for _, x := range a {
				for _, y := range b {
					if x.Overlaps(y) {
						return false
					}
				}
			}
		}
	}
	return true
}

// userList is what is read of a user's list; libcni reads it in full later.
type userList struct {
	Plugins []struct {
		Type string `json:"type"`
		IPAM struct {
			Type   string        `json:"type"`
			Subnet string        `json:"subnet"`
			Ranges [][]userRange `json:"ranges"`
		} `json:"ipam"`
	} `json:"plugins"`
}

type userRange struct {
	Subnet string `json:"subnet"`
}

func readUserList(data []byte) (userList, error) {
	var l userList
	if err := json.Unmarshal(data, &l); err != nil {
		return l, err
	}
	if len(l.Plugins) == 0 {
		return l, fmt.Errorf(`has no "plugins"`)
	}
	return l, nil
}

func (l userList) names() []string {
	var names []string
	for _, p := range l.Plugins {
		for _, name := range []string{p.Type, p.IPAM.Type} {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// subnets are the IPv4 subnets that host-local gives addresses of.
func (l userList) subnets() []netip.Prefix {
	var subnets []netip.Prefix
	for _, p := range l.Plugins {
		if p.IPAM.Type != "host-local" {
			continue
		}
		ranges := []userRange{{p.IPAM.Subnet}}
		for _, set := range p.IPAM.Ranges {
			ranges = append(ranges, set...)
		}
		for _, r := range ranges {
			if s, err := netip.ParsePrefix(r.Subnet); err == nil && s.Addr().Is4() {
				subnets = append(subnets, s.Masked())
			}
		}
	}
	return subnets
}
