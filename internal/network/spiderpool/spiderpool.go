// Package spiderpool has Spiderpool's networks: pods on the wire, with a second device to
// their own node.
package spiderpool

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed macvlan.conflist
var macvlanConflist string

//go:embed macvlan_routed.conflist
var macvlanRoutedConflist string

//go:embed ipvlan.conflist
var ipvlanConflist string

const (
	model     = "Spiderpool v1.0 cmd/coordinator in mode underlay (by this program's plugin cnibench-coordinator), "
	noXDP     = "its pods are on the link themselves, and answer past their node"
	leavesOut = "Spiderpool's IPAM (host-local instead), detection of address conflicts, Multus"
)

// MACVLAN has pods in the nodes' own subnet.
func MACVLAN() network.Network {
	n := network.Network{
		Kind:         result.KindOwnPlugin,
		Name:         "spiderpool/macvlan",
		NoEncryption: network.OnTheWire,
		NoXDP:        noXDP,
		Summary:      "Spiderpool over macvlan: pods on the wire in the nodes' subnet, veth0 to their own node",
		Model:        model + "reference plugin macvlan",
		LeavesOut:    leavesOut,
		Needs:        []netns.Feature{netns.Veth(), netns.MACVLAN()},
		Plugins:      []string{"macvlan", "host-local"},
		SetUp:        node,
	}
	n.Conflist = network.Template(macvlanConflist, n)
	return n
}

// IPVLAN is the same over ipvlan.
func IPVLAN() network.Network {
	n := network.Network{
		Kind:         result.KindOwnPlugin,
		Name:         "spiderpool/ipvlan",
		NoEncryption: network.OnTheWire,
		NoXDP:        noXDP,
		Summary:      "Spiderpool over ipvlan L2: pods on the wire in the nodes' subnet, veth0 to their own node",
		Model:        model + "reference plugin ipvlan",
		LeavesOut:    leavesOut,
		Needs:        []netns.Feature{netns.Veth(), netns.IPVLAN()},
		Plugins:      []string{"ipvlan", "host-local"},
		SetUp:        node,
	}
	n.Conflist = network.Template(ipvlanConflist, n)
	return n
}

// MACVLANRouted has each node's pods in a subnet of their own, with a
// router between all subnets.
func MACVLANRouted() network.Network {
	n := network.Network{
		Kind:          result.KindOwnPlugin,
		Name:          "spiderpool/macvlan-routed",
		NoEncryption:  network.OnTheWire,
		NoXDP:         noXDP,
		Summary:       "Spiderpool over macvlan: each node's pods in a subnet of their own, a router between subnets",
		Model:         model + "reference plugin macvlan; a namespace as the router",
		LeavesOut:     leavesOut + "; a VLAN for each subnet: all are on one wire",
		MasqueradeAll: true,
		Needs:         []netns.Feature{netns.Veth(), netns.MACVLAN()},
		Plugins:       []string{"macvlan", "host-local"},
		SetUp: func(ctx context.Context, self network.Node, nodes []network.Node) error {
			if err := node(ctx, self, nodes); err != nil {
				return err
			}
			if self.Index == 1 {
				if err := router(self, nodes); err != nil {
					return fmt.Errorf("router: %w", err)
				}
			}
			return network.DefaultRoute(self)
		},
	}
	n.Conflist = network.Template(macvlanRoutedConflist, n)
	return n
}

// node: a node answers its own pods at veth0 for its own address
// alone, as the coordinator's static neighbours have it.
func node(_ context.Context, self network.Node, _ []network.Node) error {
	return netns.SetSysctls(self.NS, netns.Setting{Path: "net/ipv4/ip_forward", Value: "1"})
}

// router makes the underlay's router: a namespace that has the last address of
// the nodes' subnet and of each node's pods'. Its name begins with the
// fabric's, so it goes with the lab. Subnets share one wire, so it would tell
// hosts to send past it; a real one, with a VLAN for each, would not.
func router(self network.Node, nodes []network.Node) error {
	ns, err := netns.New(self.Switch.NS.Name + "-router")
	if err != nil {
		return err
	}
	err = netns.SetSysctls(ns,
		netns.Setting{Path: "net/ipv4/ip_forward", Value: "1"},
		netns.Setting{Path: "net/ipv4/conf/all/send_redirects", Value: "0"},
		netns.Setting{Path: "net/ipv4/conf/default/send_redirects", Value: "0"},
		netns.Setting{Path: "net/ipv4/conf/all/rp_filter", Value: "0"},
		netns.Setting{Path: "net/ipv4/conf/default/rp_filter", Value: "0"})
	if err != nil {
		return err
	}
	dev := netns.Port{NS: ns, Device: "eth0"}
	if err := netns.Connect(netns.Port{NS: self.Switch.NS, Device: "router"}, self.Switch.Device, dev, self.MTU); err != nil {
		return err
	}
	subnets := []netip.Prefix{self.Address}
	for _, n := range nodes {
		subnets = append(subnets, n.PodCIDR)
	}
	for _, s := range subnets {
		if err := dev.SetAddress(netip.PrefixFrom(network.LastAddress(s), s.Bits())); err != nil {
			return err
		}
	}
	return nil
}
