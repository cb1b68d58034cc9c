package comparison

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/stat/stopping"
)

// side is a campaign of host and the networks, on a machine of the given speed.
func side(r *rand.Rand, blocks int, speed, spread float64, efficiencies map[string]float64) Side {
	var out []result.Sample
	for b := 1; b <= blocks; b++ {
		add := func(c result.Cell, v float64) {
			out = append(out, stattest.OKSample(c, b, stattest.Metrics{stattest.Throughput: speed * v * math.Exp(spread*r.NormFloat64())}))
		}
		add(stattest.CellOf(result.HostNetwork), 1)
		for _, n := range stattest.SortedKeys(efficiencies) {
			add(stattest.CellOf(n), efficiencies[n])
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
	next.Samples = append(next.Samples, stattest.FailedSample(stattest.CellOf("breaks"), 1, "no route"))
	c := Compare(base, next, Options{Threshold: 0.03})
	want := map[string]Verdict{"host": Same, "worse": Worse, "better": Better, "same": Same, "breaks": Broken}
	for n, v := range want {
		if got := verdicts(c)[n]; got != v {
			t.Errorf("%s: %q, want %q", n, got, v)
		}
	}
	if !c.Regression {
		t.Error("no regression")
	}
	if !slices.Equal(c.OnlyBase, []result.Cell{stattest.CellOf("gone")}) || !slices.Equal(c.OnlyNew, []result.Cell{stattest.CellOf("came")}) {
		t.Errorf("only base %v, only new %v", c.OnlyBase, c.OnlyNew)
	}
	for _, x := range c.Cells {
		if x.Cell.Network == "worse" {
			stattest.Near(t, "change", x.Change.Value, 0.8/0.9, 0.01)
		}
	}
}

// TestCompareCancelsTheMachine: a machine that is half as fast changes no
// efficiency, only the absolute values.
func TestCompareCancelsTheMachine(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	nets := map[string]float64{"bridge": 0.9}
	c := Compare(side(r, 10, 2e10, 0.003, nets), side(r, 10, 1e10, 0.003, nets), Options{Threshold: 0.03})
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
			out = append(out, stattest.OKSample(stattest.RROf("x"), b, stattest.Metrics{"latency_mean_seconds": v * (1 + 0.001*float64(b))}))
		}
		return Side{Samples: out}
	}
	c := Compare(lat(20e-6), lat(25e-6), Options{Threshold: 0.03})
	if c.Cells[0].Verdict != Worse || math.Abs(c.Cells[0].Change.Value-0.8) > 1e-9 {
		t.Errorf("%+v", c.Cells[0])
	}
	stattest.Near(t, "new mean", c.Cells[0].New.Value, 25e-6*1.0035, 1e-9)
}

func TestCompareOfLittleCannotTell(t *testing.T) {
	c := Compare(Side{Samples: stattest.Streams(stattest.CellOf("x"), 100)}, Side{Samples: stattest.Streams(stattest.CellOf("x"), 50)}, Options{Threshold: 0.03})
	if c.Cells[0].Verdict != CannotTell || c.Regression || c.Cells[0].Why == "" {
		t.Errorf("%+v", c.Cells[0])
	}
	r := rand.New(rand.NewPCG(3, 3))
	wide := Compare(side(r, 5, 1, 0.2, nil), side(r, 5, 1, 0.2, nil), Options{Threshold: 0.03})
	if wide.Cells[0].Verdict != CannotTell {
		t.Errorf("%+v", wide.Cells[0])
	}
}

// TestCompareFamilyWiseError: 20 cells that did not change, measured with the
// stopping rule in force. At most one comparison in twenty may call any of them
// better or worse, whatever the threshold.
func TestCompareFamilyWiseError(t *testing.T) {
	reps := stattest.Repetitions(300)
	rule := dataset.Collect(nil, dataset.Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 5, MaxBlocks: 12})
	for i, noise := range stattest.Noises() {
		r := rand.New(rand.NewPCG(4, uint64(i)))
		one := func() Side {
			var out []result.Sample
			for n := range 20 {
				c := stattest.CellOf("x")
				c.MessageBytes = n
				for _, s := range stoppedSeries(rule, func() float64 { return 0.02 * noise.Draw(r) }) {
					day := math.Exp(0.1 * r.NormFloat64())
					out = append(out, stattest.OKSample(c.Baseline(), s.Block, stattest.Metrics{stattest.Throughput: day}),
						stattest.OKSample(c, s.Block, stattest.Metrics{stattest.Throughput: day * math.Exp(s.Value)}))
				}
			}
			return Side{Samples: out}
		}
		wrong := 0
		for range reps {
			c := Compare(one(), one(), Options{})
			wrong += stattest.Count(slices.ContainsFunc(c.Cells, func(x Cell) bool { return x.Verdict == Worse || x.Verdict == Better }))
		}
		share := float64(wrong) / float64(reps)
		t.Logf("%s: %.1f %%", noise.Name, 100*share)
		if share > 0.05+stattest.Margin(0.05, reps) {
			t.Errorf("%s: %.1f %% of the comparisons find a difference where none is", noise.Name, 100*share)
		}
	}
}

// stoppedSeries draws the log efficiencies of a cell until the rule is content.
func stoppedSeries(rule *dataset.Dataset, draw func() float64) []estimate.Point {
	var out []estimate.Point
	for b := 1; b <= rule.Options.MaxBlocks; b++ {
		out = append(out, estimate.Point{Block: b, Value: draw()})
		if met := stopping.TargetMet(rule, out); met > 0 && len(out) > met {
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
	got := Compare(Side{Environment: a}, Side{Environment: b}, Options{}).Differences
	for _, want := range []string{"cnibench: 1 → 2", "CPU: A → B", "kernel: 6.1 → 6.2", "sysctl net.core.rmem_max: 1 → 2", "version of iperf3: 3.12 → 3.16"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if same := Compare(Side{Environment: a}, Side{Environment: a}, Options{}).Differences; len(same) != 0 {
		t.Errorf("the same differs in %q", same)
	}
}
