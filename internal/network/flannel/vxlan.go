package flannel

import (
	"context"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// flanneld's defaults (flannel v0.28.0, pkg/backend/vxlan): VNI 1, the Linux
// kernel's own UDP port, 50 bytes of outer Ethernet, IPv4, UDP and VXLAN
// headers.
const (
	vxlanVNI      = 1
	vxlanPort     = 8472
	vxlanDevice   = "flannel.1"
	VXLANOverhead = 50
	// In IPv6, 20 bytes more. flannel takes 50 away there too, and the kernel
	// then cuts packets of full size in two.
	vxlanDevice6   = "flannel-v6.1"
	vxlanOverhead6 = 70
)

// VXLAN does what flannel's backend vxlan does.
func VXLAN() network.Network {
	return withBackend(network.Network{
		Name:          "flannel/vxlan",
		Summary:       "flannel with VXLAN between nodes: cni0 bridge, flannel.1 tunnel",
		Model:         "flannel v0.28.0 pkg/backend/vxlan",
		Encapsulation: "vxlan",
		Overhead:      VXLANOverhead,
		IPv6:          true,
		Overhead6:     vxlanOverhead6,
		Needs:         []netns.Feature{netns.VXLAN()},
	}, func(_ context.Context, self network.Node, nodes []network.Node) error {
		if self.Dual() {
			if err := tunnel6().Make(self, nodes); err != nil {
				return err
			}
		}
		return tunnel4().Make(self, nodes)
	})
}

// tunnel4 is flannel.1; a node's address on it is its subnet's first.
func tunnel4() dataplane.VXLAN {
	return dataplane.VXLAN{
		Device: vxlanDevice, VNI: vxlanVNI, Port: vxlanPort, Overhead: VXLANOverhead,
		Address: func(n network.Node) netip.Addr { return n.PodCIDR.Addr() },
	}
}

// tunnel6 is flannel-v6.1.
func tunnel6() dataplane.VXLAN {
	return dataplane.VXLAN{
		Device: vxlanDevice6, VNI: vxlanVNI, Port: vxlanPort, Overhead: vxlanOverhead6, Six: true,
		Address: func(n network.Node) netip.Addr { return n.PodCIDR6.Addr() },
	}
}

// VXLANNode does on a node what flanneld does with its backend vxlan where a network
// has IPv4 alone: the tunnel, and the rules.
func VXLANNode(ctx context.Context, self network.Node, nodes []network.Node) error {
	if err := tunnel4().Make(self, nodes); err != nil {
		return err
	}
	return dataplane.Restore(ctx, self, rules(network.Pods(), self.PodCIDR, multicast4)...)
}
