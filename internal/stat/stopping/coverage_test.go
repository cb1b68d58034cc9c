package stopping_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/stat/stopping"
)

// stopAndCover runs the stopping rule on one endless series of logs whose truth
// is 0, reports whether the interval then reported holds it, and after how many
// blocks.
func stopAndCover(c *dataset.Dataset, logs []estimate.Point) (covered bool, blocks int) {
	n := len(logs)
	if met := stopping.TargetMet(c, logs); met > 0 {
		n = min(n, met+1)
	}
	e := c.Tables.GeometricMean(logs[:n])
	stopping.Widen(c, &e, logs[:n])
	return *e.Low <= 1 && 1 <= *e.High, n
}

// TestCoverageWithStopping is the promise of every interval that is printed:
// nominal 95 % intervals hold the truth in 93 to 97 % of campaigns, with the
// rule in force that looks after each block, for each kind of noise, from noise
// that is done at the first look to noise that never is.
func TestCoverageWithStopping(t *testing.T) {
	const target = 0.02
	reps := stattest.Repetitions(6000)
	for _, noise := range stattest.Noises() {
		for _, blocks := range []struct{ least, most int }{{5, 20}, {5, 60}, {3, 20}} {
			opt := dataset.Options{TargetRelativeHalfwidth: target, MinBlocks: blocks.least, MaxBlocks: blocks.most}
			c := dataset.Collect(nil, opt)
			lowest, highest := 1.0, 0.0
			for _, spread := range []float64{0.5, 1, 1.3, 1.6, 2, 2.5, 3, 4, 6} { // in target half-widths
				r := rand.New(rand.NewPCG(7, uint64(100*spread)))
				covered, total := 0, 0
				logs := make([]estimate.Point, blocks.most)
				for range reps {
					for i := range logs {
						logs[i] = estimate.Point{Block: i + 1, Value: noise.Draw(r) * spread * target}
					}
					ok, n := stopAndCover(c, logs)
					covered, total = covered+stattest.Count(ok), total+n
				}
				share := float64(covered) / float64(reps)
				lowest, highest = min(lowest, share), max(highest, share)
				if m := stattest.Margin(0.95, reps); share < 0.93-m || share > 0.97+m {
					t.Errorf("%s, %d to %d blocks, spread %g targets: %.1f %% covered with %.1f blocks",
						noise.Name, blocks.least, blocks.most, spread, 100*share, float64(total)/float64(reps))
				}
			}
			t.Logf("%s, %d to %d blocks: %.1f to %.1f %%", noise.Name, blocks.least, blocks.most, 100*lowest, 100*highest)
		}
	}
}

// TestCoverageWithoutTheRemedyIsTooLow shows that the remedy is needed: stopping
// at the first narrow interval covers less than 93 %.
func TestCoverageWithoutTheRemedyIsTooLow(t *testing.T) {
	c := dataset.Collect(nil, dataset.Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 5})
	reps, covered := 20_000, 0
	r := rand.New(rand.NewPCG(8, 8))
	logs := make([]estimate.Point, 20)
	for range reps {
		for i := range logs {
			logs[i] = estimate.Point{Block: i + 1, Value: r.NormFloat64() * 2 * 0.02}
		}
		n := len(logs)
		if met := stopping.TargetMet(c, logs); met > 0 {
			n = met
		}
		e := c.Tables.GeometricMean(logs[:n])
		covered += stattest.Count(*e.Low <= 1 && 1 <= *e.High)
	}
	share := float64(covered) / float64(reps)
	t.Logf("%.1f %%", 100*share)
	if share > 0.93 {
		t.Errorf("%.1f %% covered: the rule needs no remedy, and docs/statistics.md says it does", 100*share)
	}
}

// drifting makes a campaign on a machine that loses a fifth of its speed from
// beginning to end. Order gives the moment (0 to 1) of each sample.
func drifting(r *rand.Rand, blocks int, truth float64, moment func(block int, baseline bool) float64) []result.Sample {
	var out []result.Sample
	speed := func(at float64) float64 { return 1e10 * (1 - 0.2*at) * math.Exp(0.01*r.NormFloat64()) }
	for b := 1; b <= blocks; b++ {
		out = append(out,
			stattest.OKSample(stattest.CellOf(result.HostNetwork), b, stattest.Metrics{stattest.Throughput: speed(moment(b, true))}),
			stattest.OKSample(stattest.CellOf("bridge"), b, stattest.Metrics{stattest.Throughput: truth * speed(moment(b, false))}))
	}
	return out
}

// TestPeerMistakeGroupedOrder: most tools run all repetitions of one network
// and then all of the next. A machine that drifts by 20 % then moves the result
// by about half of that; in blocks it does not.
func TestPeerMistakeGroupedOrder(t *testing.T) {
	const truth, blocks = 0.9, 16
	reps := stattest.Repetitions(2000)
	r := rand.New(rand.NewPCG(3, 3))
	inBlocks := func(b int, _ bool) float64 { return (float64(b-1) + r.Float64()) / blocks }
	grouped := func(b int, baseline bool) float64 {
		at := (float64(b-1) + 0.5) / blocks / 2
		if !baseline {
			at += 0.5
		}
		return at
	}
	var sumBlocks, sumGrouped float64
	covered := 0
	for range reps {
		c := dataset.Collect(drifting(r, blocks, truth, inBlocks), dataset.Options{})
		e := c.Tables.GeometricMean(stopping.Judged(c, c.ByCell[stattest.CellOf("bridge")]))
		sumBlocks += math.Log(e.Value / truth)
		covered += stattest.Count(*e.Low <= truth && truth <= *e.High)
		g := stat.Analyse(drifting(r, blocks, truth, grouped), dataset.Options{})
		sumGrouped += math.Log(stattest.Find(t, g, stattest.CellOf("bridge")).Efficiency.Value / truth)
	}
	t.Logf("blocks %+.2f %%, groups %+.2f %%", 100*sumBlocks/float64(reps), 100*sumGrouped/float64(reps))
	if bias := sumBlocks / float64(reps); math.Abs(bias) > 0.002 {
		t.Errorf("blocks: efficiency is off by %+.2f %%", 100*bias)
	}
	if bias := sumGrouped / float64(reps); bias > -0.08 {
		t.Errorf("groups: efficiency is off by %+.2f %%, expected about -11 %%", 100*bias)
	}
	share, m := float64(covered)/float64(reps), stattest.Margin(0.95, reps)
	if share < 0.93-m || share > 0.97+m {
		t.Errorf("blocks: %.1f %% of the intervals hold the truth", 100*share)
	}
}

// TestCoverageWithStoppingUnderDrift is the same with the rule in force, on a
// machine that loses 20 % over 20 blocks.
func TestCoverageWithStoppingUnderDrift(t *testing.T) {
	const truth, most = 0.9, 20
	reps := stattest.Repetitions(6000)
	c := dataset.Collect(nil, dataset.Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 5, MaxBlocks: most})
	for _, spread := range []float64{0.01, 0.02, 0.04} {
		r := rand.New(rand.NewPCG(4, uint64(1000*spread)))
		covered := 0
		logs := make([]estimate.Point, most)
		for range reps {
			for i := range logs {
				at := func() float64 { return math.Log(1 - 0.2*(float64(i)+r.Float64())/most) }
				logs[i] = estimate.Point{Block: i + 1, Value: at() - at() + spread*r.NormFloat64()}
			}
			ok, _ := stopAndCover(c, logs)
			covered += stattest.Count(ok)
		}
		share, m := float64(covered)/float64(reps), stattest.Margin(0.95, reps)
		t.Logf("spread %g: %.1f %%", spread, 100*share)
		if share < 0.93-m || share > 0.97+m {
			t.Errorf("spread %g: %.1f %% of the intervals hold the truth", spread, 100*share)
		}
	}
}

// TestCoverageOfSlices: slices of one connection resemble each other, as the machine's
// speed and the connection's luck last longer than a slice. Intervals from blocks hold the
// truth all the same, and intervals from the slices would not.
func TestCoverageOfSlices(t *testing.T) {
	const target, slicesPerBlock, most = 0.02, 20, 20
	reps := stattest.Repetitions(4000)
	for _, alike := range []float64{0, 0.5, 0.9} { // share of the variance that a block's slices have in common
		c := dataset.Collect(nil, dataset.Options{TargetRelativeHalfwidth: target, MinBlocks: 5, MaxBlocks: most})
		r := rand.New(rand.NewPCG(11, uint64(100*alike)))
		covered, bySlices := 0, 0
		for range reps {
			blocks := make([]estimate.Point, most)
			var all []estimate.Point
			for b := range blocks {
				ratios := slicedBlock(r, slicesPerBlock, alike, 2*target)
				for _, v := range ratios {
					all = append(all, estimate.Point{Block: len(all) + 1, Value: v})
					blocks[b].Value += math.Exp(v) / float64(len(ratios))
				}
				blocks[b] = estimate.Point{Block: b + 1, Value: math.Log(blocks[b].Value)}
			}
			ok, n := stopAndCover(c, blocks)
			covered += stattest.Count(ok)
			e := c.Tables.GeometricMean(all[:n*slicesPerBlock])
			bySlices += stattest.Count(*e.Low <= 1 && 1 <= *e.High)
		}
		share, naive := float64(covered)/float64(reps), float64(bySlices)/float64(reps)
		t.Logf("%.0f %% in common: blocks cover %.1f %%, slices would %.1f %%", 100*alike, 100*share, 100*naive)
		if m := stattest.Margin(0.95, reps); share < 0.93-m || share > 0.97+m {
			t.Errorf("%.0f %% in common: %.1f %% covered", 100*alike, 100*share)
		}
		if alike >= 0.5 && naive > 0.8 {
			t.Errorf("%.0f %% in common: intervals from slices cover %.1f %%: the slices do not resemble each other", 100*alike, 100*naive)
		}
	}
}

// slicedBlock is the logs of one block's slices, a cell's against its baseline's. They
// share the given part of their variance; the rest lasts for a few slices (an
// autoregression of the first order). Their truth is 0.
func slicedBlock(r *rand.Rand, n int, alike, spread float64) []float64 {
	const lasts = 0.6
	block := r.NormFloat64() * spread * math.Sqrt(alike)
	own := spread * math.Sqrt(1-alike)
	out := make([]float64, n)
	state := r.NormFloat64()
	for i := range out {
		out[i] = block + own*state
		state = lasts*state + math.Sqrt(1-lasts*lasts)*r.NormFloat64()
	}
	return out
}
