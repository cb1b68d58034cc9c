package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/tunnel"
)

// weaveSleeve is Weave Net where it cannot have its fast datapath, or was told
// not to (WEAVE_NO_FASTDP).
func weaveSleeve() Network {
	n := Network{
		Kind:    result.KindOwnPlugin,
		Name:    "weave/sleeve",
		Summary: "Weave Net without its fast datapath: frames captured at a bridge, in UDP from user space between nodes",
		Model:   weaveModel + "router/sleeve.go and pcap.go (router by this program)",
		LeavesOut: weaveLeft + "; discovery of the path's MTU (pods have what it finds: 62 less than the link's) and fragments; " +
			"the router's goroutines (one thread does both ways)",
		Encapsulation: "sleeve",
		Overhead:      tunnel.SleeveOverhead,
		Needs:         []netns.Feature{netns.Veth(), netns.Bridge()},
		Wants:         []netns.Feature{netns.BridgeNetfilter()},
		Plugins:       []string{"host-local"},
	}
	n.SetUp = func(ctx context.Context, self Node, nodes []Node) error {
		if err := weaveNode(self, n.PodMTUOn(self), weavePcapIf); err != nil {
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
	n.Conflist = template(weaveConflist, n)
	return n
}

// startSleeve starts the node's router and waits until it forwards.
func startSleeve(ctx context.Context, self Node, nodes []Node) error {
	at := func(n Node) netip.AddrPort { return netip.AddrPortFrom(n.Address.Addr(), weavePort) }
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
	if err := runForwarder(self, arg); err != nil {
		return err
	}
	return awaitForwarder(ctx, self, "it carries no frames", func() (bool, error) {
		_, err := os.Stat(s.Ready)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return true, err
	})
}
