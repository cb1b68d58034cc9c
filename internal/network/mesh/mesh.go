// Package mesh is the data plane of a service mesh on top of a network: TCP of pods passes
// proxies in user space, one in each pod or one on each node.
package mesh

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

// leavesOut is what both do without.
const leavesOut = "Envoy and ztunnel themselves, the control plane, mutual TLS, HTTP, retries, metrics and access logs, policies of connections, IPv6"

// Sidecar is a network whose pods have a proxy each. Their TCP passes the client's and the
// server's; UDP passes none.
func Sidecar(n network.Network) network.Network {
	n = on(n, "Istio 1.24 in sidecar mode (istio-iptables: REDIRECT at the pod's output and prerouting, uid 1337 exempt, two worker threads)")
	n.Name += "+sidecar"
	n.Summary += "; TCP passes an HAProxy in the client's pod and one in the server's"
	n.PodsAdded = after(n.PodsAdded, sidecars)
	n.Proxied = func(ctx context.Context, self network.Node, pods []network.Pod) (uint64, error) {
		var sum uint64
		for _, p := range of(self, pods) {
			got, err := redirected(ctx, netns.Named(p.ID))
			if err != nil {
				return 0, err
			}
			sum += got
		}
		return sum, nil
	}
	return n
}

// NodeProxy is a network whose nodes have a proxy each. TCP between pods of two nodes passes
// both, inside a node it passes one; UDP passes none.
func NodeProxy(n network.Network) network.Network {
	n = on(n, "Istio 1.24 in ambient mode (ztunnel, the proxy of a node for connections), with plain connections between the proxies")
	n.Name += "+node-proxy"
	n.Summary += "; TCP passes an HAProxy on the client's node and one on the server's"
	n.NoServices = "its proxies take connections to pods' addresses, and those to services would pass the server's alone"
	// Between pods of one node packets pass the node's rules by this alone.
	n.Needs = append(n.Needs, netns.BridgeNetfilter())
	n.PodsAdded = after(n.PodsAdded, func(ctx context.Context, self network.Node, _ []network.Pod) error {
		if proxy(self, nodeProxy).Started() {
			return nil
		}
		return errors.Join(startProxy(ctx, self, self.NS, nodeProxy), redirect(ctx, self.NS, nodeRules(self)))
	})
	n.Proxied = func(ctx context.Context, self network.Node, _ []network.Pod) (uint64, error) {
		return redirected(ctx, self.NS)
	}
	return n
}

// on is what both have of the network below.
func on(n network.Network, model string) network.Network {
	model += ", with HAProxy as the proxy, on top of the network"
	if n.Model != "" {
		model = n.Model + "; " + model
	}
	without := leavesOut
	if n.LeavesOut != "" {
		without = n.LeavesOut + "; " + without
	}
	n.Model, n.LeavesOut = model, without
	if n.Kind == result.KindReal { // the network and the proxy are, the mesh is not
		n.Kind = result.KindModel
	}
	n.Needs = append(append([]netns.Feature{}, n.Needs...), dataplane.HAProxyTool(), dataplane.NFTTool(), netns.NFTables(), netns.Conntrack())
	n.IPv6 = false
	n.Datapath = dataplane.HAProxyVersion
	return n
}

// after does what the network below does once pods are added, and then the mesh's part.
func after(below func(context.Context, network.Node, []network.Node, []network.Pod) error,
	mesh func(context.Context, network.Node, []network.Pod) error,
) func(context.Context, network.Node, []network.Node, []network.Pod) error {
	return func(ctx context.Context, self network.Node, nodes []network.Node, pods []network.Pod) error {
		if below != nil {
			if err := below(ctx, self, nodes, pods); err != nil {
				return err
			}
		}
		return mesh(ctx, self, pods)
	}
}

// of are the pods of a node.
func of(self network.Node, pods []network.Pod) []network.Pod {
	var own []network.Pod
	for _, p := range pods {
		if p.Node == self.Index {
			own = append(own, p)
		}
	}
	return own
}

// sidecars gives each pod of a node that has none its proxy, and ends those whose pods are
// gone.
func sidecars(ctx context.Context, self network.Node, pods []network.Pod) error {
	running, err := dataplane.HAProxies(dir(self))
	if err != nil {
		return err
	}
	left := map[string]dataplane.HAProxy{}
	for _, one := range running {
		left[one.Name] = one
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for _, p := range of(self, pods) {
		if _, runs := left[p.ID]; runs {
			delete(left, p.ID)
			continue
		}
		g.Go(func() error {
			ns := netns.Named(p.ID)
			return errors.Join(startProxy(ctx, self, ns, p.ID), redirect(ctx, ns, podRules()))
		})
	}
	err = g.Wait()
	for _, gone := range left {
		err = errors.Join(err, gone.End())
	}
	return err
}

// podRules lead what a pod's programs open, and what comes for them, to its proxy. What the
// proxy opens goes its way.
func podRules() []string {
	return []string{
		"add chain ip " + table + " out { type nat hook output priority -100 ; }",
		fmt.Sprintf("add rule ip %s out meta skuid %d return", table, proxyUser),
		fmt.Sprintf("add rule ip %s out ip daddr 127.0.0.0/8 return", table),
		fmt.Sprintf("add rule ip %s out meta l4proto tcp counter redirect to :%d", table, portOut),
		"add chain ip " + table + " in { type nat hook prerouting priority -100 ; }",
		fmt.Sprintf("add rule ip %s in meta l4proto tcp counter redirect to :%d", table, portIn),
	}
}

// nodeRules lead connections between pods to the proxy of their node: what comes from the link
// to the one for arrivals, everything else to the other.
func nodeRules(self network.Node) []string {
	chain := "add chain ip " + table + " in { type nat hook prerouting priority -105 ; }"
	between := fmt.Sprintf("ip daddr %s meta l4proto tcp counter redirect to", network.Pods())
	return []string{
		chain,
		fmt.Sprintf("add rule ip %s in iifname %s %s :%d", table, self.Device, between, portIn),
		fmt.Sprintf("add rule ip %s in ip saddr %s %s :%d", table, self.PodCIDR, between, portOut),
	}
}
