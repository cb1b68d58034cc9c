package network

import (
	"context"
	_ "embed"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed canal.conflist
var canalConflist string

// canal is flannel's tunnel between nodes and Calico's veths and policy on
// them.
func canal() Network {
	n := Network{
		Kind:    result.KindOwnPlugin,
		Name:    "canal",
		Summary: "flannel/vxlan between nodes, Calico's point-to-point veths and policy chains on them",
		Model: "Calico v3.27 manifests/canal.yaml: flannel v0.24 pkg/backend/vxlan, pkg/trafficmngr/iptables; cni-plugin/pkg/dataplane/linux " +
			"(pods, by this program's plugin cnibench-calico)" + felixModel,
		LeavesOut:     felixLeavesOut,
		Encapsulation: "vxlan",
		Overhead:      flannelOverhead,
		Needs:         []netns.Feature{netns.Veth(), netns.VXLAN()},
		Plugins:       []string{"host-local"},
		SetUp: func(ctx context.Context, self Node, nodes []Node) error {
			if err := netns.SetSysctls(self.NS, netns.Setting{Path: "net/ipv4/ip_forward", Value: "1"}); err != nil {
				return err
			}
			if err := defaultRoute(self); err != nil {
				return err
			}
			if err := flannelTunnel().make(self, nodes); err != nil {
				return err
			}
			return restore(ctx, self, flannelRules(Pods(), self.PodCIDR, multicast4)...)
		},
	}
	n.Conflist = template(canalConflist, n)
	return felixPolicy(n, felix{}) // the tunnel and NAT are flannel's
}
