package stat

import (
	"math"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

// A ratio is of all blocks that have both values, or there is none: a block that
// is left out because its value is not above zero would leave the larger ones.
func TestContrastIsOfNoSelection(t *testing.T) {
	host, bridge := rrOf(result.HostNetwork), rrOf("bridge")
	const rate = "transactions_per_second"
	collect := func(values ...float64) *Collector {
		k := NewCollector(Options{})
		for i, v := range values {
			for _, s := range []result.Sample{okSample(host, i+1, metrics{rate: 100}), okSample(bridge, i+1, metrics{rate: v})} {
				k.Add(&s)
			}
		}
		k.Analyse()
		return k
	}
	over, under := []result.Cell{bridge}, []result.Cell{host}
	m := collect(50, 200).Contrast(rate, over, under)
	if m.N != 2 || m.NotPositive != 0 || math.Abs(m.Mean) > 1e-12 || math.Abs(m.SD-math.Sqrt2*math.Log(2)) > 1e-12 {
		t.Errorf("half and twice the baseline: %+v", m)
	}
	m = collect(50, 0, 200, -1).Contrast(rate, over, under)
	if m != (Moments{NotPositive: 2}) {
		t.Errorf("two of four blocks have no logarithm: %+v", m)
	}
	if _, _, ok := m.Interval(0.95); ok {
		t.Error("there is an interval of nothing")
	}
}
