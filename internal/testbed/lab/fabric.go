package lab

import (
	"net/netip"
	"os"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

// fabricBridge is the switch.
const fabricBridge = "br0"

// fabricSettings make a switch of the fabric's bridge: no IPv6 of its own, and
// no packet passes iptables.
func fabricSettings() []netns.Setting {
	settings := []netns.Setting{
		{Path: "net/ipv6/conf/all/disable_ipv6", Value: "1"},
		{Path: "net/ipv6/conf/default/disable_ipv6", Value: "1"},
		{Path: "net/bridge/bridge-nf-call-iptables", Value: "0"},
		{Path: "net/bridge/bridge-nf-call-ip6tables", Value: "0"},
		{Path: "net/bridge/bridge-nf-call-arptables", Value: "0"},
	}
	var there []netns.Setting
	for _, s := range settings { // br_netfilter and IPv6 may not be in the kernel
		if _, err := os.Stat("/proc/sys/" + s.Path); err == nil {
			there = append(there, s)
		}
	}
	return there
}

// wire makes the fabric's switch and each node's link to it, shaped at the
// switch's ports.
func (c *cluster) wire(fabric netns.NS) error {
	wired := make([]network.Node, len(c.nodes))
	for i, n := range c.nodes {
		wired[i] = c.encryption.Wire(n, c.spec.MTU)
	}
	return wire(fabric, c.link, c.spec.MTU, wired)
}

func wire(fabric netns.NS, link Link, mtu int, nodes []network.Node) error {
	if err := netns.AddBridge(fabric, fabricBridge, mtu); err != nil {
		return err
	}
	for _, n := range nodes {
		port, dev := netns.Port{NS: fabric, Device: n.Name}, netns.Port{NS: n.NS, Device: n.Device}
		ports, err := link.connect(port, dev, n.MTU)
		if err != nil {
			return err
		}
		for _, a := range []netip.Prefix{n.Address, n.Address6} {
			if !a.IsValid() {
				continue
			}
			if err := dev.SetAddress(a); err != nil {
				return err
			}
		}
		for _, p := range ports {
			if err := link.shape(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// connect makes a node's wires and gives the switch's ends of them.
func (l Link) connect(port, dev netns.Port, mtu int) ([]netns.Port, error) {
	if l.Wires > 1 {
		return netns.ConnectBonded(port, fabricBridge, dev, mtu, l.Wires)
	}
	return []netns.Port{port}, netns.Connect(port, fabricBridge, dev, mtu)
}

// shape makes of a switch's port one of the link.
func (l Link) shape(port netns.Port) error {
	if l.RateBitsPerSecond == 0 {
		return nil
	}
	if err := port.Shape(l.RateBitsPerSecond, tbfBurst, tbfQueue); err != nil || l.Delay == 0 {
		return err
	}
	return port.DelayShaped(l.Delay, l.RateBitsPerSecond, tbfQueue)
}
