// Package bigtcp is BIG TCP on top of a network: its devices pass TCP segments of more than
// 64 KiB.
package bigtcp

import (
	"context"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

// On is a network without encapsulation whose devices, from pod to pod, pass TCP
// segments of more than 64 KiB: a sender's stack, each device and rule, and a receiver's
// stack handle a third of the segments.
func On(n network.Network) network.Network {
	n.Name += "+bigtcp"
	n.Summary += "; TCP segments of up to 192 KiB on every device (BIG TCP)"
	n.BigTCP = true
	n.NoEncryption = "encryption cuts segments into packets, and none of more than 64 KiB would be left between nodes"
	n.Needs = append(append([]netns.Feature{}, n.Needs...), netns.BigTCP())
	below := n.PodsAdded
	n.PodsAdded = func(ctx context.Context, self network.Node, nodes []network.Node, pods []network.Pod) error {
		if below != nil {
			if err := below(ctx, self, nodes, pods); err != nil {
				return err
			}
		}
		return allow(self, nodes, pods)
	}
	return n
}

// allow does it on one node and in its pods, and with the first node on the switch
// between them. The devices exist only once the pods do.
func allow(self network.Node, nodes []network.Node, pods []network.Pod) error {
	all := []netns.NS{self.NS}
	if self.Index == nodes[0].Index {
		all = append(all, self.Switch.NS)
	}
	for _, p := range pods {
		if p.Node == self.Index {
			all = append(all, netns.Named(p.ID))
		}
	}
	for _, ns := range all {
		if err := netns.AllowBigTCP(ns); err != nil {
			return err
		}
	}
	return nil
}
