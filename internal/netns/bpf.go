package netns

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// None of these needs the kernel's BTF: the programs use no type of the kernel
// but those of its interface to user space.

// BPFRedirect is eBPF programs that move a packet into another namespace, or
// out of a device with its neighbour found.
func BPFRedirect() Feature {
	return helpers("bpf_redirect_peer", "eBPF datapaths (cilium, calico/ebpf)", "a kernel of 5.11 or later with CONFIG_BPF_SYSCALL",
		ebpf.SchedCLS, asm.FnRedirectPeer, asm.FnRedirectNeigh, asm.FnFibLookup, asm.FnJiffies64, asm.FnSkbSetTunnelKey)
}

// BPFAtDevice is a way to attach an eBPF program to a device: tcx (Linux 6.6),
// or clsact with cls_bpf.
func BPFAtDevice() Feature {
	return Feature{
		Name: "tcx or cls_bpf", Doc: "eBPF programs at a device",
		Cure: "modprobe cls_bpf sch_ingress, or a kernel of 6.6 or later",
		Probe: func() error {
			return throwaway(func() error {
				_, err := link.QueryPrograms(link.QueryOptions{Target: 1, Attach: ebpf.AttachTCXIngress})
				if err == nil {
					return nil
				}
				clsact := netlink.QdiscAttrs{LinkIndex: 1, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}
				if err := netlink.QdiscAdd(&netlink.GenericQdisc{QdiscAttrs: clsact, QdiscType: "clsact"}); err != nil {
					return known("tcx or cls_bpf", err, unix.ENOENT)
				}
				filter := netlink.FilterAttrs{LinkIndex: 1, Parent: netlink.HANDLE_MIN_INGRESS, Priority: 1, Protocol: unix.ETH_P_ALL}
				return known("tcx or cls_bpf", netlink.FilterAdd(&netlink.GenericFilter{FilterAttrs: filter, FilterType: "bpf"}), unix.ENOENT)
			})
		},
	}
}

// TCX is eBPF programs at a device in an order that whoever attaches them chooses.
func TCX() Feature {
	const name = "tcx"
	return Feature{
		Name: name, Doc: "the order of eBPF programs at a device (service proxy xdp)", Cure: "a kernel of 6.6 or later with CONFIG_NET_XGRESS",
		Probe: func() error {
			return throwaway(func() error {
				_, err := link.QueryPrograms(link.QueryOptions{Target: 1, Attach: ebpf.AttachTCXIngress})
				return missingIf(name, missing(name, err), unix.EINVAL)
			})
		},
	}
}

// BPFSockmap is eBPF programs that hand messages from one socket to another.
func BPFSockmap() Feature {
	f := helpers("bpf sockmap", "same-node TCP that bypasses the network (+sockmap)", "a kernel of 5.11 or later with CONFIG_NET_SOCK_MSG and CONFIG_CGROUP_BPF",
		ebpf.SkMsg, asm.FnMsgRedirectHash, asm.FnSkStorageGet)
	msg := f.Probe
	f.Probe = func() error {
		if err := msg(); err != nil {
			return err
		}
		return missing(f.Name, features.HaveProgramHelper(ebpf.SockOps, asm.FnSockHashUpdate))
	}
	return f
}

// BPFSocketAddress is eBPF programs that change where a socket connects and
// sends to.
func BPFSocketAddress() Feature {
	return helpers("bpf cgroup connect4", "services at the socket (service proxy ebpf)", "a kernel of 5.8 or later with CONFIG_CGROUP_BPF",
		ebpf.CGroupSockAddr, asm.FnGetSocketCookie, asm.FnMapLookupElem, asm.FnMapUpdateElem)
}

// NativeXDP is eBPF programs in the driver of a veth, that read packets of any size (Linux 5.18).
func NativeXDP() Feature {
	const name = "native XDP on veth"
	return Feature{
		Name: name, Doc: "NodePorts in the driver (service proxy xdp)", Cure: "a kernel of 5.18 or later with CONFIG_BPF_SYSCALL",
		Probe: func() error {
			p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
				Name: "cnb_probe", Type: ebpf.XDP, License: "GPL", Flags: unix.BPF_F_XDP_HAS_FRAGS,
				Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2 /* XDP_PASS */), asm.Return()},
			})
			if err != nil {
				return missingIf(name, missing(name, err), unix.EINVAL)
			}
			defer p.Close()
			return Try("cnb0", func(n NS) error {
				return Do(n, func() error {
					l, err := netlink.LinkByName("cnb0")
					if err != nil {
						return err
					}
					return missingIf(name, netlink.LinkSetXdpFdWithFlags(l, p.FD(), nl.XDP_FLAGS_DRV_MODE), unix.EOPNOTSUPP, unix.EINVAL)
				})
			})
		},
	}
}

// helpers asks whether programs of a type may call all of some helpers.
func helpers(name, doc, cureByModule string, typ ebpf.ProgramType, all ...asm.BuiltinFunc) Feature {
	return Feature{Name: name, Doc: doc, Cure: cureByModule, Probe: func() error {
		for _, h := range all {
			if err := missing(name, features.HaveProgramHelper(typ, h)); err != nil {
				return err
			}
		}
		return nil
	}}
}

func missing(name string, err error) error {
	switch {
	case errors.Is(err, ebpf.ErrNotSupported):
		return &MissingError{name, err}
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("probe of %s: %w (needs root)", name, err)
	case err != nil:
		return fmt.Errorf("probe of %s: %w", name, err)
	}
	return nil
}
