package network

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed spiderpool_macvlan.conflist
var spiderpoolMACVLANConflist string

//go:embed spiderpool_macvlan_routed.conflist
var spiderpoolMACVLANRoutedConflist string

//go:embed spiderpool_ipvlan.conflist
var spiderpoolIPVLANConflist string

const (
	spiderpoolModel     = "Spiderpool v1.0 cmd/coordinator in mode underlay (by this program's plugin cnibench-coordinator), "
	spiderpoolLeavesOut = "Spiderpool's IPAM (host-local instead), detection of address conflicts, Multus"
)

// spiderpoolMACVLAN has pods in the nodes' own subnet.
func spiderpoolMACVLAN() Network {
	n := Network{
		Kind:      result.KindOwnPlugin,
		Name:      "spiderpool/macvlan",
		Summary:   "Spiderpool over macvlan: pods on the wire in the nodes' subnet, veth0 to their own node",
		Model:     spiderpoolModel + "reference plugin macvlan",
		LeavesOut: spiderpoolLeavesOut,
		Needs:     []netns.Feature{netns.Veth(), netns.MACVLAN()},
		Plugins:   []string{"macvlan", "host-local"},
		SetUp:     spiderpoolNode,
	}
	n.Conflist = template(spiderpoolMACVLANConflist, n)
	return n
}

// spiderpoolIPVLAN is the same over ipvlan.
func spiderpoolIPVLAN() Network {
	n := Network{
		Kind:      result.KindOwnPlugin,
		Name:      "spiderpool/ipvlan",
		Summary:   "Spiderpool over ipvlan L2: pods on the wire in the nodes' subnet, veth0 to their own node",
		Model:     spiderpoolModel + "reference plugin ipvlan",
		LeavesOut: spiderpoolLeavesOut,
		Needs:     []netns.Feature{netns.Veth(), netns.IPVLAN()},
		Plugins:   []string{"ipvlan", "host-local"},
		SetUp:     spiderpoolNode,
	}
	n.Conflist = template(spiderpoolIPVLANConflist, n)
	return n
}

// spiderpoolMACVLANRouted has each node's pods in a subnet of their own, with a
// router between all subnets.
func spiderpoolMACVLANRouted() Network {
	n := Network{
		Kind:          result.KindOwnPlugin,
		Name:          "spiderpool/macvlan-routed",
		Summary:       "Spiderpool over macvlan: each node's pods in a subnet of their own, a router between subnets",
		Model:         spiderpoolModel + "reference plugin macvlan; a namespace as the router",
		LeavesOut:     spiderpoolLeavesOut + "; a VLAN for each subnet: all are on one wire",
		MasqueradeAll: true,
		Needs:         []netns.Feature{netns.Veth(), netns.MACVLAN()},
		Plugins:       []string{"macvlan", "host-local"},
		SetUp: func(ctx context.Context, self Node, nodes []Node) error {
			if err := spiderpoolNode(ctx, self, nodes); err != nil {
				return err
			}
			if self.Index == 1 {
				if err := router(self, nodes); err != nil {
					return fmt.Errorf("router: %w", err)
				}
			}
			return defaultRoute(self)
		},
	}
	n.Conflist = template(spiderpoolMACVLANRoutedConflist, n)
	return n
}

// spiderpoolNode: a node answers its own pods at veth0 for its own address
// alone, as the coordinator's static neighbours have it.
func spiderpoolNode(_ context.Context, self Node, _ []Node) error {
	return netns.SetSysctls(self.NS, netns.Setting{Path: "net/ipv4/ip_forward", Value: "1"})
}

// router makes the underlay's router: a namespace that has the last address of
// the nodes' subnet and of each node's pods'. Its name begins with the
// fabric's, so it goes with the lab. Subnets share one wire, so it would tell
// hosts to send past it; a real one, with a VLAN for each, would not.
func router(self Node, nodes []Node) error {
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
		if err := dev.SetAddress(netip.PrefixFrom(lastAddress(s), s.Bits())); err != nil {
			return err
		}
	}
	return nil
}
