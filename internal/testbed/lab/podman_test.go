package lab

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/catalog"
)

// TestNetavarkTearsDown: CNI DEL is netavark's own teardown. It takes the pod's device
// and, with the last pod, podman0 and the rules of its subnet; a second one is no error.
func TestNetavarkTearsDown(t *testing.T) {
	needLab(t)
	l := New(options(newRunner(t), stateDir(t)))
	n, err := catalog.Find("podman/bridge")
	if err != nil {
		t.Fatal(err)
	}
	buildLab(t, l, supported(n))
	c := l.ordered[0]
	node := c.nodes[0].NS
	has := func(ns netns.NS, device string) bool {
		h, _, err := netns.Port{NS: ns, Device: device}.Open()
		if err == nil {
			h.Close()
		}
		return err == nil
	}
	rules := func() (all int) {
		for rule := range counters(t, node) {
			if strings.Contains(rule, c.nodes[0].PodCIDR.String()) {
				all++
			}
		}
		return all
	}
	if !has(node, "podman0") || !has(c.pods[0][0].ns, device) || rules() == 0 {
		t.Fatalf("podman0 %v, the pod's device %v, %d rules of its subnet", has(node, "podman0"), has(c.pods[0][0].ns, device), rules())
	}
	rt := cniRuntime(l.options.Runner, l.state, l.held.Path)
	for range 2 {
		for _, p := range c.pods[0] {
			if _, err := rt.Del(t.Context(), attachment(c.conflists[0], p.ns, node)); err != nil {
				t.Error(err)
			}
			if has(p.ns, device) {
				t.Errorf("%s still has its device", p.ns.Name)
			}
		}
	}
	if has(node, "podman0") || rules() > 0 {
		t.Errorf("podman0 is left: %v; %d rules are left", has(node, "podman0"), rules())
	}
}

// TestPastaGoesWithItsPod: CNI DEL ends the pod's pasta, of which each pod has one on its node,
// and its device goes with it; a second DEL is no error.
func TestPastaGoesWithItsPod(t *testing.T) {
	needLab(t)
	l := New(options(newRunner(t), stateDir(t)))
	n, err := catalog.Find("podman/pasta")
	if err != nil {
		t.Fatal(err)
	}
	buildLab(t, l, supported(n))
	c := l.ordered[0]
	if len(c.carriers[0]) != len(c.pods[0]) {
		t.Fatalf("%d processes on node 1 carry packets for %d pods", len(c.carriers[0]), len(c.pods[0]))
	}
	rt := cniRuntime(l.options.Runner, l.state, l.held.Path)
	for range 2 {
		for _, p := range c.pods[0] {
			if _, err := rt.Del(t.Context(), attachment(c.conflists[0], p.ns, c.nodes[0].NS)); err != nil {
				t.Error(err)
			}
			if h, _, err := (netns.Port{NS: p.ns, Device: device}).Open(); err == nil {
				h.Close()
				t.Errorf("%s still has its device", p.ns.Name)
			}
		}
	}
	if err := c.findCarriers(); err != nil || len(c.carriers[0]) > 0 {
		t.Errorf("processes %v are left (%v)", c.carriers[0], err)
	}
}
