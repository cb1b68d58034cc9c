package flannel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// What flannel v0.28.0, pkg/backend/wireguard has: its device, its port, and
// the bytes that it takes from the MTU (room for an outer IPv6 header too).
const (
	wireguardDevice   = "flannel-wg"
	wireguardPort     = 51820
	wireguardOverhead = 80
)

// WireGuard does what flannel's backend wireguard does.
func WireGuard() network.Network {
	return withBackend(network.Network{
		Name:          "flannel/wireguard",
		Summary:       "flannel with WireGuard encryption between nodes: cni0 bridge, flannel-wg tunnel",
		Model:         "flannel v0.28.0 pkg/backend/wireguard",
		Encapsulation: "wireguard",
		NoEncryption:  "it encrypts packets between nodes itself",
		Overhead:      wireguardOverhead,
		Needs:         []netns.Feature{netns.WireGuard()},
	}, func(_ context.Context, self network.Node, nodes []network.Node) error {
		if err := wireguardNode(self, nodes); err != nil {
			return fmt.Errorf("%s on %s: %w", wireguardDevice, self.Name, err)
		}
		return nil
	})
}

func wireguardNode(self network.Node, nodes []network.Node) error {
	config, err := wireguardConfig(self, nodes)
	if err != nil {
		return err
	}
	h, err := netns.Handle(self.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = wireguardDevice, self.MTU-wireguardOverhead
	dev := &netlink.GenericLink{LinkAttrs: la, LinkType: "wireguard"}
	if err := h.LinkAdd(dev); err != nil {
		return err
	}
	err = netns.Do(self.NS, func() error {
		c, err := wgctrl.New()
		if err != nil {
			return err
		}
		defer c.Close()
		return c.ConfigureDevice(wireguardDevice, config)
	})
	if err != nil {
		return fmt.Errorf("keys and peers: %w", err)
	}
	if err := dataplane.TunnelUp(h, dev, self.PodCIDR.Addr()); err != nil {
		return err
	}
	err = h.RouteReplace(&netlink.Route{LinkIndex: dev.Index, Scope: netlink.SCOPE_LINK, Dst: network.IPNet(network.Pods())})
	if err != nil {
		return fmt.Errorf("route to %s: %w", network.Pods(), err)
	}
	return nil
}

// wireguardConfig has self's key and every other node as a peer, which is
// where that node's pods are and nobody else's.
func wireguardConfig(self network.Node, nodes []network.Node) (wgtypes.Config, error) {
	key, err := wireguardKey(self)
	if err != nil {
		return wgtypes.Config{}, err
	}
	port := wireguardPort
	c := wgtypes.Config{PrivateKey: &key, ListenPort: &port, ReplacePeers: true}
	for _, peer := range nodes {
		if peer.Index == self.Index {
			continue
		}
		key, err := wireguardKey(peer)
		if err != nil {
			return wgtypes.Config{}, err
		}
		c.Peers = append(c.Peers, wgtypes.PeerConfig{
			PublicKey: key.PublicKey(), ReplaceAllowedIPs: true,
			Endpoint:   &net.UDPAddr{IP: peer.Address.Addr().AsSlice(), Port: wireguardPort},
			AllowedIPs: []net.IPNet{*network.IPNet(peer.PodCIDR)},
		})
	}
	return c, nil
}

// wireguardKey is a node's private key, drawn when it is first asked for and
// kept in the node's folder, which goes with the lab.
func wireguardKey(n network.Node) (wgtypes.Key, error) {
	path := filepath.Join(n.DataDir, "wgkey")
	text, err := os.ReadFile(path)
	if err == nil {
		return wgtypes.ParseKey(string(text))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return wgtypes.Key{}, err
	}
	key, err := wgtypes.GeneratePrivateKey()
	if err != nil {
		return wgtypes.Key{}, err
	}
	return key, os.WriteFile(path, []byte(key.String()), 0o400)
}
