package netns

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// LegacySegment is how long a TCP segment can be inside the kernel without BIG TCP, in
	// bytes (GSO_LEGACY_MAX_SIZE).
	LegacySegment = 65536
	// BigSegment is what AllowBigTCP allows, in bytes: Cilium's choice.
	BigSegment = 196608
)

// BigTCP is TCP segments of more than 64 KiB inside the kernel, of IPv4 too. Linux has
// them for IPv6 from 5.19 on, for IPv4 and on veth devices from 6.3 on.
func BigTCP() Feature {
	const name = "BIG TCP"
	return Feature{Name: name, Doc: "TCP segments of more than 64 KiB", Cure: "a kernel from Linux 6.3 on", Probe: func() error {
		return Try("cnb0", func(n NS) error {
			return missingIf(name, AllowBigTCP(n), unix.EINVAL, unix.EOPNOTSUPP, errSmallSegments)
		})
	}}
}

// errSmallSegments is a kernel that takes the attribute and does nothing with it.
var errSmallSegments = errors.New("the kernel keeps segments small")

// AllowBigTCP lets every device of a namespace pass TCP segments of up to BigSegment bytes,
// and reads back that they do. Loopback is left out, and so is what is down and is no veth:
// modules of tunnels make such devices in each namespace.
func AllowBigTCP(n NS) error {
	h, err := Handle(n)
	if err != nil {
		return err
	}
	defer h.Close()
	links, err := Dump(h.LinkList)
	if err != nil {
		return fmt.Errorf("devices in %s: %w", n.Name, err)
	}
	for _, l := range links {
		flags := l.Attrs().Flags
		if flags&net.FlagLoopback != 0 || flags&net.FlagUp == 0 && l.Type() != "veth" {
			continue
		}
		if err := setSegments(h, l, BigSegment); err != nil {
			return fmt.Errorf("BIG TCP on %s: %w", Port{NS: n, Device: l.Attrs().Name}, err)
		}
	}
	return nil
}

// SetSegments limits TCP segments of both families on a device of a namespace to so many
// bytes.
func (p Port) SetSegments(bytes int) error {
	h, dev, err := p.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	if err := setSegments(h, dev, bytes); err != nil {
		return fmt.Errorf("segments of %d bytes on %s: %w", bytes, p, err)
	}
	return nil
}

// setSegments sets what a device sends, and what it puts together of what it receives.
func setSegments(h *netlink.Handle, l netlink.Link, bytes int) error {
	for _, set := range []func(netlink.Link, int) error{h.LinkSetGSOMaxSize, h.LinkSetGROMaxSize, h.LinkSetGSOIPv4MaxSize, h.LinkSetGROIPv4MaxSize} {
		if err := set(l, bytes); err != nil {
			return err
		}
	}
	got, err := Dump(func() (netlink.Link, error) { return h.LinkByIndex(l.Attrs().Index) })
	if err != nil {
		return err
	}
	a := got.Attrs()
	for _, is := range []uint32{a.GSOMaxSize, a.GROMaxSize, a.GSOIPv4MaxSize, a.GROIPv4MaxSize} {
		if int(is) != bytes {
			return fmt.Errorf("%w: asked for %d bytes, it has %d", errSmallSegments, bytes, is)
		}
	}
	return nil
}
