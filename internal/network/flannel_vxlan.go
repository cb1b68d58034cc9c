package network

import (
	"context"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
)

// flanneld's defaults (flannel v0.28.0, pkg/backend/vxlan): VNI 1, the Linux
// kernel's own UDP port, 50 bytes of outer Ethernet, IPv4, UDP and VXLAN
// headers.
const (
	flannelVNI      = 1
	flannelPort     = 8472
	flannelDevice   = "flannel.1"
	flannelOverhead = 50
	// In IPv6, 20 bytes more. flannel takes 50 away there too, and the kernel
	// then cuts packets of full size in two.
	flannelDevice6   = "flannel-v6.1"
	flannelOverhead6 = 70
)

// flannelVXLAN does what flannel's backend vxlan does.
func flannelVXLAN() Network {
	return flannel(Network{
		Name:          "flannel/vxlan",
		Summary:       "flannel with VXLAN between nodes: cni0 bridge, flannel.1 tunnel",
		Model:         "flannel v0.28.0 pkg/backend/vxlan",
		Encapsulation: "vxlan",
		Overhead:      flannelOverhead,
		IPv6:          true,
		Overhead6:     flannelOverhead6,
		Needs:         []netns.Feature{netns.VXLAN()},
	}, func(_ context.Context, self Node, nodes []Node) error {
		if self.dual() {
			if err := flannelTunnel6().make(self, nodes); err != nil {
				return err
			}
		}
		return flannelTunnel().make(self, nodes)
	})
}

// flannelTunnel is flannel.1; a node's address on it is its subnet's first.
func flannelTunnel() vxlanTunnel {
	return vxlanTunnel{
		device: flannelDevice, vni: flannelVNI, port: flannelPort, overhead: flannelOverhead,
		address: func(n Node) netip.Addr { return n.PodCIDR.Addr() },
	}
}

// flannelTunnel6 is flannel-v6.1.
func flannelTunnel6() vxlanTunnel {
	return vxlanTunnel{
		device: flannelDevice6, vni: flannelVNI, port: flannelPort, overhead: flannelOverhead6, six: true,
		address: func(n Node) netip.Addr { return n.PodCIDR6.Addr() },
	}
}
