package network

import (
	"context"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
)

// flannelIPIP does what flannel's backend ipip does.
func flannelIPIP() Network {
	n := Network{
		Name:          "flannel/ipip",
		Summary:       "flannel with IP in IP between nodes: cni0 bridge, flannel.ipip tunnel",
		Model:         "flannel v0.28.0 pkg/backend/ipip, its delegate to the bridge plugin in Documentation/kube-flannel.yml",
		LeavesOut:     flannelLeavesOut,
		Encapsulation: "ipip",
		Overhead:      ipipOverhead,
		Needs:         []netns.Feature{netns.Veth(), netns.Bridge(), netns.IPIP()},
		Wants:         []netns.Feature{netns.BridgeNetfilter()},
		Plugins:       []string{"bridge", "host-local"},
		SetUp: func(_ context.Context, self Node, nodes []Node) error {
			if err := KubernetesNode(self); err != nil {
				return err
			}
			t := ipipTunnel{
				device: "flannel.ipip", local: true,
				address: func(n Node) netip.Addr { return n.PodCIDR.Addr() },
			}
			return t.make(self, nodes)
		},
	}
	n.Conflist = template(flannelConflist, n)
	return n
}
