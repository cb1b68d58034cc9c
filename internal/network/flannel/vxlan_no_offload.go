package flannel

import (
	"context"
	"fmt"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

// VXLANNoOffload is flannel/vxlan with what flannel's documents
// (v0.28.0, Documentation/troubleshooting.md) recommend where a network card
// breaks the packets in a tunnel: ethtool -K flannel.1 tx-checksum-ip-generic
// off. Without checksums the kernel cannot leave segmentation for later
// either, so each packet goes through the tunnel alone and finished.
func VXLANNoOffload() network.Network {
	n := VXLAN()
	n.Name = "flannel/vxlan-no-offload"
	n.Summary = "flannel/vxlan with checksum and segmentation offload off on flannel.1"
	n.Model += ", ethtool as in Documentation/troubleshooting.md"
	withOffload := n.SetUp
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		if err := withOffload(ctx, self, nodes); err != nil {
			return err
		}
		devices := []string{vxlanDevice}
		if self.Dual() {
			devices = append(devices, vxlanDevice6)
		}
		for _, d := range devices {
			if err := netns.OffloadsOff(self.NS, d); err != nil {
				return fmt.Errorf("%s: %w", self.Name, err)
			}
		}
		return nil
	}
	return n
}
