package netns

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// AddBridge makes a bridge that only switches, and sets it up. mtu is in bytes.
func AddBridge(n NS, name string, mtu int) error {
	h, err := Handle(n)
	if err != nil {
		return err
	}
	defer h.Close()
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = name, mtu
	quiet := false
	bridge := &netlink.Bridge{LinkAttrs: la, MulticastSnooping: &quiet}
	if err := h.LinkAdd(bridge); err != nil {
		return fmt.Errorf("bridge %s in %s: %w", name, n.Name, err)
	}
	if err := h.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("bridge %s in %s: up: %w", name, n.Name, err)
	}
	return nil
}

// Port is one end of a wire: a device in a namespace.
type Port struct {
	NS     NS
	Device string
}

func (p Port) String() string { return p.Device + " in " + p.NS.Name }

// Connect makes a veth pair between two namespaces, the first end on a bridge
// there and set up, and reads the MTU of both ends back. mtu is in bytes.
func Connect(onBridge Port, bridge string, other Port, mtu int) error {
	h, err := Handle(onBridge.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	master, err := Link(h, bridge)
	if err != nil {
		return err
	}
	if err := other.veth(h, onBridge, mtu, master.Attrs().Index); err != nil {
		return err
	}
	dev, err := Link(h, onBridge.Device)
	if err != nil {
		return err
	}
	if err := h.LinkSetUp(dev); err != nil {
		return fmt.Errorf("veth %s: up: %w", onBridge, err)
	}
	for _, p := range []Port{onBridge, other} {
		if err := p.holdMTU(mtu); err != nil {
			return err
		}
	}
	return nil
}

// veth makes a pair whose one end is the port and whose other is near, in the
// namespace of the handle, on the master of that index there (0 for none).
func (p Port) veth(h *netlink.Handle, near Port, mtu, master int) error {
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU, la.MasterIndex = near.Device, mtu, master
	if err := p.Pair(h.LinkAdd, la, nil); err != nil {
		return fmt.Errorf("in %s: %w", near.NS.Name, err)
	}
	return nil
}

// Pair makes a veth pair: one end with the attributes la, where add makes devices, the other
// is the port, with that hardware address where one is given.
func (p Port) Pair(add func(netlink.Link) error, la netlink.LinkAttrs, mac net.HardwareAddr) error {
	far, err := os.Open(p.NS.Path)
	if err != nil {
		return err
	}
	defer far.Close()
	veth := &netlink.Veth{LinkAttrs: la, PeerName: p.Device, PeerNamespace: netlink.NsFd(int(far.Fd())), PeerHardwareAddr: mac}
	if err := add(veth); err != nil {
		return fmt.Errorf("veth %s: %w", la.Name, err)
	}
	return nil
}

// holdMTU reads a device's MTU back.
func (p Port) holdMTU(mtu int) error {
	got, err := p.mtu()
	if err == nil && got != mtu {
		err = fmt.Errorf("%s: asked for an MTU of %d, it is %d", p, mtu, got)
	}
	return err
}

func (p Port) mtu() (int, error) {
	h, dev, err := p.Open()
	if err != nil {
		return 0, err
	}
	defer h.Close()
	return dev.Attrs().MTU, nil
}

// Open gives the device and a handle of its namespace, which the caller closes.
func (p Port) Open() (*netlink.Handle, netlink.Link, error) {
	h, err := Handle(p.NS)
	if err != nil {
		return nil, nil, err
	}
	dev, err := Link(h, p.Device)
	if err != nil {
		h.Close()
		return nil, nil, err
	}
	return h, dev, nil
}

// SetAddress gives a device an address and sets it up.
func (p Port) SetAddress(a netip.Prefix) error {
	h, dev, err := p.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	addr, err := netlink.ParseAddr(a.String())
	if err != nil {
		return err
	}
	if a.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD // it is nobody else's, and needed at once
	}
	if err := h.AddrAdd(dev, addr); err != nil {
		return fmt.Errorf("%s: address %s: %w", p, a, err)
	}
	if err := h.LinkSetUp(dev); err != nil {
		return fmt.Errorf("%s: up: %w", p, err)
	}
	return nil
}

// psched is the kernel's tick of packet schedulers in which a burst is given
// (net/pkt_sched.h, PSCHED_SHIFT 6).
const psched = 64 * time.Nanosecond

// Shape limits what leaves a device to a rate by tbf. What the rate sends
// within burst may pass at once; what it sends within queue may wait.
func (p Port) Shape(bitsPerSecond uint64, burst, queue time.Duration) error {
	h, dev, err := p.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	rate := bitsPerSecond / 8
	err = h.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: dev.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT,
		},
		Rate: rate, Buffer: uint32(burst / psched), Limit: uint32(rate * uint64(queue) / uint64(time.Second)),
	})
	if err != nil {
		return fmt.Errorf("%s: tbf: %w", p, err)
	}
	return nil
}

// delayedFrame is how large frames are taken to be where a queue is counted in
// frames, bytes.
const delayedFrame = 1514

// DelayShaped delays by netem all that leaves a device that Shape has shaped.
// What the rate sends within queue may wait, in addition to what is on its way.
func (p Port) DelayShaped(delay time.Duration, bitsPerSecond uint64, queue time.Duration) error {
	h, dev, err := p.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	frames := bitsPerSecond / 8 * uint64(delay+queue) / uint64(time.Second) / delayedFrame
	err = h.QdiscAdd(netlink.NewNetem(
		netlink.QdiscAttrs{LinkIndex: dev.Attrs().Index, Handle: netlink.MakeHandle(2, 0), Parent: netlink.MakeHandle(1, 1)},
		netlink.NetemQdiscAttrs{Latency: uint32(delay.Microseconds()), Limit: uint32(frames)},
	))
	if err != nil {
		return fmt.Errorf("%s: netem: %w", p, err)
	}
	return nil
}

// Addresses are the addresses of the namespace's devices, loopback and those of
// one link alone left out.
func Addresses(n NS) ([]string, error) {
	h, err := Handle(n)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	list, err := Dump(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("addresses in %s: %w", n.Name, err)
	}
	var all []string
	for _, a := range list {
		if !a.IP.IsLoopback() && !a.IP.IsLinkLocalUnicast() {
			all = append(all, a.IPNet.String())
		}
	}
	return all, nil
}

// MTUTo reads the MTU of the device that packets to an address leave by, or of
// the route where that is smaller, in bytes.
func MTUTo(n NS, to netip.Addr) (int, error) {
	h, err := Handle(n)
	if err != nil {
		return 0, err
	}
	defer h.Close()
	routes, err := Dump(func() ([]netlink.Route, error) { return h.RouteGet(to.AsSlice()) })
	if err != nil {
		return 0, fmt.Errorf("route to %s in %s: %w", to, n.Name, err)
	}
	if len(routes) == 0 {
		return 0, fmt.Errorf("no route to %s in %s", to, n.Name)
	}
	dev, err := h.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return 0, fmt.Errorf("device to %s in %s: %w", to, n.Name, err)
	}
	mtu := dev.Attrs().MTU
	if r := routes[0].MTU; r > 0 {
		mtu = min(mtu, r)
	}
	return mtu, nil
}
