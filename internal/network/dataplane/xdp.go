package dataplane

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"

	"github.com/cnibench/cnibench/internal/netns"
)

// AttachXDP attaches a program to the driver of a device of this thread's namespace, in the place
// of an earlier one, and reads back that it is there. A kernel that cannot does not fall back
// to its generic mode, which runs a program only once the packet has left the driver.
func AttachXDP(device netlink.Link, p *ebpf.Program) error {
	name := device.Attrs().Name
	if err := netlink.LinkSetXdpFdWithFlags(device, p.FD(), nl.XDP_FLAGS_DRV_MODE); err != nil {
		return fmt.Errorf("XDP program at %s: %w", name, err)
	}
	_, err := nativeXDP(name)
	return err
}

// ErrNotNative is the error for a device whose driver runs no XDP program.
var ErrNotNative = errors.New("has no XDP program in native mode")

// nativeXDP is the program that a device's driver runs.
func nativeXDP(device string) (ebpf.ProgramID, error) {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return 0, fmt.Errorf("device %s: %w", device, err)
	}
	xdp := l.Attrs().Xdp
	switch {
	case xdp == nil || !xdp.Attached:
		return 0, fmt.Errorf("device %s %w: it has none", device, ErrNotNative)
	case xdp.AttachMode == nl.XDP_ATTACHED_SKB:
		return 0, fmt.Errorf("device %s %w: the kernel runs it in generic mode", device, ErrNotNative)
	case xdp.AttachMode != nl.XDP_ATTACHED_DRV:
		return 0, fmt.Errorf("device %s %w: its mode is %d", device, ErrNotNative, xdp.AttachMode)
	}
	return ebpf.ProgramID(xdp.ProgId), nil
}

// XDPCounters reads a map of counters of our program at the driver of a node's device, of all
// processors together.
func XDPCounters(node netns.NS, device, name string, counters ...string) (map[string]uint64, error) {
	counts := map[string]uint64{}
	err := netns.Do(node, func() error {
		id, err := nativeXDP(device)
		if err != nil {
			return err
		}
		maps, err := mapsOf(id)
		if err != nil {
			return err
		}
		if maps == nil {
			return fmt.Errorf("device %s: %w", device, ErrNoEBPF)
		}
		defer maps.Close()
		m, err := maps.Need(name)
		if err != nil {
			return err
		}
		return readCounters(m, counters, counts)
	})
	return counts, err
}
