package calico

import (
	"context"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

// Felix's defaults (Calico v3.27, felix/config): VXLANVNI, VXLANPort.
const (
	vni           = 4096
	vxlanDevice   = "vxlan.calico"
	vxlanOverhead = 50
	// vxlanMTUV6 is 70 bytes less than the link's.
	vxlanDevice6   = "vxlan-v6.calico"
	vxlanOverhead6 = 70
)

// VXLAN is Calico with its pool in mode vxlanMode: Always.
func VXLAN() network.Network {
	n := network.Network{
		Kind:    result.KindOwnPlugin,
		Name:    "calico/vxlan",
		Summary: "Calico with VXLAN between nodes: point-to-point veths, vxlan.calico",
		Model: "Calico v3.27 cni-plugin/pkg/dataplane/linux (pods, by this program's plugin cnibench-calico), " +
			"felix/dataplane/linux/vxlan_mgr.go",
		LeavesOut:     leavesOut,
		Encapsulation: "vxlan",
		Overhead:      vxlanOverhead,
		IPv6:          true,
		Overhead6:     vxlanOverhead6,
		Needs:         []netns.Feature{netns.Veth(), netns.VXLAN()},
		Plugins:       []string{"host-local"},
		SetUp: func(_ context.Context, self network.Node, nodes []network.Node) error {
			if err := node(self); err != nil {
				return err
			}
			if self.Dual() {
				t := dataplane.VXLAN{
					Device: vxlanDevice6, VNI: vni, Port: dataplane.VXLANPort, Overhead: vxlanOverhead6, Six: true,
					Address: func(n network.Node) netip.Addr { return n.PodCIDR6.Addr().Next() },
				}
				if err := t.Make(self, nodes); err != nil {
					return err
				}
			}
			t := dataplane.VXLAN{
				Device: vxlanDevice, VNI: vni, Port: dataplane.VXLANPort, Overhead: vxlanOverhead,
				Address: tunnelAddress,
			}
			return t.Make(self, nodes)
		},
	}
	n.Conflist = network.Template(directConflist, n)
	return n
}
