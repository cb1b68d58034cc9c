package dataplane

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

// OVSPhysical is the bridge that has the node's device where the switch is in user space.
const OVSPhysical = "br-phy"

// OVSSettings are those of a node whose pods an Open vSwitch connects: it forwards, and asks
// who has an address by its gateway's own (Antrea's ARPSpoofGuard drops others). Packets of
// devices that a switch in user space reads come to the node's stack as well, which must not
// answer there for its other devices.
func OVSSettings(self network.Node) error {
	return netns.SetSysctls(self.NS,
		netns.Setting{Path: "net/ipv4/ip_forward", Value: "1"},
		netns.Setting{Path: "net/ipv4/conf/all/arp_announce", Value: "1"},
		netns.Setting{Path: "net/ipv4/conf/all/arp_ignore", Value: "1"})
}

// Uplink puts the node's device on a bridge that has its addresses: a switch in user space
// sends tunnelled packets by its own bridges alone (Open vSwitch's howto
// userspace-tunneling).
func (o OVS) Uplink(ctx context.Context, self network.Node) error {
	h, dev, err := netns.Port{NS: self.NS, Device: self.Device}.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	err = o.Configure(ctx, "--", "add-br", OVSPhysical,
		"--", "set", "Bridge", OVSPhysical, "datapath_type="+OVSUser, "fail_mode=standalone", "other_config:hwaddr=\""+dev.Attrs().HardwareAddr.String()+"\"",
		"--", "set", "Interface", OVSPhysical, fmt.Sprintf("mtu_request=%d", self.MTU),
		"--", "add-port", OVSPhysical, self.Device)
	if err != nil {
		return err
	}
	bridge, err := netns.Link(h, OVSPhysical)
	if err != nil {
		return err
	}
	if err := h.LinkSetUp(bridge); err != nil {
		return err
	}
	if err := h.AddrDel(dev, &netlink.Addr{IPNet: network.IPNet(self.Address)}); err != nil {
		return err
	}
	return h.AddrAdd(bridge, &netlink.Addr{IPNet: network.IPNet(self.Address)})
}

// DropCopies has the node's stack drop its copy of what the uplink receives: the switch in
// user space has it too.
func DropCopies(filter *Table, self network.Node) {
	filter.Insert("FORWARD", "-i "+self.Device+" -j DROP")
	filter.Insert("INPUT", "-i "+self.Device+" -j DROP")
}

// Checksums has a pod sum up its packets itself where the switch is in user space: that
// would pass them on without.
func (o OVS) Checksums(ctx context.Context, bridge string, pod netns.NS, device string) error {
	datapath, err := o.VSCtl(ctx, "get", "Bridge", bridge, "datapath_type")
	if err != nil || datapath != OVSUser+"\n" {
		return err
	}
	return netns.OffloadsOff(pod, device)
}
