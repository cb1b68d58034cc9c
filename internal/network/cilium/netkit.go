package cilium

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/network/plugin"
)

// podDevice is the name of a pod's device.
const podDevice = "eth0"

// NativeNetkit is Cilium without encapsulation whose pods have a netkit: bpf.datapathMode=netkit.
func NativeNetkit() network.Network {
	return variant{
		name: "cilium/native+netkit", netkit: true,
		summary: "Cilium's eBPF host routing without encapsulation, pods at a netkit in place of a veth; no connection tracking, no policy",
	}.network()
}

// VXLANNetkit is the same with VXLAN between nodes.
func VXLANNetkit() network.Network {
	return variant{
		name: "cilium/vxlan+netkit", tunnel: "vxlan", netkit: true, needs: []netns.Feature{netns.VXLAN()},
		summary: "Cilium's eBPF datapath, VXLAN between nodes, pods at a netkit in place of a veth; no connection tracking, no policy",
	}.network()
}

// onNetkit is what differs from the network with veths.
func onNetkit(n network.Network) network.Network {
	n.Model += "; netkit as in pkg/datapath/connector/netkit.go, pkg/datapath/loader/netkit.go"
	n.LeavesOut += "; the mode netkit-l2, BIG TCP on the netkit"
	n.Needs = append(n.Needs, netns.Netkit())
	n.Attached = attached
	return n
}

// pair makes a pod's two devices and gives the node's.
func (c ciliumConf) pair(args *skel.CmdArgs, mtu int) (netlink.Link, error) {
	if c.Netkit {
		return netkit(args, hostDevice(args.ContainerID), mtu)
	}
	return plugin.Veth(args, hostDevice(args.ContainerID), mtu, nil)
}

// attach attaches the pod's own program where it sees what the pod sends.
func (c ciliumConf) attach(host netlink.Link, p *ebpf.Program) error {
	if c.Netkit {
		return dataplane.AttachNetkit(host, p)
	}
	return dataplane.AttachEBPF(host, dataplane.Ingress(), p)
}

// netkit makes a pair with one end in the pod and gives the other, which is up and here. It is
// that of SetupNetkitWithNames in Cilium's pkg/datapath/connector/netkit.go in mode L3: without
// hardware addresses and ARP. What the pod sends is dropped until it has its program.
func netkit(args *skel.CmdArgs, host string, mtu int) (netlink.Link, error) {
	far, err := os.Open(args.Netns)
	if err != nil {
		return nil, err
	}
	defer far.Close()
	near, peer := netlink.NewLinkAttrs(), netlink.NewLinkAttrs()
	near.Name, near.MTU = host, mtu
	peer.Name, peer.MTU, peer.Namespace = args.IfName, mtu, netlink.NsFd(int(far.Fd()))
	pair := &netlink.Netkit{
		LinkAttrs: near, Mode: netlink.NETKIT_MODE_L3,
		Policy: netlink.NETKIT_POLICY_FORWARD, PeerPolicy: netlink.NETKIT_POLICY_BLACKHOLE,
		Scrub: netlink.NETKIT_SCRUB_NONE, PeerScrub: netlink.NETKIT_SCRUB_DEFAULT,
	}
	pair.SetPeerAttrs(&peer)
	if err := netlink.LinkAdd(pair); err != nil {
		return nil, fmt.Errorf("netkit %s: %w", host, err)
	}
	dev, err := netns.Dump(func() (netlink.Link, error) { return netlink.LinkByName(host) })
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", host, err)
	}
	if err := netlink.LinkSetUp(dev); err != nil {
		return nil, fmt.Errorf("device %s: up: %w", host, err)
	}
	return dev, verifyPair(plugin.NS(args), args.IfName, dev)
}

// errNotNetkit begins the reason of a sample whose pod has other devices than the network claims.
var errNotNetkit = errors.New("not netkit")

// attached is Network.Attached: both ends of each pod on the node are one netkit in mode L3, and
// the pod's program is at it. Nothing else could carry what the pod sends: without a program the
// netkit drops it.
func attached(self network.Node, pods []network.Pod) error {
	for _, p := range pods {
		if p.Node != self.Index {
			continue
		}
		err := netns.Do(self.NS, func() error {
			host, err := netns.Dump(func() (netlink.Link, error) { return netlink.LinkByName(hostDevice(p.ID)) })
			if err != nil {
				return fmt.Errorf("device %s: %w", hostDevice(p.ID), err)
			}
			if err := verifyPair(netns.Named(p.ID), podDevice, host); err != nil {
				return err
			}
			if err := dataplane.NetkitProgram(host); err != nil {
				return fmt.Errorf("%w: %w", errNotNetkit, err)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", self.Name, err)
		}
	}
	return nil
}

// verifyPair reads back that a pod's device and the node's are the two sides of one netkit in
// mode L3.
func verifyPair(pod netns.NS, name string, host netlink.Link) error {
	h, dev, err := netns.Port{NS: pod, Device: name}.Open()
	if err != nil {
		return err
	}
	h.Close()
	for _, side := range []struct {
		netlink.Link
		primary bool
	}{{host, true}, {dev, false}} {
		name := side.Attrs().Name
		pair, ok := side.Link.(*netlink.Netkit)
		switch {
		case !ok:
			return fmt.Errorf("%w: %s of %s is a device of kind %s", errNotNetkit, name, pod.Name, side.Type())
		case pair.Mode != netlink.NETKIT_MODE_L3:
			return fmt.Errorf("%w: %s of %s is not in mode L3", errNotNetkit, name, pod.Name)
		case pair.IsPrimary() != side.primary:
			return fmt.Errorf("%w: %s of %s is the wrong side of it", errNotNetkit, name, pod.Name)
		}
	}
	if got, want := dev.Attrs().ParentIndex, host.Attrs().Index; got != want {
		return fmt.Errorf("%w: the other side of %s of %s is device %d of the node, not %s", errNotNetkit, name, pod.Name, got, host.Attrs().Name)
	}
	return nil
}
