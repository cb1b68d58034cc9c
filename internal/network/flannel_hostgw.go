package network

import (
	"context"
	_ "embed"

	"github.com/cnibench/cnibench/internal/netns"
)

// What the flannel plugin (cni-plugin v1.x) delegates to the bridge plugin when
// flanneld runs with --ip-masq, as kube-flannel.yml of flannel v0.28.0 has it.
//
//go:embed flannel.conflist
var flannelConflist string

// flannelLeavesOut is what both variants do without.
const flannelLeavesOut = "flanneld's masquerade and forward rules, and with them connection tracking; kube-proxy's rules; the portmap plugin"

// flannelHostGW does what flannel's backend host-gw does: a route to each
// other node's subnet through that node's address.
func flannelHostGW() Network {
	n := Network{
		Name:      "flannel/host-gw",
		Summary:   "flannel without encapsulation: cni0 bridge, routes through the nodes",
		Model:     "flannel v0.28.0 pkg/backend/hostgw, its delegate to the bridge plugin in Documentation/kube-flannel.yml",
		LeavesOut: flannelLeavesOut,
		IPv6:      true,
		Needs:     []netns.Feature{netns.Veth(), netns.Bridge()},
		Wants:     []netns.Feature{netns.BridgeNetfilter()},
		Plugins:   []string{"bridge", "host-local"},
		SetUp: func(_ context.Context, self Node, nodes []Node) error {
			if err := KubernetesNode(self); err != nil {
				return err
			}
			return routeByNode(self, nodes)
		},
	}
	n.Conflist = template(flannelConflist, n)
	return n
}
