package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

// A ratio is of all blocks that have both values, or there is none: a block that
// is left out because its value is not above zero would leave the larger ones.
func TestContrastIsOfNoSelection(t *testing.T) {
	host, bridge := stattest.RROf(result.HostNetwork), stattest.RROf("bridge")
	const rate = "transactions_per_second"
	collect := func(values ...float64) *Collector {
		k := NewCollector(dataset.Options{})
		for i, v := range values {
			for _, s := range []result.Sample{stattest.OKSample(host, i+1, stattest.Metrics{rate: 100}), stattest.OKSample(bridge, i+1, stattest.Metrics{rate: v})} {
				k.Add(&s)
			}
		}
		k.Analyse()
		return k
	}
	over, under := []result.Cell{bridge}, []result.Cell{host}
	m, notPositive := collect(50, 200).Contrast(rate, over, under)
	if m.N != 2 || notPositive != 0 || math.Abs(m.Mean) > 1e-12 || math.Abs(m.SD-math.Sqrt2*math.Log(2)) > 1e-12 {
		t.Errorf("half and twice the baseline: %+v", m)
	}
	m, notPositive = collect(50, 0, 200, -1).Contrast(rate, over, under)
	if m != (estimate.Moments{}) || notPositive != 2 {
		t.Errorf("two of four blocks have no logarithm: %+v, %d", m, notPositive)
	}
	if _, _, ok := m.Interval(0.95); ok {
		t.Error("there is an interval of nothing")
	}
}

// TestSpread: of cells that vary alike, few are shown to vary differently, also where
// values are far from normally distributed; of cells that do not, most are.
func TestSpread(t *testing.T) {
	a, b := stattest.RROf("bridge"), stattest.RROf(result.HostNetwork)
	const rate, rounds, blocks = "transactions_per_second", 4000, 12
	random := rand.New(rand.NewPCG(1, 2))
	shapes := map[string]func() float64{
		"normal": random.NormFloat64,
		"two modes": func() float64 {
			return float64(2*random.IntN(2)-1) + 0.3*random.NormFloat64()
		},
		"long tail": func() float64 { return random.ExpFloat64() - 1 },
	}
	for name, shape := range shapes {
		shown := func(times float64) (share float64) {
			for range rounds {
				over, under := make([]estimate.Point, blocks), make([]estimate.Point, blocks)
				for block := range blocks {
					over[block] = estimate.Point{Block: block, Value: 100 * math.Exp(0.02*times*shape())}
					under[block] = estimate.Point{Block: block, Value: 300 * math.Exp(0.02*shape())}
				}
				m, _ := spreadOf(over, under)
				if low, high, ok := m.Interval(0.95); ok && (low > 0 || high < 0) {
					share += 1.0 / rounds
				}
			}
			return share
		}
		if wrong, right := shown(1), shown(4); wrong > 0.1 || right < 0.7 {
			t.Errorf("%s: %.3f shown to differ that do not, %.3f of those that do", name, wrong, right)
		} else {
			t.Logf("%s: %.3f, %.3f", name, wrong, right)
		}
	}
	k := NewCollector(dataset.Options{})
	for block := 1; block <= 5; block++ {
		for _, s := range []result.Sample{stattest.OKSample(a, block, stattest.Metrics{rate: 100}), stattest.OKSample(b, block, stattest.Metrics{rate: float64(block)})} {
			k.Add(&s)
		}
	}
	k.Analyse()
	if m, _ := k.Spread(rate, a, b); m.N != 0 {
		t.Errorf("a cell without spread is compared: %+v", m)
	}
}
