package network

import (
	"context"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

// Felix's defaults (Calico v3.27, felix/config): VXLANVNI, VXLANPort.
const (
	calicoVNI           = 4096
	vxlanPort           = 4789
	calicoVXLANDevice   = "vxlan.calico"
	calicoVXLANOverhead = 50
	// vxlanMTUV6 is 70 bytes less than the link's.
	calicoVXLANDevice6   = "vxlan-v6.calico"
	calicoVXLANOverhead6 = 70
)

// calicoVXLAN is Calico with its pool in mode vxlanMode: Always.
func calicoVXLAN() Network {
	n := Network{
		Kind:    result.KindOwnPlugin,
		Name:    "calico/vxlan",
		Summary: "Calico with VXLAN between nodes: point-to-point veths, vxlan.calico",
		Model: "Calico v3.27 cni-plugin/pkg/dataplane/linux (pods, by this program's plugin cnibench-calico), " +
			"felix/dataplane/linux/vxlan_mgr.go",
		LeavesOut:     calicoLeavesOut,
		Encapsulation: "vxlan",
		Overhead:      calicoVXLANOverhead,
		IPv6:          true,
		Overhead6:     calicoVXLANOverhead6,
		Needs:         []netns.Feature{netns.Veth(), netns.VXLAN()},
		Plugins:       []string{"host-local"},
		SetUp: func(_ context.Context, self Node, nodes []Node) error {
			if err := calicoNode(self); err != nil {
				return err
			}
			if self.dual() {
				t := vxlanTunnel{
					device: calicoVXLANDevice6, vni: calicoVNI, port: vxlanPort, overhead: calicoVXLANOverhead6, six: true,
					address: func(n Node) netip.Addr { return n.PodCIDR6.Addr().Next() },
				}
				if err := t.make(self, nodes); err != nil {
					return err
				}
			}
			t := vxlanTunnel{
				device: calicoVXLANDevice, vni: calicoVNI, port: vxlanPort, overhead: calicoVXLANOverhead,
				address: calicoTunnelAddress,
			}
			return t.make(self, nodes)
		},
	}
	n.Conflist = template(calicoDirectConflist, n)
	return n
}
