package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/aclements/go-moremath/stats"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/labtest/vm"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/labkubernetes"
)

// TestMain lets the test binary be what the virtual machine runs.
func TestMain(m *testing.M) {
	if handled, status := inside(os.Args, os.Stdout, os.Stderr); handled {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// fewServices are loaded within seconds in the virtual machine.
const fewServices = 1000

// testPlan counts networks with the known change and with services by proxies.
func testPlan(samples, packets int, networks, proxies []string) plan {
	p := plan{Samples: samples, Packets: packets}
	for _, n := range networks {
		p.Settings = append(p.Settings, setting{Network: n, Traffic: []traffic{
			{Workload: "udp_stream", Placement: result.InterHost}, {Workload: "tcp_rr", Placement: result.InterHost},
		}})
	}
	known := knownChange()
	known.Traffic = append(known.Traffic, traffic{Workload: "tcp_rr", Placement: result.InterHost})
	p.Settings = append(p.Settings, known)
	for _, proxy := range proxies {
		p.Settings = append(p.Settings, serviceSetting(proxy, fewServices))
	}
	return p
}

// TestInstructionsInVM counts in the virtual machine: that its clock counts
// instructions, that they repeat within 1 %, that a change of 3 % is found, and
// the orders that must be, for a policy.
func TestInstructionsInVM(t *testing.T) {
	networks := []string{"host", "calico/direct", "ladder/conntrack", "calico/direct-policy"}
	countsHold(t, testPlan(5, 500, networks, nil), 1, "calico/direct-policy")
}

// TestOverlayInstructionsInVM does the same for an overlay and for services.
func TestOverlayInstructionsInVM(t *testing.T) {
	labtest.Long(t)
	networks := []string{"host", "calico/direct", "ladder/bridge", "ladder/bridge-conntrack", "flannel/host-gw", "flannel/vxlan"}
	countsHold(t, testPlan(10, 500, networks, []string{"nftables", "iptables"}), 3, "flannel/vxlan")
}

// TestRealInstructionsInVM: Docker's own bridge, and flannel by its own agents in a lab's
// Kubernetes, take as many instructions as their models do on nodes with the same rules.
func TestRealInstructionsInVM(t *testing.T) {
	labtest.Long(t)
	m := vm.ForTests(t)
	labtest.Tool(t, "dockerd", "docker.io")
	for _, program := range []string{"kubelet", "cnibench-flanneld"} {
		if _, err := os.Stat(filepath.Join(labkubernetes.BinDirs("")[0], program)); err != nil {
			t.Skipf("no tool %s: make cluster-binaries", program)
		}
	}
	program := filepath.Join(t.TempDir(), "cnibench")
	if err := buildProgram(t.Context(), m.Runner, program); err != nil {
		t.Fatal(err)
	}
	p := realPlan([]string{"docker/bridge", "flannel/vxlan"}, program, false, 3, 200)
	got, err := countInVM(t.Context(), m.Runner, p, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, l := range likenesses(p) {
		if l.real.Nodes == onKubernetes && l.other.Nodes != withKubelet {
			continue // whose nodes have other rules
		}
		for _, traffic := range columns() {
			other, err := got.find(l.other, traffic.Workload, traffic.Placement, 0)
			real, err2 := got.find(l.real, traffic.Workload, traffic.Placement, 0)
			if err != nil || err2 != nil {
				if !slices.Contains(onOneMachine(), l.real.Network) {
					t.Error(err, err2)
				}
				continue
			}
			compared++
			if ratio := stats.Mean(real) / stats.Mean(other); math.Abs(ratio-1) > 0.05 {
				t.Errorf("%s %s: %s takes %.3f times what %s takes", traffic.Workload, traffic.Placement, l.real, ratio, l.other)
			}
		}
	}
	if want := 6; compared != want {
		t.Errorf("%d figures were compared, want %d", compared, want)
	}
}

// countsHold counts what a plan has, and checks the orders in it, at least so many, and the
// ladder up to a network.
func countsHold(t *testing.T, p plan, leastOrders int, top string) {
	t.Helper()
	m := vm.ForTests(t)
	labtest.Tool(t, "/usr/lib/cni/bridge", "containernetworking-plugins")
	got, err := countInVM(t.Context(), m.Runner, p, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the clock counts instructions", func(t *testing.T) {
		if len(got.loops) != knownLoops {
			t.Fatalf("%d loops, want %d", len(got.loops), knownLoops)
		}
		per := got.perTurn()
		t.Logf("a turn of %d instructions takes %.4f ± %.4f ns", instructionsPerTurn, per.mean, per.half)
		if math.Abs(per.mean/instructionsPerTurn-1) > 0.005 {
			t.Errorf("a turn of %d instructions takes %.4f ± %.4f ns", instructionsPerTurn, per.mean, per.half)
		}
	})
	t.Run("they repeat within 1 %", func(t *testing.T) {
		for _, c := range got.counts {
			if c.Failed != "" {
				t.Error(c)
			} else if cv := variation(c.perPacket()); cv > 0.01 || len(c.Samples) != p.Samples {
				t.Errorf("%s: %d samples, want %d", c, len(c.Samples), p.Samples)
			}
		}
	})
	t.Run("orders", func(t *testing.T) { holdOrders(t, got, p, leastOrders) })
	t.Run("ladders", func(t *testing.T) { climb(t, got, top) })
	t.Run("a change of 3 % is found", func(t *testing.T) { findChange(t, got) })
}

// holdOrders checks those whose networks were counted.
func holdOrders(t *testing.T, got counted, p plan, least int) {
	counted, services := map[string]bool{}, false
	for _, s := range p.Settings {
		counted[s.Network] = counted[s.Network] || s.Services.Count == 0
		services = services || s.Services.Count > 0
	}
	held := 0
	for _, o := range append(orders(), serviceOrder("nftables", fewServices)) {
		few := o.Less.Services.Count == fewServices
		if few && !services {
			continue
		}
		if !few && (!counted[o.Less.Network] || !counted[o.More.Network] || o.Placement != result.InterHost || o.Less.Rules.Kind != "") {
			continue
		}
		less, more, diff, err := got.check(o)
		if err != nil {
			t.Error(err)
			continue
		}
		held++
		t.Logf("%s: %s %s, %s %s", o.Claim, o.Less, less, o.More, more)
		if !diff.positive() {
			t.Errorf("%s (%s): %s takes %s, %s takes %s instructions per packet", o.Claim, o.Source, o.Less, less, o.More, more)
		}
	}
	if held < least {
		t.Errorf("%d orders were held, want %d and more", held, least)
	}
}

// climb checks that every step up to a network takes more, and that they add up to the
// direct difference.
func climb(t *testing.T, got counted, top string) {
	steps, sum, direct, err := got.ladder(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		t.Logf("%s: %s takes %s more instructions per packet", top, s.Adds, s.more)
		if !s.more.positive() && s.Network != "bridge" { // whose hooks a kernel without br_netfilter has not
			t.Errorf("%s: %s takes %s more instructions per packet", top, s.Adds, s.more)
		}
	}
	if math.Abs(sum.mean-direct.mean) > direct.half+1e-6*direct.mean {
		t.Errorf("%s: the steps add up to %s, the difference is %s", top, sum, direct)
	}
}

// findChange looks for the known change, in instructions and in speed.
func findChange(t *testing.T, got counted) {
	change := func(got counted) value {
		v, err := got.changeFound()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if c := change(got); !c.positive() || math.Abs(c.mean-knownTwicePercent) > 0.5 {
		t.Errorf("a change of %d %% is seen as %.2f ± %.2f %%", knownTwicePercent, c.mean, c.half)
	} else {
		t.Logf("a change of %d %% is seen as %.2f ± %.2f %% in instructions", knownTwicePercent, c.mean, c.half)
	}
	here, err := countHere(t.Context(), plan{Settings: []setting{knownChange()}, Samples: 10, Packets: 20_000}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	c := change(here)
	t.Logf("in the time that it takes on this machine, as %.2f ± %.2f %%", c.mean, c.half)
}
