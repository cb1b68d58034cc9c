package paper

import (
	"math"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
)

// TestSharesOfTheLink: a share is of what the link can carry.
func TestSharesOfTheLink(t *testing.T) {
	limit := 10e9 * (1500 - 52) / (1500 + 14)
	half := ends(Claim{Metric: throughput, Left: on("a"), Relation: "link_share_within"}, nil, ptr(0.5))
	at := func(share float64) *Results {
		return (&made{}).add(cellOf("a"), throughput, around(share*limit)...).results()
	}
	wantVerdict(t, half, at(0.4), Reproduced)
	wantVerdict(t, half, at(0.6), Contradicted)
}

// TestBaselineShortOfTheLink: where even the bare network cannot carry the claimed share
// of the link, a pod network's share shows the CPU and decides nothing.
func TestBaselineShortOfTheLink(t *testing.T) {
	limit := 10e9 * (1500 - 52) / (1500 + 14)
	most := ends(Claim{Metric: throughput, Left: on("a"), Relation: "link_share_within"}, ptr(0.9), nil)
	half := ends(Claim{Metric: throughput, Left: on("a"), Relation: "link_share_within"}, nil, ptr(0.5))
	both := func(pods, host float64) *Results {
		return (&made{}).add(cellOf("a"), throughput, around(pods*limit)...).add(cellOf("host"), throughput, around(host*limit)...).results()
	}
	v := wantVerdict(t, most, both(0.4, 0.7), NotMeasurable)
	if !strings.Contains(v.Missing[0].Why, "this machine's CPUs are the limit") {
		t.Errorf("%+v", v.Missing)
	}
	wantVerdict(t, most, both(0.4, 0.99), Contradicted)
	wantVerdict(t, most, both(0.95, 0.99), Reproduced)
	wantVerdict(t, half, both(0.4, 0.7), Reproduced) // an upper bound needs no more of the link
	onHost := most
	onHost.Left = on("host")
	wantVerdict(t, onHost, both(0.4, 0.7), Contradicted) // machines of their own, whose link it is
	inLab := both(0.4, 0.7)
	inLab.Environment = &result.Environment{Testbed: campaign.Lab}
	wantVerdict(t, onHost, inLab, NotMeasurable)
}

// TestBeyond: what happens beyond a value is shown only by cells at it and above it.
func TestBeyond(t *testing.T) {
	series := func(values map[int]float64) *Results {
		m := &made{}
		for n, v := range values {
			m.add(cellOf("a", streams(n)), throughput, around(v)...)
		}
		return m.results()
	}
	falls := Claim{Metric: throughput, Left: on("a"), Relation: "falls_beyond", Factor: "streams", At: ptr(4), By: 0.3}
	rises := Claim{Metric: throughput, Left: on("a"), Relation: "rises_beyond", Factor: "streams", At: ptr(4)}
	for name, x := range map[string]struct {
		values     map[int]float64
		fall, rise Outcome
	}{
		"precipitous":       {map[int]float64{1: 4e9, 4: 4e9, 5: 2e9}, Reproduced, Contradicted},
		"a little":          {map[int]float64{1: 4e9, 4: 4e9, 5: 3.8e9}, Contradicted, Contradicted},
		"up":                {map[int]float64{1: 9e9, 4: 4e9, 5: 5e9}, Contradicted, Reproduced},
		"none at the bound": {map[int]float64{1: 4e9, 5: 2e9}, NotMeasurable, NotMeasurable},
		"none beyond":       {map[int]float64{1: 4e9, 4: 2e9}, NotMeasurable, NotMeasurable},
	} {
		t.Run(name, func(t *testing.T) {
			wantVerdict(t, falls, series(x.values), x.fall)
			wantVerdict(t, rises, series(x.values), x.rise)
		})
	}
}

// TestNamedSteps: a series has all the values that the claim names.
func TestNamedSteps(t *testing.T) {
	r := (&made{}).add(cellOf("a", streams(1)), throughput, around(1e9)...).add(cellOf("a", streams(2)), throughput, around(2e9)...).
		add(cellOf("a", streams(8)), throughput, around(0.5e9)...).results()
	c := Claim{Metric: throughput, Left: Selector{"network": "a", "streams": []any{1.0, 2.0}}, Relation: "rises_with", Factor: "streams"}
	wantVerdict(t, c, r, Reproduced)
	c.Left["streams"] = []any{1.0, 2.0, 4.0}
	wantVerdict(t, c, r, Undecided)
}

// TestGrowth: what counts is by how much each grows, not which is larger.
func TestGrowth(t *testing.T) {
	r := (&made{}).add(cellOf("a"), throughput, around(1e9)...).add(cellOf("a", streams(4)), throughput, around(3e9)...).
		add(cellOf("b"), throughput, around(4e9)...).add(cellOf("b", streams(4)), throughput, around(5e9)...).results()
	c := Claim{Metric: throughput, Left: on("a"), Right: on("b"), Relation: "grows_more", Factor: "streams"}
	wantVerdict(t, c, r, Reproduced)
	c.By = 3
	wantVerdict(t, c, r, Contradicted)
	c.By, c.Relation = 0, "grows_less"
	wantVerdict(t, c, r, Contradicted)
}

// TestZerosAreCompared: counts of ticks are 0 in some blocks. A claim of at least 20 % less or more is
// judged then too, by what is left of one value without 0.8 or 1.2 times the other.
func TestZerosAreCompared(t *testing.T) {
	r := (&made{}).add(cellOf("a"), throughput, 1, 0, 1, 2, 1, 0, 1, 2).add(cellOf("b"), throughput, 9, 10, 11, 10, 9, 10, 11, 10).results()
	less := func(left, right string, by float64) Claim {
		c := claimOf("less", on(left), on(right))
		c.By = by
		return c
	}
	v := wantVerdict(t, less("a", "b", 0.2), r, Reproduced)
	if p := v.Pairs[0]; !p.Arithmetic || p.Factor != 0.8 || math.Abs(p.Value.Value-(1-8)) > 1e-9 {
		t.Errorf("%+v", p)
	}
	wantVerdict(t, less("b", "a", 0.2), r, Contradicted)
	wantVerdict(t, less("a", "b", 0.9), r, Undecided) // a tenth, as the mean is
	wantVerdict(t, less("a", "b", 0.99), r, Contradicted)
	more := claimOf("greater", on("b"), on("a"))
	more.By = 0.2
	wantVerdict(t, more, r, Reproduced)
	// Without by, a difference below 3 % contradicts: two bounds.
	wantVerdict(t, claimOf("less", on("a"), on("b")), r, NotMeasurable)
}

// TestGrowthInUnits: a large value that grows by more than a small one grows by a smaller ratio.
func TestGrowthInUnits(t *testing.T) {
	r := (&made{}).add(cellOf("a"), throughput, around(4e9)...).add(cellOf("a", streams(4)), throughput, around(8e9)...).
		add(cellOf("b"), throughput, around(1e9)...).add(cellOf("b", streams(4)), throughput, around(3e9)...).results()
	c := Claim{Metric: throughput, Measure: differenceMeasure, Left: on("a"), Right: on("b"), Relation: "grows_more", Factor: "streams"}
	v := wantVerdict(t, c, r, Reproduced)
	if got := v.Pairs[0].Value.Value; !v.Pairs[0].Arithmetic || math.Abs(got-2e9) > 1e8 {
		t.Errorf("a grows by %g more than b", got)
	}
	c.Relation = "grows_less"
	wantVerdict(t, c, r, Contradicted)
	c.Measure = ""
	wantVerdict(t, c, r, Reproduced)
}

// TestUntakenSettings: what a setting does is not shown by samples that were taken
// without it.
func TestUntakenSettings(t *testing.T) {
	r := (&made{}).add(cellOf("a"), throughput, around(1e9)...).add(cellOf("a", profile("tuned")), throughput, around(2e9)...).results()
	c := claimOf("greater", Selector{"network": "a", "profile": "tuned"}, Selector{"profile": "default_settings"})
	wantVerdict(t, c, r, Reproduced)
	r.Untaken = map[string][]string{"tuned": {"net.core.rmem_max is 4194304, not 16777216"}}
	v := wantVerdict(t, c, r, NotMeasurable)
	if !strings.Contains(v.Missing[0].Why, "profile tuned did not take effect: net.core.rmem_max is 4194304") {
		t.Errorf("%+v", v.Missing)
	}
	wantVerdict(t, claimOf("less", on("a"), on("a")), r, NotMeasurable) // a cell is not compared with itself
}

// TestBackgroundFallsShort: what a stream gets beside background streams that bring less than the
// study's says nothing about the study.
func TestBackgroundFallsShort(t *testing.T) {
	const rate = 10e6
	beside := func(c *result.Cell) { c.BackgroundStreams = 400 }
	m := (&made{}).add(cellOf("a", beside), throughput, around(2e9)...).add(cellOf("b", beside), throughput, around(1e9)...).
		add(cellOf("c", beside), throughput, around(1e8)...)
	brought := map[string]float64{"a": 400 * rate, "b": 0.93 * 400 * rate, "c": 0.2 * 400 * rate}
	for i := range m.samples {
		m.samples[i].Metrics["background_throughput_bits_per_second"] = brought[m.samples[i].Cell.Network]
	}
	r := m.results()
	wantVerdict(t, claimOf("greater", on("a"), on("b")), r, Reproduced)
	wantVerdict(t, claimOf("greater", on("a"), on("b", "c")), r, ReproducedInPart)
	v := wantVerdict(t, claimOf("greater", on("a"), on("c")), r, NotMeasurable)
	if want := "the background streams brought 20 % of what they ask for: the path or this machine's CPUs are full"; !strings.Contains(v.Missing[0].Why, want) {
		t.Errorf("%+v", v.Missing)
	}
}

// TestSwitchInUserSpace: samples of a network whose packets pass a program here decide nothing;
// the other networks of a claim do.
func TestSwitchInUserSpace(t *testing.T) {
	m := (&made{}).add(cellOf("a"), throughput, around(1e8)...).add(cellOf("b"), throughput, around(2e9)...).add(cellOf("c"), throughput, around(3e9)...)
	slowest := claimOf("less", on("a"), on("b"))
	wantVerdict(t, slowest, m.results(), Reproduced)
	m.env.Networks = map[string]result.NetworkFacts{"a": {Datapath: "Open vSwitch 3.1.0, in user space (netdev)"}, "b": {Datapath: "Open vSwitch 3.1.0, in the kernel"}}
	v := wantVerdict(t, slowest, m.results(), NotMeasurable)
	if want := "packets of a pass Open vSwitch 3.1.0, in user space (netdev), and those of the published one passed the kernel"; !strings.Contains(v.Missing[0].Why, want) {
		t.Errorf("%+v", v.Missing)
	}
	wantVerdict(t, claimOf("greater", on("c"), on("a", "b")), m.results(), ReproducedInPart)
	wantVerdict(t, claimOf("less", on("c"), on("a", "b")), m.results(), Contradicted)
}

// TestLeans: an undecided claim says what its means alone would give.
func TestLeans(t *testing.T) {
	m := (&made{}).add(cellOf("a"), throughput, 1.3e9, 0.9e9, 1.5e9, 0.95e9).add(cellOf("b"), throughput, 1e9, 1e9, 1e9, 1e9)
	if v := wantVerdict(t, claimOf("greater", on("a"), on("b")), m.results(), Undecided); v.Leans != Reproduced {
		t.Errorf("leans %q", v.Leans)
	}
	if v := wantVerdict(t, claimOf("less", on("a"), on("b")), m.results(), Undecided); v.Leans != Contradicted {
		t.Errorf("leans %q", v.Leans)
	}
}

// TestVariesMore compares spreads, whatever the values are.
func TestVariesMore(t *testing.T) {
	spread := func(by float64) []float64 {
		var out []float64
		for _, d := range []float64{1, -0.5, -1, 0.5, 0.9, -0.8, 0.7, -0.9, 1, -1} {
			out = append(out, 1e9*(1+by*d))
		}
		return out
	}
	both := func(a, b float64) *Results {
		return (&made{}).add(cellOf("a"), throughput, spread(a)...).add(cellOf("b"), throughput, spread(b)...).results()
	}
	c := claimOf(variesMore, on("a"), on("b"))
	wantVerdict(t, c, both(0.2, 0.02), Reproduced)
	wantVerdict(t, c, both(0.02, 0.2), Contradicted)
	v := wantVerdict(t, c, both(0.2, 0), NotMeasurable)
	if !strings.Contains(v.Missing[0].Why, "does not vary") {
		t.Errorf("%+v", v.Missing)
	}
}
