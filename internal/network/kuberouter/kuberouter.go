// Package kuberouter has the networks of kube-router, with and without its firewall.
package kuberouter

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed kuberouter.conflist
var conflist string

const (
	kubeRouterPods  = "kube-router-pod-subnets"
	kubeRouterNodes = "kube-router-node-ips"
)

// Network is kube-router with its router alone (--run-firewall=false): a
// bridge, the routes that its BGP gives, and what it lets through.
func Network() network.Network {
	n := network.Network{
		Kind:      result.KindModel,
		Name:      "kube-router",
		Summary:   "kube-router: bridge on each node, plain routes between nodes, pods' egress masqueraded",
		Model:     "kube-router v1.5 pkg/controllers/routing (routes of one subnet, egress and forward rules, iptables over nf_tables)",
		LeavesOut: "BGP (routes are set), overlay and policy routing, services",
		Needs:     append([]netns.Feature{netns.Veth(), netns.Bridge()}, dataplane.RuleNeeds()...),
		Wants:     []netns.Feature{netns.BridgeNetfilter()},
		Plugins:   []string{"bridge", "host-local"},
		SetUp:     node,
	}
	n.Conflist = network.Template(conflist, n)
	return n
}

func node(ctx context.Context, self network.Node, nodes []network.Node) error {
	if err := network.KubernetesNode(self); err != nil {
		return err
	}
	if err := network.RouteByNode(self, nodes); err != nil {
		return err
	}
	pods, addresses := dataplane.IPSet{Name: kubeRouterPods, Kind: "hash:net"}, dataplane.IPSet{Name: kubeRouterNodes, Kind: "hash:ip"}
	for _, n := range nodes {
		pods.Members = append(pods.Members, n.PodCIDR)
		addresses.Members = append(addresses.Members, network.Single(n.Address.Addr()))
	}
	if err := dataplane.FillSets(self, pods, addresses); err != nil {
		return err
	}
	filter, nat := &dataplane.Table{Name: "filter"}, &dataplane.Table{Name: "nat"}
	filter.Add("FORWARD",
		`-m comment --comment "allow outbound node port traffic on node interface with which node ip is associated" -o `+self.Device+" -j ACCEPT",
		`-m comment --comment "allow inbound traffic to pods" -o kube-bridge -j ACCEPT`,
		`-m comment --comment "allow outbound traffic from pods" -i kube-bridge -j ACCEPT`)
	nat.Add("POSTROUTING", fmt.Sprintf("-m set --match-set %s src -m set ! --match-set %s dst -m set ! --match-set %s dst -j MASQUERADE --random-fully",
		kubeRouterPods, kubeRouterPods, kubeRouterNodes))
	return dataplane.Restore(ctx, self, filter, nat)
}
