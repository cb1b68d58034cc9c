package spiderpool

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/labtest/space"
	"github.com/cnibench/cnibench/internal/netns"
)

// sysWith is a tree that says which devices are virtual functions.
func sysWith(t *testing.T, vfs ...string) string {
	t.Helper()
	sys := t.TempDir()
	for _, path := range append(vfs, "eth9") {
		if err := os.MkdirAll(filepath.Join(sys, "class/net", path, "device"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, vf := range vfs {
		if err := os.Mkdir(filepath.Join(sys, "class/net", vf, "device/physfn"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return sys
}

func TestVirtualFunctionsAreFound(t *testing.T) {
	if err := virtualFunctions(sysWith(t, "vf1", "vf0")).Probe(); err != nil {
		t.Error(err)
	}
	if err := virtualFunctions(sysWith(t)).Probe(); err == nil || !strings.Contains(err.Error(), "sriov_numvfs") {
		t.Errorf("a machine without: %v, want the cure", err)
	}
}

// TestVirtualFunctionsMove has veths stand for virtual functions: one that is
// up stays, the other comes into the pod and goes back under its name.
func TestVirtualFunctionsMove(t *testing.T) {
	labtest.Root(t)
	machine, pod := space.New(t, "machine"), space.New(t, "pod")
	for _, vf := range []string{"vf0", "vf1"} {
		h, err := netns.Handle(machine)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		la := netlink.NewLinkAttrs()
		la.Name = vf
		if err := h.LinkAdd(&netlink.Veth{LinkAttrs: la, PeerName: vf + "-wire"}); err != nil {
			t.Fatal(err)
		}
	}
	used := netns.Port{NS: machine, Device: "vf0"}
	if err := used.SetAddress(netip.MustParsePrefix("198.18.9.9/24")); err != nil {
		t.Fatal(err)
	}
	sys := sysWith(t, "vf0", "vf1", "vf7") // vf7 is gone
	if err := takeVF(sys, machine, pod, "eth0", 1400); err != nil {
		t.Fatal(err)
	}
	if got := deviceIn(t, pod, "eth0"); got == nil || got.MTU != 1400 || got.Alias != "cnibench:vf1" {
		t.Errorf("the pod's device is %+v", got)
	}
	if deviceIn(t, machine, "vf0") == nil || deviceIn(t, machine, "vf1") != nil {
		t.Error("the function that is used was taken, or the other left")
	}
	if err := takeVF(sys, machine, pod, "eth1", 1400); err == nil || !strings.Contains(err.Error(), "is free") {
		t.Errorf("a second: %v, want that none is free", err)
	}
	for range 2 { // a second time there is nothing to do
		if err := returnVF(pod, machine, "eth0"); err != nil {
			t.Fatal(err)
		}
	}
	if got := deviceIn(t, machine, "vf1"); got == nil || got.Alias != "" || deviceIn(t, pod, "eth0") != nil {
		t.Errorf("back is %+v", got)
	}
	if err := returnVF(netns.Named("cnb-vf-gone"), machine, "eth0"); err != nil {
		t.Errorf("a pod that is gone: %v", err)
	}
}

// deviceIn is a device of a namespace; nil where it does not exist.
func deviceIn(t *testing.T, ns netns.NS, name string) *netlink.LinkAttrs {
	t.Helper()
	h, err := netns.Handle(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	dev, err := netns.Link(h, name)
	var gone netlink.LinkNotFoundError
	if errors.As(err, &gone) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return dev.Attrs()
}
