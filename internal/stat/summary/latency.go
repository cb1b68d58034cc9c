package summary

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/aclements/go-moremath/stats"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/histogram"
)

// percentile is a percentile and the metric that holds it.
type percentile struct {
	share  float64
	metric string
}

func percentiles() []percentile {
	return []percentile{
		{0.50, "latency_p50_seconds"}, {0.90, "latency_p90_seconds"},
		{0.99, "latency_p99_seconds"}, {0.999, "latency_p999_seconds"},
	}
}

// fewestBeyond is how many values must lie beyond a percentile for it to be
// reported at all: p99.9 of 500 round trips is one of them, not a property.
const fewestBeyond = 10

// latency is what the histograms of a cell say.
type latency struct {
	absolute   map[string]estimate.Estimate // by metric, seconds
	efficiency map[string]estimate.Estimate // baseline's percentile / cell's
	curve      []Quantile
	unreadable int
}

// latencies reads the histograms of all cells, as many at once as there are
// processors: inflating them is the dearest part of an analysis. A baseline
// comes with the cells that lean on it, so that its histograms are read once
// and no more than a few cells' are held at a time.
func latencies(c *dataset.Dataset) []latency {
	out := make([]latency, len(c.Cells))
	families := map[result.Cell][]int{}
	for i, d := range c.Cells {
		families[d.Cell.Baseline()] = append(families[d.Cell.Baseline()], i)
	}
	b := newBootstrap(c.Options)
	work := make(chan []int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(families)) {
		wg.Go(func() {
			var in reader
			for members := range work {
				b.family(c, &in, members, out)
			}
		})
	}
	for _, members := range families {
		work <- members
	}
	close(work)
	wg.Wait()
	return out
}

// reader reads the histograms of one cell after the other, in the same memory.
type reader struct {
	histogram.Reader
	base, cell []float64 // of a baseline and of others
}

// merge reads the histograms of a cell and lets go of them.
func (r *reader) merge(samples []dataset.Record, into *[]float64) (histogram.Merged, int) {
	return r.Merge(func(yield func(int, *histogram.Packed) bool) {
		for _, s := range samples {
			if h := s.TakeHistogram(); h != nil && !yield(s.Block(), h) {
				return
			}
		}
	}, into)
}

// bootstrap estimates percentiles by drawing blocks with replacement.
type bootstrap struct {
	confidence float64
	seed       uint64
	draws      *draws
}

func newBootstrap(opt dataset.Options) bootstrap {
	return bootstrap{opt.Confidence, opt.Seed, &draws{byN: map[int][][]float64{}}}
}

// family fills out for a baseline and the cells that lean on it.
func (b bootstrap) family(c *dataset.Dataset, in *reader, members []int, out []latency) {
	var base histogram.Merged
	for _, i := range members {
		if c.Cells[i].Cell.IsBaseline() {
			base, out[i].unreadable = in.merge(c.Cells[i].OK, &in.base)
			out[i].absolute, out[i].curve = b.percentiles(base), curve(base)
		}
	}
	for _, i := range members {
		if c.Cells[i].Cell.IsBaseline() {
			continue
		}
		var m histogram.Merged
		m, out[i].unreadable = in.merge(c.Cells[i].OK, &in.cell)
		out[i].absolute, out[i].curve = b.percentiles(m), curve(m)
		out[i].efficiency = b.ratio(base, m)
	}
}

// percentiles estimates those of the merged histograms by drawing
// blocks with replacement: values inside a block are not independent, blocks are.
func (b bootstrap) percentiles(m histogram.Merged) map[string]estimate.Estimate {
	return b.resample(len(m.Blocks()), m.Count(), func(p float64) func(weights []float64) float64 {
		hint := 0
		return func(weights []float64) (v float64) {
			v, hint = m.Percentile(p, weights, hint)
			return v
		}
	})
}

// ratio is the same for a baseline's percentile over a cell's, of the
// blocks that have both; both are drawn together, so that what a block did to
// both cancels.
func (b bootstrap) ratio(base, cell histogram.Merged) map[string]estimate.Estimate {
	var both []int
	for _, block := range cell.Blocks() {
		if _, ok := slices.BinarySearch(base.Blocks(), block); ok {
			both = append(both, block)
		}
	}
	base, cell = base.Keep(both), cell.Keep(both)
	return b.resample(len(both), min(base.Count(), cell.Count()), func(p float64) func(weights []float64) float64 {
		hintBase, hintCell := 0, 0
		return func(weights []float64) float64 {
			var over, under float64
			over, hintBase = base.Percentile(p, weights, hintBase)
			under, hintCell = cell.Percentile(p, weights, hintCell)
			return over / under
		}
	})
}

// resample makes the bootstrap of each percentile that count values can give.
func (b bootstrap) resample(n int, count float64, of func(p float64) func(weights []float64) float64) map[string]estimate.Estimate {
	if n == 0 {
		return nil
	}
	out := map[string]estimate.Estimate{}
	tail := expandedTail(n, b.confidence)
	for _, p := range percentiles() {
		if count*(1-p.share) < fewestBeyond {
			continue
		}
		f := of(p.share)
		e := estimate.Estimate{Value: f(slices.Repeat([]float64{1}, n)), N: n, Method: estimate.MergedPercentile}
		if !enoughToDraw(n, tail) {
			for e.Needed = n + 1; !enoughToDraw(e.Needed, expandedTail(e.Needed, b.confidence)); e.Needed++ {
			}
		} else {
			draws := b.draws.of(n, b.seed)
			values := make([]float64, len(draws))
			for i, weights := range draws {
				values[i] = f(weights)
			}
			slices.Sort(values)
			cut := int(tail * float64(len(values)))
			e.Bound(values[cut], values[len(values)-1-cut], b.confidence)
		}
		out[p.metric] = e
	}
	return out
}

// expandedTail is the share to cut off each end of the bootstrap's values: less
// than half of 1−confidence, since with few blocks the plain bootstrap's
// interval is too narrow, by √((n−1)/n) and by the normal distribution in the
// place of t (Hesterberg 2015, "expanded percentile interval").
func expandedTail(n int, confidence float64) float64 {
	if n < 2 {
		return 0
	}
	t := estimate.TQuantile(float64(n-1), 1-(1-confidence)/2)
	return stats.StdNormal.CDF(-t * math.Sqrt(float64(n)/float64(n-1)))
}

// enoughToDraw reports whether n blocks contain any information about that tail: the
// rarest draw, n times the same block, has the probability n^−n, which must be
// small compared with it. (With five blocks it is a third of it at 95 %, and the
// intervals then cover 92 %.)
func enoughToDraw(n int, tail float64) bool {
	return n >= 2 && math.Pow(float64(n), -float64(n)) <= tail/10
}

// draws keeps the bootstrap's draws by the number of blocks: the same for all
// cells, so that they can be compared.
type draws struct {
	mu  sync.Mutex
	byN map[int][][]float64
}

func (d *draws) of(n int, seed uint64) [][]float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byN[n] == nil {
		d.byN[n] = drawBlocks(n, seed)
	}
	return d.byN[n]
}

// drawBlocks draws n of n blocks with replacement, again and again, as the
// number of times that each was drawn.
func drawBlocks(n int, seed uint64) [][]float64 {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	draws := make([][]float64, min(2000, max(400, 20000/n)))
	for i := range draws {
		draws[i] = make([]float64, n)
		for range n {
			draws[i][r.IntN(n)]++
		}
	}
	return draws
}
