package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
)

// Nothing of eBPF is pinned: a program is attached to a device and lives as
// long as that, its maps live as long as a program that uses them. So all goes
// with the lab's namespaces, and a CNI plugin finds the maps of its node by the
// program at the node's device.

// EBPFPrefix begins the names of all our programs and maps.
const EBPFPrefix = "cnb_"

// LoadEBPF loads the named programs of a spec with constants set; maps that are
// given stand in for the spec's own.
func LoadEBPF(spec *ebpf.CollectionSpec, constants map[string]any, maps map[string]*ebpf.Map, programs ...string) (*ebpf.Collection, error) {
	wanted := map[string]*ebpf.ProgramSpec{}
	for _, name := range programs {
		wanted[name] = spec.Programs[name]
	}
	spec.Programs = wanted
	for name, value := range constants {
		v := spec.Variables[name]
		if v == nil {
			return nil, fmt.Errorf("eBPF programs have no constant %s", name)
		}
		if err := v.Set(value); err != nil {
			return nil, fmt.Errorf("eBPF constant %s: %w", name, err)
		}
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: maps})
	if err != nil {
		return nil, fmt.Errorf("eBPF programs: %w", err)
	}
	return coll, nil
}

// Direction is which packets of a device a program sees.
type Direction struct {
	tcx    ebpf.AttachType
	parent uint32
}

// Ingress is what a device receives.
func Ingress() Direction { return Direction{ebpf.AttachTCXIngress, netlink.HANDLE_MIN_INGRESS} }

// Egress is what a device sends.
func Egress() Direction { return Direction{ebpf.AttachTCXEgress, netlink.HANDLE_MIN_EGRESS} }

// AttachEBPF attaches a program to a device of this thread's namespace, by tcx,
// or by clsact where the kernel is older (before 6.6).
func AttachEBPF(device netlink.Link, d Direction, p *ebpf.Program) error {
	index := device.Attrs().Index
	err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: index, Program: p, Attach: d.tcx})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported) {
		err = attachClsact(index, d, p)
	}
	if err != nil {
		return fmt.Errorf("eBPF program at %s: %w", device.Attrs().Name, err)
	}
	return nil
}

// AttachEBPFFirst attaches a program to a device of this thread's namespace before its other
// programs, which may end the chain. It needs tcx.
func AttachEBPFFirst(device netlink.Link, d Direction, p *ebpf.Program) error {
	a := device.Attrs()
	err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: a.Index, Program: p, Attach: d.tcx, Anchor: link.Head()})
	if err != nil {
		return fmt.Errorf("eBPF program at %s: %w", a.Name, err)
	}
	return nil
}

func attachClsact(index int, d Direction, p *ebpf.Program) error {
	attrs := netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}
	err := netlink.QdiscAdd(&netlink.GenericQdisc{QdiscAttrs: attrs, QdiscType: "clsact"})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("clsact: %w", err)
	}
	return netlink.FilterReplace(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: index, Parent: d.parent, Handle: netlink.MakeHandle(0, 1), Protocol: unix.ETH_P_ALL, Priority: 1,
		},
		Fd: p.FD(), Name: "cnibench", DirectAction: true,
	})
}

// attachedEBPF are the ids of the programs at a device.
func attachedEBPF(index int, d Direction) ([]ebpf.ProgramID, error) {
	var ids []ebpf.ProgramID
	got, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: d.tcx})
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, ebpf.ErrNotSupported) {
		return nil, err
	}
	if err == nil {
		for _, p := range got.Programs {
			ids = append(ids, p.ID)
		}
	}
	if d.parent == 0 { // a netkit's, which has no filters of clsact
		return ids, nil
	}
	device := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}
	filters, err := netns.Dump(func() ([]netlink.Filter, error) { return netlink.FilterList(device, d.parent) })
	if err != nil {
		return nil, err
	}
	for _, f := range filters {
		if b, ok := f.(*netlink.BpfFilter); ok {
			ids = append(ids, ebpf.ProgramID(b.Id))
		}
	}
	return ids, nil
}

// EBPFMaps are the maps of the programs at a device's ingress, by name. They
// are to be closed.
type EBPFMaps map[string]*ebpf.Map

// Close closes the maps for this process; the kernel keeps them.
func (m EBPFMaps) Close() {
	for _, one := range m {
		_ = one.Close() // a file descriptor alone
	}
}

// ErrNoEBPF is the error for a device that has no eBPF program of this program.
var ErrNoEBPF = errors.New("has no eBPF program of ours: the network was not set up on this node")

// MapsAt finds the maps of our program at a device of this thread's namespace:
// those that the program names, which may not be all of its node's. A device that is gone
// has no program: that of wireguard-go goes with its process.
func MapsAt(device string, d Direction) (EBPFMaps, error) {
	l, err := netlink.LinkByName(device)
	var gone netlink.LinkNotFoundError
	if errors.As(err, &gone) {
		return nil, fmt.Errorf("device %s: %w: %w", device, ErrNoEBPF, err)
	}
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", device, err)
	}
	ids, err := attachedEBPF(l.Attrs().Index, d)
	if err != nil {
		return nil, fmt.Errorf("eBPF programs at %s: %w", device, err)
	}
	for _, id := range ids {
		maps, err := mapsOf(id)
		if err != nil || maps != nil {
			return maps, err
		}
	}
	return nil, fmt.Errorf("device %s: %w", device, ErrNoEBPF)
}

// mapsOf gives the maps of a program; none where it is not ours.
func mapsOf(id ebpf.ProgramID) (EBPFMaps, error) {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(info.Name, EBPFPrefix) {
		return nil, nil
	}
	ids, _ := info.MapIDs()
	maps := EBPFMaps{}
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			maps.Close()
			return nil, err
		}
		info, err := m.Info()
		if err != nil || !strings.HasPrefix(info.Name, EBPFPrefix) { // constants
			_ = m.Close()
			continue
		}
		maps[info.Name] = m
	}
	return maps, nil
}

// Need gives a map by name.
func (m EBPFMaps) Need(name string) (*ebpf.Map, error) {
	if one := m[name]; one != nil {
		return one, nil
	}
	return nil, fmt.Errorf("the node's eBPF programs have no map %s", name)
}

// EBPFAddress is an IPv4 address as it is in a packet, for a little-endian
// machine, for which alone the programs are compiled.
func EBPFAddress(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// counterNames are those of enum counter in bpf/counters.h.
func counterNames() []string {
	return []string{
		"from pod", "from wire", "from tunnel", "from host", "to peer", "to veth", "to neighbour", "to tunnel",
		"to stack", "ARP answered", "connection new", "connection found", "dropped: spoofed", "dropped: denied",
		"dropped: other",
	}
}

// EBPFCounters reads what the eBPF programs of a node have done with packets
// since they were loaded, of all processors together: "to peer", "dropped:
// spoofed" and so on. device is the node's on the link.
func EBPFCounters(node netns.NS, device string) (map[string]uint64, error) {
	counts := map[string]uint64{}
	err := netns.Do(node, func() error {
		maps, err := MapsAt(device, Ingress())
		if err != nil {
			return err
		}
		defer maps.Close()
		m, err := maps.Need("cnb_counters")
		if err != nil {
			return err
		}
		return readCounters(m, counterNames(), counts)
	})
	return counts, err
}

func readCounters(m *ebpf.Map, names []string, into map[string]uint64) error {
	for i, name := range names {
		var each []uint64
		if err := m.Lookup(uint32(i), &each); err != nil {
			return fmt.Errorf("counter %q: %w", name, err)
		}
		for _, n := range each {
			into[name] += n
		}
	}
	return nil
}

// EBPFObjects are the ids of the programs at the devices of a node, and of
// their maps.
func EBPFObjects(node netns.NS) (programs []ebpf.ProgramID, maps []ebpf.MapID, err error) {
	err = netns.Do(node, func() error {
		links, err := netns.Dump(netlink.LinkList)
		if err != nil {
			return err
		}
		for _, l := range links {
			directions := []Direction{Ingress(), Egress()}
			if pair, ok := l.(*netlink.Netkit); ok && pair.IsPrimary() {
				directions = append(directions, netkitSides()...)
			}
			for _, d := range directions {
				ids, err := attachedEBPF(l.Attrs().Index, d)
				if err != nil {
					return err
				}
				programs = append(programs, ids...)
			}
			if xdp := l.Attrs().Xdp; xdp != nil && xdp.Attached {
				programs = append(programs, ebpf.ProgramID(xdp.ProgId))
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("eBPF programs in %s: %w", node.Name, err)
	}
	for _, id := range programs {
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			return nil, nil, err
		}
		info, err := p.Info()
		if err := errors.Join(err, p.Close()); err != nil {
			return nil, nil, err
		}
		ids, _ := info.MapIDs()
		maps = append(maps, ids...)
	}
	return programs, maps, nil
}
