// Package canal has the network Canal: flannel between nodes, Calico on them.
package canal

import (
	"context"
	_ "embed"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/calico"
	"github.com/cnibench/cnibench/internal/network/flannel"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed canal.conflist
var conflist string

// Network is flannel's tunnel between nodes and Calico's veths and policy on
// them.
func Network() network.Network {
	n := network.Network{
		Kind:    result.KindOwnPlugin,
		Name:    "canal",
		Summary: "flannel/vxlan between nodes, Calico's point-to-point veths and policy chains on them",
		Model: "Calico v3.27 manifests/canal.yaml: flannel v0.24 pkg/backend/vxlan, pkg/trafficmngr/iptables; cni-plugin/pkg/dataplane/linux " +
			"(pods, by this program's plugin cnibench-calico)",
		Encapsulation: "vxlan",
		Overhead:      flannel.VXLANOverhead,
		Needs:         []netns.Feature{netns.Veth(), netns.VXLAN()},
		Plugins:       []string{"host-local"},
		SetUp: func(ctx context.Context, self network.Node, nodes []network.Node) error {
			if err := netns.SetSysctls(self.NS, netns.Setting{Path: "net/ipv4/ip_forward", Value: "1"}); err != nil {
				return err
			}
			if err := network.DefaultRoute(self); err != nil {
				return err
			}
			return flannel.VXLANNode(ctx, self, nodes)
		},
	}
	n.Conflist = network.Template(conflist, n)
	return calico.UnderFelix(n) // the tunnel and NAT are flannel's
}
