package weave

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/tunnel"
)

// Sleeve is Weave Net where it cannot have its fast datapath, or was configured
// not to (WEAVE_NO_FASTDP).
func Sleeve() network.Network {
	n := network.Network{
		Kind:    result.KindOwnPlugin,
		NoXDP:   noXDP,
		Name:    "weave/sleeve",
		Summary: "Weave Net without its fast datapath: frames captured at a bridge, in UDP from user space between nodes",
		Model:   model + "router/sleeve.go and pcap.go (router by this program)",
		LeavesOut: leavesOut + "; discovery of the path's MTU (pods have what it finds: 62 less than the link's) and fragments; " +
			"the router's goroutines (one thread does both ways)",
		Encapsulation: "sleeve",
		Overhead:      tunnel.SleeveOverhead,
		Needs:         []netns.Feature{netns.Veth(), netns.Bridge()},
		Wants:         []netns.Feature{netns.BridgeNetfilter()},
		Plugins:       []string{"host-local"},

		UserSpaceLoses: network.FloodsOfFragments,
	}
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		if err := node(self, n.PodMTUOn(self), weavePcapIf); err != nil {
			return err
		}
		if err := netns.OffloadsOff(self.NS, weaveBridge); err != nil {
			return err
		}
		if err := startSleeve(ctx, self, nodes); err != nil {
			return fmt.Errorf("router of %s: %w", self.Name, err)
		}
		return nil
	}
	n.Conflist = network.Template(conflist, n)
	return n
}

// startSleeve starts the node's router and waits until it forwards.
func startSleeve(ctx context.Context, self network.Node, nodes []network.Node) error {
	at := func(n network.Node) netip.AddrPort { return netip.AddrPortFrom(n.Address.Addr(), weavePort) }
	s := tunnel.Sleeve{
		Device: weavePcapIf, Local: at(self), Name: weaveName(self).String(),
		MaxPayload: self.MTU - 28, Ready: filepath.Join(self.DataDir, "sleeve.ready"),
	}
	for _, peer := range nodes {
		if peer.Index != self.Index {
			s.Peers = append(s.Peers, tunnel.SleevePeer{Name: weaveName(peer).String(), Node: at(peer)})
		}
	}
	arg, err := s.Arg()
	if err != nil {
		return err
	}
	if err := dataplane.RunForwarder(self, arg); err != nil {
		return err
	}
	return dataplane.AwaitForwarder(ctx, self, "it carries no frames", func() (bool, error) {
		_, err := os.Stat(s.Ready)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return true, err
	})
}
