package dataplane

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// errNoNetkitProgram is the error for a netkit that has no eBPF program of this program on its
// pod's side.
var errNoNetkitProgram = errors.New("no eBPF program of ours is at the pod's side")

// netkitSides are the places for programs at a netkit, both attached to its primary: what the
// pod's side sends, and what the host's side sends.
func netkitSides() []Direction {
	return []Direction{{tcx: ebpf.AttachNetkitPeer}, {tcx: ebpf.AttachNetkitPrimary}}
}

// AttachNetkit attaches a program to what the pod's side of a netkit sends, by its primary in
// this thread's namespace. There is no other way to attach it, so nothing stands in for it.
func AttachNetkit(primary netlink.Link, p *ebpf.Program) error {
	at := link.RawAttachProgramOptions{Target: primary.Attrs().Index, Program: p, Attach: ebpf.AttachNetkitPeer}
	if err := link.RawAttachProgram(at); err != nil {
		return fmt.Errorf("eBPF program at the netkit %s: %w", primary.Attrs().Name, err)
	}
	return NetkitProgram(primary)
}

// NetkitProgram reads back that a program of ours is attached to what the pod's side of a
// netkit sends; the error is an errNoNetkitProgram where none is.
func NetkitProgram(primary netlink.Link) error {
	name := primary.Attrs().Name
	got, err := link.QueryPrograms(link.QueryOptions{Target: primary.Attrs().Index, Attach: ebpf.AttachNetkitPeer})
	if err != nil {
		return fmt.Errorf("eBPF programs at the netkit %s: %w", name, err)
	}
	for _, p := range got.Programs {
		maps, err := mapsOf(p.ID)
		if err != nil {
			return fmt.Errorf("eBPF program %d at the netkit %s: %w", p.ID, name, err)
		}
		if maps != nil {
			maps.Close()
			return nil
		}
	}
	return fmt.Errorf("netkit %s: %w", name, errNoNetkitProgram)
}
