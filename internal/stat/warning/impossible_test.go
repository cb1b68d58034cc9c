package warning_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/stat/warning"
)

// placed are blocks of networks of known efficiency, with 1 % of noise. change may
// alter an efficiency from block to block.
func placed(blocks int, efficiency map[string]float64, change func(network string, block int) float64) []result.Sample {
	r := rand.New(rand.NewPCG(7, 7))
	var out []result.Sample
	for b := 1; b <= blocks; b++ {
		speed := math.Exp(0.1 * r.NormFloat64()) // of the machine: it is the same for all
		for _, n := range append([]string{result.HostNetwork}, sortedNames(efficiency)...) {
			e := 1.0
			if n != result.HostNetwork {
				e = efficiency[n]
			}
			if change != nil {
				e *= change(n, b)
			}
			c := stattest.CellOf(n)
			c.Placement, c.CPUs, c.CongestionControl = result.InterHost, result.CPUsSame, "cubic"
			out = append(out, stattest.OKSample(c, b, stattest.Metrics{stattest.Throughput: 1e10 * speed * e * math.Exp(0.01*r.NormFloat64()), "client_mtu_bytes": 1500}))
		}
	}
	return out
}

func sortedNames(m map[string]float64) []string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func TestFasterThanTheBaselineIsNotBelieved(t *testing.T) {
	efficiency := map[string]float64{"x": 1.15, "y": 0.6, "z": 1.005}
	a := stat.Analyse(placed(12, efficiency, nil), dataset.Options{})
	w, ok := a.Warning(warning.Impossible)
	if !ok || len(w.Cells) != 1 || w.Cells[0].Network != "x" || !strings.Contains(w.Message, "not ranked") {
		t.Fatalf("%v %+v", ok, w)
	}
	for _, g := range a.Goals {
		for _, r := range g.Ranked {
			if r.Network == "x" {
				t.Errorf("%s: a network that is not believed has rank %d", g.Goal, r.Rank)
			}
		}
		if g.Goal == rank.Bandwidth && (len(g.Ranked) != 2 || len(g.LeftOut) != 1) {
			t.Errorf("ranked %v, left out %v", g.Ranked, g.LeftOut)
		}
	}
	// Where nothing was controlled, the likely condition is named.
	samples := placed(12, efficiency, nil)
	for i := range samples {
		samples[i].Cell.CPUs, samples[i].Cell.CongestionControl = "", ""
	}
	if w, _ := stat.Analyse(samples, dataset.Options{}).Warning(warning.Impossible); !strings.Contains(w.Cure, "congestion_control") {
		t.Errorf("cure: %s", w.Cure)
	}
	// Inside a node a pod's packets need not pass what the baseline's do.
	for i := range samples {
		samples[i].Cell.Placement = result.IntraHost
	}
	if w, ok := stat.Analyse(samples, dataset.Options{}).Warning(warning.Impossible); ok {
		t.Errorf("inside a node: %s", w.Message)
	}
	// With accelerations, they do not take the baseline's way.
	for _, name := range []string{"x+sockmap", "x+bigtcp"} {
		if w, ok := stat.Analyse(placed(12, map[string]float64{name: 1.15}, nil), dataset.Options{}).Warning(warning.Impossible); ok {
			t.Errorf("%s: %s", name, w.Message)
		}
	}
}

func TestHalvesThatDisagree(t *testing.T) {
	shifted := func(network string, block int) float64 {
		if network == "x" && block > 6 {
			return 0.9
		}
		return 1
	}
	efficiency := map[string]float64{"x": 0.8, "y": 0.6}
	w, ok := stat.Analyse(placed(12, efficiency, shifted), dataset.Options{}).Warning(warning.HalvesDisagree)
	if !ok || len(w.Cells) != 1 || w.Cells[0].Network != "x" {
		t.Errorf("%v %+v", ok, w)
	}
	if w, ok := stat.Analyse(placed(12, efficiency, nil), dataset.Options{}).Warning(warning.HalvesDisagree); ok {
		t.Errorf("without a shift: %s", w.Message)
	}
}

func TestOrderAgainstTheInstructions(t *testing.T) {
	counts := map[string]float64{"x": 50000, "y": 30000, "z": 31000}
	opt := dataset.Options{Instructions: func(c result.Cell) (float64, bool) {
		n, ok := counts[c.Network]
		return n, ok
	}}
	// x is faster than both though it takes more instructions; z and y are too near
	// to each other to be in any order.
	w, ok := stat.Analyse(placed(12, map[string]float64{"x": 0.8, "y": 0.6, "z": 0.7}, nil), opt).Warning(warning.OrderContradicts)
	if !ok || len(w.Cells) != 1 || !strings.Contains(w.Message, "2 comparisons, most x ") || !strings.Contains(w.Message, "than y") {
		t.Errorf("%v %+v", ok, w)
	}
	if w, ok := stat.Analyse(placed(12, map[string]float64{"x": 0.5, "y": 0.6, "z": 0.7}, nil), opt).Warning(warning.OrderContradicts); ok {
		t.Errorf("in the order of the instructions: %s", w.Message)
	}
}
