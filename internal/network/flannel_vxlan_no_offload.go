package network

import (
	"context"
	"fmt"

	"github.com/cnibench/cnibench/internal/netns"
)

// flannelVXLANNoOffload is flannel/vxlan with what flannel's documents
// (v0.28.0, Documentation/troubleshooting.md) tell to do where a network card
// breaks the packets in a tunnel: ethtool -K flannel.1 tx-checksum-ip-generic
// off. Without checksums the kernel cannot leave segmentation for later
// either, so each packet goes through the tunnel alone and finished.
func flannelVXLANNoOffload() Network {
	n := flannelVXLAN()
	n.Name = "flannel/vxlan-no-offload"
	n.Summary = "flannel/vxlan with checksum and segmentation offload off on flannel.1"
	n.Model += ", ethtool as in Documentation/troubleshooting.md"
	withOffload := n.SetUp
	n.SetUp = func(ctx context.Context, self Node, nodes []Node) error {
		if err := withOffload(ctx, self, nodes); err != nil {
			return err
		}
		devices := []string{flannelDevice}
		if self.dual() {
			devices = append(devices, flannelDevice6)
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
