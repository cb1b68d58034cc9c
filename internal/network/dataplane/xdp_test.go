package dataplane

import (
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
)

// TestXDPIsNative: a program in the driver is found, and one that the kernel runs in its generic
// mode is not taken for one.
func TestXDPIsNative(t *testing.T) {
	labtest.Root(t)
	labtest.Feature(t, "XDP", netns.NativeXDP().Probe())
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "cnb_test", Type: ebpf.XDP, License: "GPL", Flags: unix.BPF_F_XDP_HAS_FRAGS,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	want, _ := info.ID()
	const device = "cnb-xdp"
	err = netns.Try(device, func(n netns.NS) error {
		_, err := XDPCounters(n, device, "cnb_np_count")
		if !errors.Is(err, ErrNotNative) || !strings.Contains(err.Error(), "it has none") {
			t.Errorf("no program: %v", err)
		}
		return netns.Do(n, func() error {
			l, err := netlink.LinkByName(device)
			if err != nil {
				return err
			}
			if err := AttachXDP(l, p); err != nil {
				return err
			}
			if id, err := nativeXDP(device); err != nil || id != want {
				t.Errorf("program %d, %v, want %d", id, err, want)
			}
			if err := netlink.LinkSetXdpFdWithFlags(l, -1, nl.XDP_FLAGS_DRV_MODE); err != nil {
				return err
			}
			if err := netlink.LinkSetXdpFdWithFlags(l, p.FD(), nl.XDP_FLAGS_SKB_MODE); err != nil {
				return err
			}
			if _, err := nativeXDP(device); !errors.Is(err, ErrNotNative) || !strings.Contains(err.Error(), "generic mode") {
				t.Errorf("generic mode: %v", err)
			}
			if err := AttachXDP(l, p); err == nil {
				t.Error("a program was attached to the driver of a device with one in generic mode")
			}
			if err := netlink.LinkSetXdpFdWithFlags(l, -1, nl.XDP_FLAGS_SKB_MODE); err != nil {
				return err
			}
			return attachAtMTU(t, device, p)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// attachAtMTU: only a program that takes a packet in several buffers can be at a veth with jumbo
// frames. Loopback has no driver that runs any.
func attachAtMTU(t *testing.T, device string, frags *ebpf.Program) error {
	one, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "cnb_one", Type: ebpf.XDP, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()},
	})
	if err != nil {
		return err
	}
	defer one.Close()
	for _, name := range []string{device, device + "-peer"} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetMTU(l, 9000); err != nil {
			return err
		}
	}
	l, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	if err := AttachXDP(l, one); !errors.Is(err, unix.ERANGE) {
		t.Errorf("a program for one buffer at MTU 9000: %v", err)
	}
	if err := AttachXDP(l, frags); err != nil {
		t.Error(err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := AttachXDP(lo, frags); err == nil {
		t.Error("loopback has XDP in its driver")
	}
	return nil
}
