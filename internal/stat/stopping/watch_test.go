package stopping_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/stat/stopping"
)

// TestWatchIsTheRule: what is judged block by block, from one number for each sample, is
// what the stopping rule says of all records up to that block; also where a run is
// resumed, which gives all records before the first look, and where a block is measured
// once more after it was looked at.
func TestWatchIsTheRule(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for round := range 60 {
		opt := dataset.Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 3 + round%3, Primary: func(result.Cell) string { return stattest.Throughput }}
		blocks := randomBlocks(r, 25)
		fresh, resumed := stopping.NewWatch(opt), stopping.NewWatch(opt)
		var all []result.Sample
		for _, samples := range blocks {
			for i := range samples {
				resumed.Keep(&samples[i])
			}
		}
		for b, samples := range blocks {
			for i := range samples {
				fresh.Keep(&samples[i])
			}
			all = append(all, samples...)
			want := byTheRule(all, opt)
			got := fresh.Look(b + 1)
			compareProgress(t, got, want)
			later := resumed.Look(b + 1)
			for cell, p := range want {
				if q := later[cell]; p.Blocks > 0 && (q.Done != p.Done || q.Why != p.Why) {
					t.Errorf("resumed, block %d: %s: %+v, want %+v", b+1, cell.Network, q, p)
				}
			}
		}
		again := stattest.OKSample(stattest.CellOf(result.HostNetwork), 2, stattest.Metrics{stattest.Throughput: 3})
		again.Attempt = 2
		fresh.Keep(&again)
		compareProgress(t, fresh.Look(len(blocks)), byTheRule(append(all, again), opt))
		if t.Failed() {
			return
		}
	}
}

// randomBlocks are blocks of a baseline, two networks and one that cannot be built; some
// samples fail, and are measured again or not.
func randomBlocks(r *rand.Rand, n int) [][]result.Sample {
	var out [][]result.Sample
	for b := 1; b <= n; b++ {
		var block []result.Sample
		for i, network := range []string{result.HostNetwork, "a", "b"} {
			cell := stattest.CellOf(network)
			if r.IntN(6) == 0 {
				block = append(block, stattest.FailedSample(cell, b, "link is down"))
				if r.IntN(2) == 0 {
					continue
				}
			}
			block = append(block, stattest.OKSample(cell, b, stattest.Metrics{stattest.Throughput: math.Exp(0.03 * float64(i) * r.NormFloat64())}))
		}
		if b == 1 {
			gone := stattest.FailedSample(stattest.CellOf("gone"), b, "kernel has no ipip")
			gone.Status = result.StatusUnsupported
			block = append(block, gone)
		}
		out = append(out, block)
	}
	return out
}

// byTheRule is the stopping rule on all samples at once.
func byTheRule(samples []result.Sample, opt dataset.Options) map[result.Cell]stopping.Progress {
	c := dataset.Collect(samples, opt)
	out := map[result.Cell]stopping.Progress{}
	for _, d := range c.Cells {
		if !d.Cell.IsBaseline() {
			out[d.Cell] = stopping.ProgressOf(c, d)
		}
	}
	return out
}

func compareProgress(t *testing.T, got, want map[result.Cell]stopping.Progress) {
	t.Helper()
	for cell, p := range want {
		q := got[cell]
		if (p.RelativeHalfwidth == nil) != (q.RelativeHalfwidth == nil) || p.RelativeHalfwidth != nil && math.Abs(*p.RelativeHalfwidth-*q.RelativeHalfwidth) > 1e-9 {
			t.Errorf("%s: half-width %v, want %v", cell.Network, q.RelativeHalfwidth, p.RelativeHalfwidth)
		}
		p.RelativeHalfwidth, q.RelativeHalfwidth = nil, nil
		if !reflect.DeepEqual(p, q) {
			t.Errorf("%s: %+v, want %+v", cell.Network, q, p)
		}
	}
}

// TestLooksCostTheSame: a look after many blocks allocates what one after few does.
func TestLooksCostTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	w := stopping.NewWatch(dataset.Options{TargetRelativeHalfwidth: 0.0001, MinBlocks: 3, UntilRanked: true, Primary: func(result.Cell) string { return stattest.Throughput }})
	at := func(from, to int) float64 {
		for b := from; b <= to; b++ {
			for _, network := range []string{result.HostNetwork, "a", "b", "c"} {
				s := stattest.OKSample(stattest.CellOf(network), b, stattest.Metrics{stattest.Throughput: math.Exp(0.03 * r.NormFloat64())})
				w.Keep(&s)
			}
			w.Look(b)
		}
		return testing.AllocsPerRun(20, func() { w.Look(to) })
	}
	few, many := at(1, 10), at(11, 500)
	if many > few+jitter {
		t.Errorf("a look allocates %.0f times after 10 blocks and %.0f after 500", few, many)
	}
}

// TestOpenRanksAreMeasuredOn: two networks reach the target before they differ significantly;
// with UntilRanked they go on until they are, and two that are alike end as a tie.
func TestOpenRanksAreMeasuredOn(t *testing.T) {
	const target, noise = 0.04, 0.06
	for _, test := range []struct {
		name string
		b    float64 // log throughput of b; that of a is 0
		tie  bool
	}{{"apart", -0.06, false}, {"alike", 0, true}} {
		r := rand.New(rand.NewPCG(5, 5))
		plain := dataset.Options{TargetRelativeHalfwidth: target, MinBlocks: 5, Primary: func(result.Cell) string { return stattest.Throughput }}
		ranked := plain
		ranked.UntilRanked = true
		early, late := stopping.NewWatch(plain), stopping.NewWatch(ranked)
		var samples []result.Sample
		doneEarly, doneLate := 0, 0
		for b := 1; b <= 400 && doneLate == 0; b++ {
			for network, log := range map[string]float64{result.HostNetwork: 0, "a": noise * r.NormFloat64(), "b": test.b + noise*r.NormFloat64()} {
				s := stattest.OKSample(stattest.CellOf(network), b, stattest.Metrics{stattest.Throughput: math.Exp(log)})
				samples = append(samples, s)
				early.Keep(&s)
				late.Keep(&s)
			}
			host := stattest.CellOf(result.HostNetwork)
			if doneEarly == 0 && early.Look(b)[host].Done {
				doneEarly = b
			}
			if late.Look(b)[host].Done {
				doneLate = b
			}
		}
		if doneEarly == 0 || doneLate == 0 || !test.tie && doneLate <= doneEarly {
			t.Errorf("%s: done at block %d by the target, at %d with ranks", test.name, doneEarly, doneLate)
		}
		pair := stat.Analyse(samples, ranked).Rankings[0].Pairs[0]
		if pair.Significant == test.tie {
			t.Errorf("%s: significant %v in the end: %+v", test.name, pair.Significant, pair)
		}
	}
}
