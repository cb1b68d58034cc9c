package rank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/stat/stopping"
)

// TestRankingFamilyWiseError: eight networks that are all the same, measured
// with the stopping rule in force, so that each stops when its own efficiency
// seems narrow. At most one campaign in twenty may find a difference between any two.
func TestRankingFamilyWiseError(t *testing.T) {
	reps := stattest.Repetitions(2000)
	for _, noise := range stattest.Noises() {
		for _, spread := range []float64{0.005, 0.02} {
			r := rand.New(rand.NewPCG(11, 11))
			c := dataset.Collect(nil, dataset.Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 5, MaxBlocks: 20})
			wrong := 0
			for range reps {
				pairs, _ := pairs(c, equalNetworks(r, c, 8, func() float64 { return spread * noise.Draw(r) }), stattest.Throughput)
				wrong += stattest.Count(slices.ContainsFunc(pairs, func(p Pair) bool { return p.Significant }))
			}
			share := float64(wrong) / float64(reps)
			t.Logf("%s, spread %g: %.1f %%", noise.Name, spread, 100*share)
			if share > 0.05+stattest.Margin(0.05, reps) {
				t.Errorf("%s, spread %g: %.1f %% of the campaigns find differences between equal networks", noise.Name, spread, 100*share)
			}
		}
	}
}

// equalNetworks measures k equal networks until the stopping rule is content
// with each.
func equalNetworks(r *rand.Rand, c *dataset.Dataset, k int, draw func() float64) []rankedNetwork {
	in := make([]rankedNetwork, k)
	efficiencies := make([][]estimate.Point, k)
	for i := range in {
		in[i].Network = fmt.Sprint(i)
	}
	for b := 1; b <= c.Options.MaxBlocks; b++ {
		day, host := 0.1*r.NormFloat64(), draw()
		for i := range in {
			if met := stopping.TargetMet(c, efficiencies[i]); met > 0 && len(efficiencies[i]) > met {
				continue // done
			}
			own := draw()
			in[i].series = append(in[i].series, estimate.Point{Block: b, Value: math.Exp(day + own)})
			efficiencies[i] = append(efficiencies[i], estimate.Point{Block: b, Value: own - host})
		}
	}
	return in
}
