package encryption

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/tunnel"
)

const (
	wireguardAlgorithm = "ChaCha20-Poly1305"
	// wireguardPort is the port of wg-quick(8)'s examples, which Flannel and Calico use too.
	wireguardPort = 51820
	// wireguardCounters is the abstract socket of wireguard-go's counters, of its namespace.
	wireguardCounters = "cnibench-wireguard-go"
	wireguardModule   = "golang.zx2c4.com/wireguard"
)

// wireguardConfigs are the configurations of all nodes, with new keys.
func wireguardConfigs(nodes []network.Node) ([]wgtypes.Config, error) {
	keys := make([]wgtypes.Key, len(nodes))
	for i := range nodes {
		var err error
		if keys[i], err = wgtypes.GeneratePrivateKey(); err != nil {
			return nil, err
		}
	}
	configs := make([]wgtypes.Config, len(nodes))
	for i := range nodes {
		port := wireguardPort
		configs[i] = wgtypes.Config{PrivateKey: &keys[i], ListenPort: &port, ReplacePeers: true}
		for j, peer := range nodes {
			if i != j {
				configs[i].Peers = append(configs[i].Peers, wireguardPeer(peer, keys[j].PublicKey()))
			}
		}
	}
	return configs, nil
}

// wireguardPeer is a node as the others know it: its own addresses and its pods' are there
// and nowhere else.
func wireguardPeer(peer network.Node, key wgtypes.Key) wgtypes.PeerConfig {
	endpoint, allowed := peer.Address, []netip.Prefix{network.Single(peer.Address.Addr()), peer.PodCIDR}
	if peer.Dual() {
		endpoint = peer.Address6
		allowed = append(allowed, network.Single(peer.Address6.Addr()), peer.PodCIDR6)
	}
	p := wgtypes.PeerConfig{
		PublicKey: key, ReplaceAllowedIPs: true,
		Endpoint: &net.UDPAddr{IP: wireAddress(endpoint).Addr().AsSlice(), Port: wireguardPort},
	}
	for _, a := range allowed {
		p.AllowedIPs = append(p.AllowedIPs, *network.IPNet(a))
	}
	return p
}

// startWireGuard makes the kernel's device on each node.
func startWireGuard(_ context.Context, nodes []network.Node) error {
	configs, err := wireguardConfigs(nodes)
	if err != nil {
		return err
	}
	for i, n := range nodes {
		if err := wireguardDevice(n, configs[i]); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		if err := address(n); err != nil {
			return err
		}
	}
	return nil
}

func wireguardDevice(self network.Node, config wgtypes.Config) error {
	h, err := netns.Handle(self.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = self.Device, self.MTU
	if err := h.LinkAdd(&netlink.GenericLink{LinkAttrs: la, LinkType: "wireguard"}); err != nil {
		return err
	}
	return withWireGuard(self, func(c *wgctrl.Client) error { return c.ConfigureDevice(self.Device, config) })
}

func withWireGuard(self network.Node, f func(*wgctrl.Client) error) error {
	return netns.Do(self.NS, func() error {
		c, err := wgctrl.New()
		if err != nil {
			return err
		}
		defer c.Close()
		return f(c)
	})
}

// address gives a device of the encryption the node's addresses.
func address(self network.Node) error {
	for _, a := range []netip.Prefix{self.Address, self.Address6} {
		if !a.IsValid() {
			continue
		}
		if err := (netns.Port{NS: self.NS, Device: self.Device}).SetAddress(a); err != nil {
			return err
		}
	}
	return nil
}

// readWireGuard reads the wire first: a packet that is sent meanwhile is then encrypted more
// than sent, and not the reverse.
func readWireGuard(self network.Node, _ []network.Node) (c Counters, err error) {
	if c.Wire, err = netns.Sent(self.NS, wireDevice); err != nil {
		return c, err
	}
	err = withWireGuard(self, func(w *wgctrl.Client) error {
		dev, err := w.Device(self.Device)
		if err != nil {
			return err
		}
		for _, p := range dev.Peers {
			c.Encrypted += uint64(p.TransmitBytes)
		}
		return nil
	})
	return c, err
}

// startWireGuardGo runs wireguard-go for each node, in its namespace, as a child of the lab.
func startWireGuardGo(ctx context.Context, nodes []network.Node) error {
	configs, err := wireguardConfigs(nodes)
	if err != nil {
		return err
	}
	for i, n := range nodes {
		arg, err := tunnel.WireGuard{Device: n.Device, MTU: n.MTU, Counters: wireguardCounters}.Arg()
		if err != nil {
			return err
		}
		if err := os.MkdirAll(carrier(n).DataDir, 0o700); err != nil {
			return err
		}
		if err := dataplane.RunForwarderWith(carrier(n), arg, strings.NewReader(crossPlatform(configs[i]))); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	for _, n := range nodes {
		err := dataplane.AwaitForwarder(ctx, carrier(n), "wireguard-go takes no packets", func() (bool, error) {
			_, err := wireguardGoCounters(n)
			return err == nil, nil // until it listens
		})
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		if err := address(n); err != nil {
			return err
		}
	}
	return nil
}

// carrier is a node whose forwarder is wireguard-go: the network's own has the log in the
// node's folder.
func carrier(n network.Node) network.Node {
	n.DataDir = filepath.Join(n.DataDir, "encryption")
	return n
}

// crossPlatform is a configuration in the text of WireGuard's cross-platform interface
// (https://www.wireguard.com/xplatform), which has the keys in hexadecimal.
func crossPlatform(c wgtypes.Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "private_key=%s\nlisten_port=%d\nreplace_peers=true\n", hex.EncodeToString(c.PrivateKey[:]), *c.ListenPort)
	for _, p := range c.Peers {
		fmt.Fprintf(&b, "public_key=%s\nendpoint=%s\nreplace_allowed_ips=true\n", hex.EncodeToString(p.PublicKey[:]), p.Endpoint.AddrPort())
		for _, a := range p.AllowedIPs {
			fmt.Fprintf(&b, "allowed_ip=%s\n", a.String())
		}
	}
	return b.String()
}

// readWireGuardGo is readWireGuard of wireguard-go.
func readWireGuardGo(self network.Node, _ []network.Node) (c Counters, err error) {
	if c.Wire, err = netns.Sent(self.NS, wireDevice); err != nil {
		return c, err
	}
	got, err := wireguardGoCounters(self)
	c.Encrypted = got.Sent
	return c, err
}

// wireguardGoCounters asks wireguard-go. Its socket is in the node's namespace and no file.
func wireguardGoCounters(self network.Node) (got tunnel.WireGuardCounters, err error) {
	var conn net.Conn
	err = netns.Do(self.NS, func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		file := os.NewFile(uintptr(fd), wireguardCounters)
		defer file.Close()
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: "@" + wireguardCounters}); err != nil {
			return fmt.Errorf("wireguard-go does not answer: %w", err)
		}
		conn, err = net.FileConn(file)
		return err
	})
	if err != nil {
		return got, err
	}
	defer conn.Close()
	err = errors.Join(conn.SetDeadline(time.Now().Add(2*time.Second)), json.NewDecoder(conn).Decode(&got))
	return got, err
}

// wireguardGo is its version as it is in this program.
func wireguardGo() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == wireguardModule {
				return "wireguard-go " + strings.TrimPrefix(dep.Version, "v")
			}
		}
	}
	return "wireguard-go"
}
