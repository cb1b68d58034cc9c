// Package flannel has flannel's networks, one file for each backend.
package flannel

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

// What the flannel plugin (cni-plugin v1.x) delegates to the bridge plugin when
// flanneld runs with --ip-masq, as kube-flannel.yml of flannel v0.28.0 has it.
//
//go:embed flannel.conflist
var conflist string

const multicast4, multicast6 = "224.0.0.0/4", "ff00::/8"

// withBackend is a network of flanneld: what all of its backends have, and one of them.
// The backend adds its names, its encapsulation and what else it needs.
func withBackend(n network.Network, backend func(ctx context.Context, self network.Node, nodes []network.Node) error) network.Network {
	n.Kind = result.KindModel
	n.Model += ", its delegate to the bridge plugin in Documentation/kube-flannel.yml, pkg/trafficmngr/iptables (over nf_tables)"
	leavesOut := "kube-proxy's rules; the portmap plugin"
	if n.LeavesOut != "" {
		leavesOut += "; " + n.LeavesOut
	}
	n.LeavesOut = leavesOut
	n.Needs = append([]netns.Feature{netns.Veth(), netns.Bridge(), dataplane.IPTablesTool(), netns.NFTables(), netns.Conntrack()}, n.Needs...)
	n.Wants = []netns.Feature{netns.BridgeNetfilter()}
	n.Plugins = []string{"bridge", "host-local"}
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		if err := network.KubernetesNode(self); err != nil {
			return err
		}
		if err := backend(ctx, self, nodes); err != nil {
			return err
		}
		if err := dataplane.Restore(ctx, self, rules(network.Pods(), self.PodCIDR, multicast4)...); err != nil {
			return err
		}
		if !self.Dual() {
			return nil
		}
		return dataplane.Restore6(ctx, self, rules(network.Pods6(), self.PodCIDR6, multicast6)...)
	}
	n.Conflist = network.Template(conflist, n)
	return n
}

// rules are those that flanneld v0.28.0 makes with --ip-masq
// (pkg/trafficmngr/iptables, forwardRules and masqRules): what goes between pods is
// let through, and not masqueraded. For the table nat the kernel tracks connections.
func rules(pods, own netip.Prefix, multicast string) []*dataplane.Table {
	const masq, forward = `-m comment --comment "flanneld masq" -j `, `-m comment --comment "flanneld forward" -j `
	filter, nat := &dataplane.Table{Name: "filter"}, &dataplane.Table{Name: "nat"}
	filter.Chain("FLANNEL-FWD", fmt.Sprintf("-s %s %sACCEPT", pods, forward), fmt.Sprintf("-d %s %sACCEPT", pods, forward))
	filter.Add("FORWARD", forward+"FLANNEL-FWD")
	nat.Chain("FLANNEL-POSTRTG",
		"-m mark --mark 0x4000/0x4000 "+masq+"RETURN", // kube-proxy masquerades it
		fmt.Sprintf("-s %s -d %s %sRETURN", own, pods, masq),
		fmt.Sprintf("-s %s -d %s %sRETURN", pods, own, masq),
		fmt.Sprintf("! -s %s -d %s %sRETURN", pods, own, masq),
		fmt.Sprintf("-s %s ! -d %s %sMASQUERADE --random-fully", pods, multicast, masq),
		fmt.Sprintf("! -s %s -d %s %sMASQUERADE --random-fully", pods, pods, masq))
	nat.Add("POSTROUTING", masq+"FLANNEL-POSTRTG")
	return []*dataplane.Table{filter, nat}
}
