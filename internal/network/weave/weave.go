// Package weave has the networks of Weave Net.
package weave

import (
	"crypto/sha1"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/plugin"
)

//go:embed weave.conflist
var conflist string

// What Weave Net v2.8 calls its bridge and the wire from it to what carries
// frames to other nodes (net/bridge.go), and its router's port.
const (
	weaveBridge   = "weave"
	weaveBridgeIf = "vethwe-bridge"
	weavePcapIf   = "vethwe-pcap"
	weaveODPIf    = "vethwe-datapath"
	weavePort     = 6783

	model     = "Weave Net v2.8 net/bridge.go, net/veth.go (pods by this program's plugin cnibench-weave), "
	noXDP     = "its pods of all nodes are on one bridge, and answer each other past a program at the node's device"
	leavesOut = "the router's gossip and heartbeats (peers are set), weave-npc, encryption, masquerade, Weave's IPAM (host-local instead)"
)

// node makes a node's bridge, which has the first address of the node's
// part of the one subnet that all pods are in, and the wire that ends in far.
func node(self network.Node, podMTU int, far string) error {
	if err := network.KubernetesNode(self); err != nil {
		return err
	}
	if err := netns.AddBridge(self.NS, weaveBridge, podMTU); err != nil {
		return err
	}
	wire := netns.Port{NS: self.NS, Device: weaveBridgeIf}
	end := netns.Port{NS: self.NS, Device: far}
	if err := netns.Connect(wire, weaveBridge, end, podMTU); err != nil {
		return err
	}
	h, err := netns.Handle(self.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	dev, err := netns.Link(h, far)
	if err != nil {
		return err
	}
	// The node's stack sees the frames as well; it must not answer for the
	// node's addresses by a device that is not theirs.
	if err := h.LinkSetARPOff(dev); err != nil {
		return fmt.Errorf("%s of %s: %w", far, self.Name, err)
	}
	if err := h.LinkSetUp(dev); err != nil {
		return fmt.Errorf("%s of %s: %w", far, self.Name, err)
	}
	bridge, err := netns.Link(h, weaveBridge)
	if err != nil {
		return err
	}
	if err := h.LinkSetHardwareAddr(bridge, weaveName(self)); err != nil {
		return fmt.Errorf("%s of %s: %w", weaveBridge, self.Name, err)
	}
	return netns.Port{NS: self.NS, Device: weaveBridge}.SetAddress(netip.PrefixFrom(gateway(self), network.Pods().Bits()))
}

// gateway is the address of a node's bridge.
func gateway(self network.Node) netip.Addr { return self.PodCIDR.Addr().Next() }

// weaveName is a node's name among its peers, six octets: Weave takes the
// bridge's hardware address.
func weaveName(n network.Node) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0x77, 0x65, 0, byte(n.Index >> 8), byte(n.Index)}
}

// weaveMAC is the hardware address of a pod, made of its own so that other
// nodes know it.
func weaveMAC(a netip.Addr) net.HardwareAddr {
	b := a.As4()
	return net.HardwareAddr{0x02, 0x77, b[0], b[1], b[2], b[3]}
}

// Plugins are the CNI plugins of this program that the networks of this folder name.
func Plugins() []plugin.Plugin {
	return []plugin.Plugin{
		{Name: "cnibench-weave", Funcs: skel.CNIFuncs{Add: add, Del: plugin.Del, Check: plugin.Check}},
	}
}

// add does what AttachContainer of Weave Net's net/veth.go does for a
// Kubernetes pod: a veth on the bridge that leaves no checksum to be done later,
// an address of the one subnet, and a default route by the bridge.
func add(args *skel.CmdArgs) (err error) {
	conf, result, err := plugin.IPAMAdd(args)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, plugin.IPAMDel(conf, args))
		}
	}()
	ip := result.IPs[0]
	address, _ := netip.AddrFromSlice(ip.Address.IP.To4())
	if ip.Gateway == nil {
		return fmt.Errorf("IPAM plugin %s gave no gateway", conf.IPAM.Type)
	}
	bridge, err := netlink.LinkByName(weaveBridge)
	if err != nil {
		return fmt.Errorf("device %s: %w", weaveBridge, err)
	}
	host := fmt.Sprintf("vethwepl%x", sha1.Sum([]byte(args.ContainerID)))[:15]
	dev, err := plugin.Veth(args, host, conf.MTU, weaveMAC(address))
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMasterByIndex(dev, bridge.Attrs().Index); err != nil {
		return fmt.Errorf("device %s on %s: %w", host, weaveBridge, err)
	}
	if err := netns.OffloadsOff(plugin.NS(args), args.IfName); err != nil {
		return err
	}
	mac, err := plugin.SubnetSide(args, &ip.Address, ip.Gateway)
	if err != nil {
		return err
	}
	ip.Interface = current.Int(1)
	result.Interfaces = []*current.Interface{{Name: host}, {Name: args.IfName, Mac: mac.String(), Sandbox: args.Netns}}
	result.Routes = nil
	return types.PrintResult(result, conf.CNIVersion)
}
