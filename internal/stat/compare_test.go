package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

// side is a campaign of host and the networks, on a machine of the given speed.
func side(r *rand.Rand, blocks int, speed, spread float64, efficiencies map[string]float64) Side {
	var out []result.Sample
	for b := 1; b <= blocks; b++ {
		add := func(c result.Cell, v float64) {
			out = append(out, okSample(c, b, metrics{throughput: speed * v * math.Exp(spread*r.NormFloat64())}))
		}
		add(cellOf(result.HostNetwork), 1)
		for _, n := range sortedKeys(efficiencies) {
			add(cellOf(n), efficiencies[n])
		}
	}
	return Side{Samples: out}
}

func verdicts(c Comparison) map[string]Verdict {
	out := map[string]Verdict{}
	for _, x := range c.Cells {
		out[x.Cell.Network] = x.Verdict
	}
	return out
}

func TestCompareVerdicts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	base := side(r, 10, 1e10, 0.003, map[string]float64{"worse": 0.9, "better": 0.8, "same": 0.7, "gone": 0.5, "breaks": 0.6})
	next := side(r, 10, 1e10, 0.003, map[string]float64{"worse": 0.8, "better": 0.9, "same": 0.7, "came": 0.5})
	next.Samples = append(next.Samples, failedSample(cellOf("breaks"), 1, "no route"))
	c := Compare(base, next, CompareOptions{Threshold: 0.03})
	want := map[string]Verdict{"host": Same, "worse": Worse, "better": Better, "same": Same, "breaks": Broken}
	for n, v := range want {
		if got := verdicts(c)[n]; got != v {
			t.Errorf("%s: %q, want %q", n, got, v)
		}
	}
	if !c.Regression {
		t.Error("no regression")
	}
	if !slices.Equal(c.OnlyBase, []result.Cell{cellOf("gone")}) || !slices.Equal(c.OnlyNew, []result.Cell{cellOf("came")}) {
		t.Errorf("only base %v, only new %v", c.OnlyBase, c.OnlyNew)
	}
	for _, x := range c.Cells {
		if x.Cell.Network == "worse" {
			near(t, "change", x.Change.Value, 0.8/0.9, 0.01)
		}
	}
}

// TestCompareCancelsTheMachine: a machine that is half as fast changes no
// efficiency, only the absolute values.
func TestCompareCancelsTheMachine(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	nets := map[string]float64{"bridge": 0.9}
	c := Compare(side(r, 10, 2e10, 0.003, nets), side(r, 10, 1e10, 0.003, nets), CompareOptions{Threshold: 0.03})
	got := verdicts(c)
	if got["bridge"] != Same || got["host"] != Worse {
		t.Errorf("%v", got)
	}
	for _, x := range c.Cells {
		if x.ByEfficiency != (x.Cell.Network == "bridge") {
			t.Errorf("%s: by efficiency %v", x.Cell.Network, x.ByEfficiency)
		}
	}
}

func TestCompareLowerIsBetter(t *testing.T) {
	lat := func(v float64) Side {
		var out []result.Sample
		for b := 1; b <= 6; b++ {
			out = append(out, okSample(rrOf("x"), b, metrics{"latency_mean_seconds": v * (1 + 0.001*float64(b))}))
		}
		return Side{Samples: out}
	}
	c := Compare(lat(20e-6), lat(25e-6), CompareOptions{Threshold: 0.03})
	if c.Cells[0].Verdict != Worse || math.Abs(c.Cells[0].Change.Value-0.8) > 1e-9 {
		t.Errorf("%+v", c.Cells[0])
	}
	near(t, "new mean", c.Cells[0].New.Value, 25e-6*1.0035, 1e-9)
}

func TestCompareOfLittleCannotTell(t *testing.T) {
	c := Compare(Side{Samples: streams(cellOf("x"), 100)}, Side{Samples: streams(cellOf("x"), 50)}, CompareOptions{Threshold: 0.03})
	if c.Cells[0].Verdict != CannotTell || c.Regression || c.Cells[0].Why == "" {
		t.Errorf("%+v", c.Cells[0])
	}
	r := rand.New(rand.NewPCG(3, 3))
	wide := Compare(side(r, 5, 1, 0.2, nil), side(r, 5, 1, 0.2, nil), CompareOptions{Threshold: 0.03})
	if wide.Cells[0].Verdict != CannotTell {
		t.Errorf("%+v", wide.Cells[0])
	}
}

// TestCompareFamilyWiseError: 20 cells that did not change, measured with the
// stopping rule in force. At most one comparison in twenty may call any of them
// better or worse, whatever the threshold.
func TestCompareFamilyWiseError(t *testing.T) {
	reps := repetitions(300)
	rule := collect(nil, Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 5, MaxBlocks: 12})
	for i, noise := range noises() {
		r := rand.New(rand.NewPCG(4, uint64(i)))
		one := func() Side {
			var out []result.Sample
			for n := range 20 {
				c := cellOf("x")
				c.MessageBytes = n
				for _, s := range stoppedSeries(rule, func() float64 { return 0.02 * noise.draw(r) }) {
					day := math.Exp(0.1 * r.NormFloat64())
					out = append(out, okSample(c.Baseline(), s.block, metrics{throughput: day}),
						okSample(c, s.block, metrics{throughput: day * math.Exp(s.value)}))
				}
			}
			return Side{Samples: out}
		}
		wrong := 0
		for range reps {
			c := Compare(one(), one(), CompareOptions{})
			wrong += count(slices.ContainsFunc(c.Cells, func(x CellComparison) bool { return x.Verdict == Worse || x.Verdict == Better }))
		}
		share := float64(wrong) / float64(reps)
		t.Logf("%s: %.1f %%", noise.name, 100*share)
		if share > 0.05+margin(0.05, reps) {
			t.Errorf("%s: %.1f %% of the comparisons find a difference where none is", noise.name, 100*share)
		}
	}
}

// stoppedSeries draws the log efficiencies of a cell until the rule is content.
func stoppedSeries(rule *dataset, draw func() float64) []point {
	var out []point
	for b := 1; b <= rule.opt.MaxBlocks; b++ {
		out = append(out, point{b, draw()})
		if met := rule.targetMet(out); met > 0 && len(out) > met {
			break
		}
	}
	return out
}

func TestCompareNamesDifferences(t *testing.T) {
	a := result.Environment{Version: "1", Testbed: "lab", Host: result.Host{Kernel: "6.1", CPUModel: "A", OS: "Debian 12",
		Sysctls: map[string]string{"net.core.rmem_max": "1"}}, Tools: map[string]string{"iperf3": "3.12"}}
	b := result.Environment{Version: "2", Testbed: "lab", Host: result.Host{Kernel: "6.2", CPUModel: "B", OS: "Debian 12",
		Sysctls: map[string]string{"net.core.rmem_max": "2"}}, Tools: map[string]string{"iperf3": "3.16"}}
	got := Compare(Side{Environment: a}, Side{Environment: b}, CompareOptions{}).Differences
	for _, want := range []string{"cnibench: 1 → 2", "CPU: A → B", "kernel: 6.1 → 6.2", "sysctl net.core.rmem_max: 1 → 2", "version of iperf3: 3.12 → 3.16"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if same := Compare(Side{Environment: a}, Side{Environment: a}, CompareOptions{}).Differences; len(same) != 0 {
		t.Errorf("the same differs in %q", same)
	}
}

func TestNullTest(t *testing.T) {
	reps := repetitions(2000)
	r := rand.New(rand.NewPCG(6, 6))
	var pairs, wrong int
	var sum float64
	for range reps {
		var samples []result.Sample
		for b := 1; b <= 10; b++ {
			for n := range 3 {
				for _, name := range []string{"bridge", "bridge#2"} {
					c := cellOf(name)
					c.MessageBytes = n
					samples = append(samples, okSample(c, b, metrics{throughput: math.Exp(0.01 * r.NormFloat64())}))
				}
			}
		}
		n := NullTest(samples, Options{})
		pairs, wrong = pairs+len(n.Pairs), wrong+n.False
		sum += n.Detectable
	}
	if pairs != 3*reps {
		t.Fatalf("%d pairs of %d", pairs, 3*reps)
	}
	t.Logf("%.1f %% of %d pairs called different", 100*float64(wrong)/float64(pairs), pairs)
	near(t, "share of false differences", float64(wrong)/float64(pairs), 0.05, margin(0.05, pairs))
	// (t(0.975, 9) + t(0.8, 9))·√2·0.01/√10 = 1.4 %; the largest of three is somewhat more.
	near(t, "mean detectable difference", sum/float64(reps), 0.0165, 0.002)
}

// TestDetectableDifferenceIsDetected holds the word "detectable" to what it
// promises: a difference of that size is seen in 4 of 5 campaigns.
func TestDetectableDifferenceIsDetected(t *testing.T) {
	reps := repetitions(20_000)
	tab := newTables(0.95)
	r := rand.New(rand.NewPCG(9, 9))
	for _, n := range []int{5, 10, 30} {
		effect := math.Log1p(tab.detectable(moments{n: n, sd: 0.01}))
		seen := 0
		for range reps {
			points := make([]point, n)
			for i := range points {
				points[i].value = effect + 0.01*r.NormFloat64()
			}
			seen += count(pairedT(momentsOf(points)) < 0.05)
		}
		t.Logf("%d blocks: seen in %.1f %%", n, 100*float64(seen)/float64(reps))
		near(t, "power", float64(seen)/float64(reps), 0.8, 0.03)
	}
}
