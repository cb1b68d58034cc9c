// Package encryption encrypts what the nodes of a lab's cluster send each other, below the
// network that is on them: its tunnels, and with WireGuard its routed packets too.
//
// The networks' own agents do it in three ways. Cilium v1.18 hands a packet of its tunnel
// to cilium_wg0, a WireGuard device whose peers may have their nodes' addresses and pods
// (bpf/lib/wireguard.h, pkg/wireguard/agent). Calico v3.27 routes pods' packets into
// wireguard.cali (felix/wireguard). Antrea v1.15 and OVN have the kernel's IPsec encrypt
// the packets of their tunnels in transport mode, by policies for the nodes' addresses
// (docs/traffic-encryption.md, ovs-monitor-ipsec). This package does the first and the
// third for every network: the peers of the first have pods' addresses too, so it covers
// what Calico does.
package encryption

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// Method is one way to encrypt; the zero value encrypts nothing.
type Method struct {
	// Name is what campaigns call it, one of result.Encryptions.
	Name string
	// Algorithm is its cipher.
	Algorithm string
	// needs and needs6 are the kernel features that it requires, needs6 on clusters of both
	// families alone.
	needs, needs6 []netns.Feature
	// device tells that a device of its own has the node's addresses, above the wire.
	device bool
	// start makes it on all nodes.
	start func(ctx context.Context, nodes []network.Node) error
	// read reads the counters of one node.
	read func(self network.Node, nodes []network.Node) (Counters, error)
	// implementation names what encrypts on this machine, with its version.
	implementation func() string
}

// Find looks a method up by its name in a cell; "" encrypts nothing.
func Find(name string) (Method, error) {
	if name == "" {
		return Method{}, nil
	}
	for _, m := range methods() {
		if m.Name == name {
			return m, nil
		}
	}
	return Method{}, fmt.Errorf("unknown encryption %q (known: %s)", name, strings.Join(result.Encryptions(), ", "))
}

func methods() [3]Method {
	return [...]Method{
		{
			Name: result.EncryptionWireGuard, Algorithm: wireguardAlgorithm, needs: []netns.Feature{netns.WireGuard()}, device: true,
			start: startWireGuard, read: readWireGuard,
			implementation: func() string { return "WireGuard of Linux " + kernel() },
		},
		{
			Name: result.EncryptionWireGuardGo, Algorithm: wireguardAlgorithm, needs: []netns.Feature{netns.TUN()}, device: true,
			start: startWireGuardGo, read: readWireGuardGo, implementation: wireguardGo,
		},
		{
			Name: result.EncryptionIPsec, Algorithm: "AES-GCM-128", needs: []netns.Feature{netns.ESP()}, needs6: []netns.Feature{netns.ESP6()},
			start: startIPsec, read: readIPsec,
			implementation: func() string { return "ESP of Linux " + kernel() },
		},
	}
}

// On tells whether anything is encrypted.
func (m Method) On() bool { return m.Name != "" }

// Needs are the kernel features without which it is unsupported.
func (m Method) Needs(six bool) []netns.Feature {
	if six {
		return append(append([]netns.Feature{}, m.needs...), m.needs6...)
	}
	return m.needs
}

// Refuses says why a network cannot be encrypted; nil where it can. lacks asks the kernel
// for a feature.
func (m Method) Refuses(n network.Network, lacks func(netns.Feature) error) error {
	if !m.On() {
		return nil
	}
	if n.NoEncryption != "" {
		return fmt.Errorf("%s cannot have encryption by %s: %s", n.Name, m.Name, n.NoEncryption)
	}
	if m.device && n.NeedsEthernet != "" {
		return fmt.Errorf("%s cannot have encryption by %s: %s", n.Name, m.Name, n.NeedsEthernet)
	}
	tunnel := n.Encapsulation != "" || n.HostNetwork
	if !m.device && !tunnel {
		return fmt.Errorf("%s cannot have encryption by %s: it encrypts packets between the nodes' own addresses, and without a tunnel pods send from theirs: "+
			"choose %s or %s", n.Name, m.Name, result.EncryptionWireGuard, result.EncryptionWireGuardGo)
	}
	if n.Encapsulation == "" {
		return nil
	}
	for _, f := range n.InKernel {
		if err := lacks(f); err != nil {
			return fmt.Errorf("%s cannot have encryption by %s here: %w, so a switch in user space sends its tunnel's packets past the node's IP layer", n.Name, m.Name, err)
		}
	}
	return nil
}

// kernel is the running kernel's release.
func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "of an unknown release"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// Implementation names what encrypts on this machine, with its version.
func (m Method) Implementation() string { return m.implementation() }

// Start makes it on all nodes, which are wired (Wire). Keys are drawn for this cluster; they
// are in this process, in the kernel or in wireguard-go, and nowhere else.
func (m Method) Start(ctx context.Context, nodes []network.Node) error {
	if !m.On() {
		return nil
	}
	if err := permanentNeighbours(m, nodes); err != nil {
		return fmt.Errorf("encryption by %s: %w", m.Name, err)
	}
	if err := m.start(ctx, nodes); err != nil {
		return fmt.Errorf("encryption by %s: %w", m.Name, err)
	}
	return nil
}
