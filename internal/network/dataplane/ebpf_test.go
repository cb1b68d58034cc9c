package dataplane

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/bpf"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/labtest/space"
	"github.com/cnibench/cnibench/internal/netns"
)

// TestCounterNames: each counter of the programs has a name.
func TestCounterNames(t *testing.T) {
	for name, load := range map[string]func() (*ebpf.CollectionSpec, error){
		"cilium": bpf.LoadCilium, "calico": bpf.LoadCalico,
	} {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		if got := int(spec.Maps[bpf.CiliumMapCnbCounters].MaxEntries); got != len(counterNames()) {
			t.Errorf("%s: %d counters, %d names", name, got, len(counterNames()))
		}
	}
}

// TestAttach attaches a program both ways, newer and older, and finds it.
func TestAttach(t *testing.T) {
	labtest.Root(t)
	labtest.Feature(t, "eBPF", netns.BPFRedirect().Probe())
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "cnb_test", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
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
	for name, attach := range map[string]func(netlink.Link, Direction) error{
		"attach": func(l netlink.Link, d Direction) error { return AttachEBPF(l, d, p) },
		"clsact": func(l netlink.Link, d Direction) error { return attachClsact(l.Attrs().Index, d, p) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "clsact" {
				labtest.Feature(t, "clsact", netns.Clsact().Probe())
			}
			err := netns.Do(space.New(t, name), func() error {
				lo, err := netlink.LinkByName("lo")
				if err != nil {
					return err
				}
				for _, d := range []Direction{Ingress(), Egress()} {
					if err := attach(lo, d); err != nil {
						return err
					}
					ids, err := attachedEBPF(lo.Attrs().Index, d)
					if err != nil {
						return err
					}
					if len(ids) != 1 || ids[0] != want {
						t.Errorf("programs %v, want %d", ids, want)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
