package network

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed kube_router.conflist
var kubeRouterConflist string

const (
	kubeRouterPods  = "kube-router-pod-subnets"
	kubeRouterNodes = "kube-router-node-ips"
)

// kubeRouter is kube-router with its router alone (--run-firewall=false): a
// bridge, the routes that its BGP gives, and what it lets through.
func kubeRouter() Network {
	n := Network{
		Kind:      result.KindModel,
		Name:      "kube-router",
		Summary:   "kube-router: bridge on each node, plain routes between nodes, pods' egress masqueraded",
		Model:     "kube-router v1.5 pkg/controllers/routing (routes of one subnet, egress and forward rules, iptables over nf_tables)",
		LeavesOut: "BGP (routes are set), overlay and policy routing, services",
		Needs:     append([]netns.Feature{netns.Veth(), netns.Bridge()}, ruleNeeds()...),
		Wants:     []netns.Feature{netns.BridgeNetfilter()},
		Plugins:   []string{"bridge", "host-local"},
		SetUp:     kubeRouterNode,
	}
	n.Conflist = template(kubeRouterConflist, n)
	return n
}

func kubeRouterNode(ctx context.Context, self Node, nodes []Node) error {
	if err := KubernetesNode(self); err != nil {
		return err
	}
	if err := routeByNode(self, nodes); err != nil {
		return err
	}
	pods, addresses := ipset{name: kubeRouterPods, kind: "hash:net"}, ipset{name: kubeRouterNodes, kind: "hash:ip"}
	for _, n := range nodes {
		pods.members = append(pods.members, n.PodCIDR)
		addresses.members = append(addresses.members, single(n.Address.Addr()))
	}
	if err := fillSets(self, pods, addresses); err != nil {
		return err
	}
	filter, nat := &table{name: "filter"}, &table{name: "nat"}
	filter.add("FORWARD",
		`-m comment --comment "allow outbound node port traffic on node interface with which node ip is associated" -o `+self.Device+" -j ACCEPT",
		`-m comment --comment "allow inbound traffic to pods" -o kube-bridge -j ACCEPT`,
		`-m comment --comment "allow outbound traffic from pods" -i kube-bridge -j ACCEPT`)
	nat.add("POSTROUTING", fmt.Sprintf("-m set --match-set %s src -m set ! --match-set %s dst -m set ! --match-set %s dst -j MASQUERADE --random-fully",
		kubeRouterPods, kubeRouterPods, kubeRouterNodes))
	return restore(ctx, self, filter, nat)
}
