package main

import (
	"math"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/labtest/vm"
)

// TestProbesInVM counts what the probes cost of throughput: all together under 1 %,
// sampling under 3 %.
func TestProbesInVM(t *testing.T) {
	labtest.Long(t)
	m := vm.ForTests(t)
	labtest.Tool(t, "/usr/lib/cni/bridge", "containernetworking-plugins")
	p := probePlan{Network: "flannel/vxlan", Blocks: 2, Packets: 9600, Sets: probeSets(), Rules: 100} // more than a quarter of a second: samples are read in it
	got, err := countInVM(t.Context(), m.Runner, plan{Probes: &p}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		set, base string
		most      float64
	}{
		{counting().Name, noProbes().Name, mostCost},
		{allProbes().Name, counting().Name, mostSamplingCost},
		{allProbes().Name, noProbes().Name, mostCost},
	} {
		c, err := got.cost(one.set, one.base)
		if err != nil {
			t.Error(err)
			continue
		}
		t.Logf("%s against %s: in a window of 1 s %s of throughput goes; while it lasts %s", one.set, one.base, percents(c.Second), percents(c.During))
		if c.Second.mean <= 0 || c.Second.mean > one.most {
			t.Errorf("%s against %s: in a window of 1 s %s of throughput goes, want some, and at most %.0f %%", one.set, one.base, percents(c.Second), 100*one.most)
		}
	}
	r := got.reading
	if r == nil || r.Rules < p.Rules {
		t.Fatalf("rules were not read: %+v", r)
	}
	more := difference(r.Plain, r.Counted)
	t.Logf("%d rules are read in %v instructions; that a chain counts takes %s more of %s for a packet", r.Rules, r.ReadNanoseconds, more, meanOf(r.Plain))
	if share := more.mean / meanOf(r.Plain).mean; share > mostCost {
		t.Errorf("that a chain counts takes %.2f %% of a packet's instructions", 100*share)
	}
}

// TestProbeCost: what of a window is an edge, and what of it goes on for as long as
// the window.
func TestProbeCost(t *testing.T) {
	var c counted
	for i := range 4 {
		drift := int64(i) * 10_000_000 // of the block, in both
		edges := map[string][2]int64{"a": {400_000, 7}, "b": {600_000, 9}}
		c.probed = append(c.probed, probed{Set: noProbes().Name, Nanoseconds: 100_000_000 + drift, Packets: 1000},
			probed{Set: allProbes().Name, Nanoseconds: 103_000_000 + drift, Edges: edges, Packets: 1000, StackSamples: 50})
	}
	got, err := c.cost(allProbes().Name, noProbes().Name)
	if err != nil {
		t.Fatal(err)
	}
	during := (2./102 + 2./112 + 2./122 + 2./132) / 4
	first, second := c.edges("b")
	for _, v := range []struct {
		name        string
		value, want float64
	}{
		{"lost", got.Lost.mean, (3./103 + 3./113 + 3./123 + 3./133) / 4}, {"first edges", got.First.mean, (1./103 + 1./113 + 1./123 + 1./133) / 4},
		{"while it lasts", got.During.mean, during}, {"in a second", got.Second.mean, 0.001 + 0.999*during},
		{"a sample", got.PerSample.mean, 2e6 / 50}, {"an edge", first.mean, 600_000}, {"the other", second.mean, 9},
	} {
		if math.Abs(v.value/v.want-1) > 1e-9 {
			t.Errorf("%s: %g, want %g", v.name, v.value, v.want)
		}
	}
	if _, err := c.cost("y", noProbes().Name); err == nil {
		t.Error("a set that was not counted has a cost")
	}
}
