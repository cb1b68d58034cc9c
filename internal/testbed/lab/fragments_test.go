package lab

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

// TestFragmentsInUserSpace: cells whose datagrams a switch in user space loses are unsupported,
// with the feature that is missing or as they always are; all others are measured.
func TestFragmentsInUserSpace(t *testing.T) {
	missing := &netns.MissingError{Feature: "openvswitch", Err: unix.EOPNOTSUPP}
	in := func(network, workload string, bytes int, change ...func(*result.Cell)) result.Cell {
		c := result.Cell{Network: network, Path: result.PathPodToPod, Placement: result.InterHost, MTU: 1500, Workload: workload, MessageBytes: bytes}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	to := func(c *result.Cell) {
		c.Path, c.Services, c.ServiceProxy = result.PathPodToClusterIP, 1, "ovn"
	}
	for _, c := range []struct {
		cell result.Cell
		lost bool
	}{
		{in("antrea/geneve", "udp_stream", 1422), false}, // 1500 - 50 - 28
		{in("antrea/geneve", "udp_stream", 1423), true},
		{in("antrea/noencap", "udp_stream", 1472), false},
		{in("antrea/geneve", "udp_rr", 9000), false},
		{in("antrea/geneve", "tcp_stream", 9000), false},
		{in("antrea/geneve", "iperf3", 9000, func(c *result.Cell) { c.Protocol = "udp" }), true},
		{in("antrea/geneve", "iperf3", 9000, func(c *result.Cell) { c.Protocol = "tcp" }), false},
		{in("antrea/geneve", "netperf", 9000, func(c *result.Cell) { c.Test = "UDP_RR" }), false},
		{in("antrea/geneve", "netperf", 9000, func(c *result.Cell) { c.Test = "UDP_STREAM" }), true},
		{in("antrea/geneve", "sockperf", 9000, func(c *result.Cell) { c.Test, c.Protocol = "ping-pong", "udp" }), false},
		{in("antrea/geneve", "udp_stream", 9000, func(c *result.Cell) { c.RateBitsPerSecond = 1e6 }), false},
		{in("antrea/geneve-policy", "udp_rr", 9000), true},
		{in("antrea/geneve-policy", "udp_rr", 64, func(c *result.Cell) { c.ResponseBytes = 9000 }), true},
		{in("ovn/geneve", "udp_stream", 9000), true},
		{in("ovn/no-overlay", "udp_stream", 9000), true},
		{in(kubeOVNName, "udp_stream", 9000), true},
		{in("ovn/geneve", "udp_rr", 9000), false},
		{in("ovn/geneve", "udp_rr", 9000, to), true},
		{in("ovn/geneve", "udp_stream", 9000, to), true},
		{in("ovn/geneve", "udp_stream", 1400, to), false},
		{in("ovn/geneve-policy", "udp_rr", 9000), true},
		{in("bridge", "udp_stream", 9000), false},
		{in("flannel/udp", "udp_rr", 9000), false},
	} {
		p := planner{features: map[string]error{"openvswitch": missing, "geneve": nil}}
		n, err := p.find(c.cell.Network)
		if err != nil {
			t.Fatal(err)
		}
		err = p.checkFragments(n, c.cell)
		if c.lost != (err != nil) || c.lost && !strings.HasPrefix(err.Error(), "kernel has no openvswitch: "+c.cell.Network+" switches packets in user space") {
			t.Errorf("%+v: %v", c.cell, err)
		}
		p.features["openvswitch"] = nil
		if err := p.checkFragments(n, c.cell); err != nil {
			t.Errorf("%+v, in the kernel: %v", c.cell, err)
		}
	}
	for _, name := range []string{"flannel/udp", "weave/sleeve"} {
		p := planner{features: map[string]error{}}
		n, err := p.find(name)
		if err != nil {
			t.Fatal(err)
		}
		want := name + " switches packets in user space, which loses datagrams in fragments flat out: send at most "
		if err := p.checkFragments(n, in(name, "udp_stream", 9000)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
