package profile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

// TestApply: in a namespace, what belongs to it takes and is read back, what
// does not says why, and the machine stays as it is.
func TestApply(t *testing.T) {
	labtest.Root(t)
	kernel, nic := find(t, "kernel_optimizations"), find(t, "nic_optimizations")
	before := machine(t, kernel)
	err := netns.Try("eth0", func(ns netns.NS) error {
		byName := map[string]result.Setting{}
		for _, p := range []Profile{kernel, nic} {
			for _, s := range Apply(ns, "eth0", p, false) {
				byName[s.Name] = s
			}
		}
		for name, want := range map[string]string{
			"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_window_scaling": "1", "net.ipv4.tcp_max_syn_backlog": "4096",
			"offload gro": "on", "offload tso": "on",
		} {
			if s := byName[name]; s.Value != want || s.Reason != "" {
				t.Errorf("%s is %+v, want %s", name, s, want)
			}
		}
		// This kernel's veth has no rings (drivers/net/veth.c has no
		// get_ringparam); one that had them would be read back like the rest.
		if s := byName["ring rx"]; s.Value != "4096" && s.Reason == "" {
			t.Errorf("ring rx is %+v, without a reason", s)
		}
		if s := byName["net.core.rmem_max"]; s.Value != "16777216" && !strings.Contains(s.Reason, AllowFlag) {
			t.Errorf("net.core.rmem_max is %+v, and does not name %s", s, AllowFlag)
		}
		values := Read(ns, "eth0", []Profile{kernel, nic})
		for name, s := range byName {
			if values[name] != s.Value {
				t.Errorf("%s: Read says %q, Apply %q", name, values[name], s.Value)
			}
		}
		for _, s := range Apply(ns, "eth0", kernel, true) {
			if strings.Contains(s.Reason, "whole machine") {
				t.Errorf("%+v is not left to the machine", s)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if after := machine(t, kernel); after != before {
		t.Errorf("the machine was %q, is %q", before, after)
	}
}

// TestApplyDoesNotTake: a value that the kernel refuses, and a device and a
// setting that do not exist, have reasons.
func TestApplyDoesNotTake(t *testing.T) {
	labtest.Root(t)
	p := Profile{
		Sysctls:  map[string]string{"net.ipv4.tcp_sack": "many", "net.ipv4.tcp_no_such_setting": "1", "kernel.sched_autogroup_enabled": "2"},
		Offloads: map[string]bool{"gro": true},
		Rings:    map[string]int{"rx": 4096},
		Tuned:    "hpc-compute",
	}
	err := netns.Try("eth0", func(ns netns.NS) error {
		for _, s := range Apply(ns, "eth7", p, false) {
			if s.Reason == "" {
				t.Errorf("%s took: %+v", s.Name, s)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, name string) Profile {
	t.Helper()
	p, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// machine is what the machine's own namespace has of a profile's sysctls.
func machine(t *testing.T, p Profile) string {
	t.Helper()
	var all []string
	for name := range p.Sysctls {
		v, err := os.ReadFile(filepath.Join("/proc/sys", sysctlPath(name)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name+"="+strings.TrimSpace(string(v)))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
