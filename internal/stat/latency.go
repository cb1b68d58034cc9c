package stat

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/aclements/go-moremath/stats"

	"github.com/cnibench/cnibench/internal/result"
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
	absolute   map[string]Estimate // by metric, seconds
	efficiency map[string]Estimate // baseline's percentile / cell's
	curve      []Quantile
	unreadable int
}

// latencies reads the histograms of all cells, as many at once as there are
// processors: inflating them is the dearest part of an analysis. A baseline
// comes with the cells that lean on it, so that its histograms are read once
// and no more than a few cells' are held at a time.
func (c *dataset) latencies() []latency {
	out := make([]latency, len(c.cells))
	families := map[result.Cell][]int{}
	for i, d := range c.cells {
		families[d.cell.Baseline()] = append(families[d.cell.Baseline()], i)
	}
	work := make(chan []int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(families)) {
		wg.Go(func() {
			var in reader
			for members := range work {
				c.familyLatencies(&in, members, out)
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
func (r *reader) merge(samples []record, into *[]float64) (histogram.Merged, int) {
	return r.Merge(func(yield func(int, *histogram.Packed) bool) {
		for _, s := range samples {
			h := s.row().histogram
			s.row().histogram = nil
			if h != nil && !yield(s.block(), h) {
				return
			}
		}
	}, into)
}

// familyLatencies fills out for a baseline and the cells that lean on it.
func (c *dataset) familyLatencies(in *reader, members []int, out []latency) {
	var base histogram.Merged
	for _, i := range members {
		if c.cells[i].cell.IsBaseline() {
			base, out[i].unreadable = in.merge(c.cells[i].ok, &in.base)
			out[i].absolute, out[i].curve = c.bootstrap(base), curve(base)
		}
	}
	for _, i := range members {
		if c.cells[i].cell.IsBaseline() {
			continue
		}
		var m histogram.Merged
		m, out[i].unreadable = in.merge(c.cells[i].ok, &in.cell)
		out[i].absolute, out[i].curve = c.bootstrap(m), curve(m)
		out[i].efficiency = c.bootstrapRatio(base, m)
	}
}

// bootstrap estimates the percentiles of the merged histograms by drawing
// blocks with replacement: values inside a block are not independent, blocks are.
func (c *dataset) bootstrap(m histogram.Merged) map[string]Estimate {
	return c.resample(len(m.Blocks()), m.Count(), func(p float64) func(weights []float64) float64 {
		hint := 0
		return func(weights []float64) (v float64) {
			v, hint = m.Percentile(p, weights, hint)
			return v
		}
	})
}

// bootstrapRatio is the same for a baseline's percentile over a cell's, of the
// blocks that have both; both are drawn together, so that what a block did to
// both cancels.
func (c *dataset) bootstrapRatio(base, cell histogram.Merged) map[string]Estimate {
	var both []int
	for _, b := range cell.Blocks() {
		if _, ok := slices.BinarySearch(base.Blocks(), b); ok {
			both = append(both, b)
		}
	}
	base, cell = base.Keep(both), cell.Keep(both)
	return c.resample(len(both), min(base.Count(), cell.Count()), func(p float64) func(weights []float64) float64 {
		hintBase, hintCell := 0, 0
		return func(weights []float64) float64 {
			var b, v float64
			b, hintBase = base.Percentile(p, weights, hintBase)
			v, hintCell = cell.Percentile(p, weights, hintCell)
			return b / v
		}
	})
}

// resample makes the bootstrap of each percentile that count values can give.
func (c *dataset) resample(n int, count float64, of func(p float64) func(weights []float64) float64) map[string]Estimate {
	if n == 0 {
		return nil
	}
	out := map[string]Estimate{}
	tail := expandedTail(n, c.opt.Confidence)
	for _, p := range percentiles() {
		if count*(1-p.share) < fewestBeyond {
			continue
		}
		f := of(p.share)
		e := Estimate{Value: f(slices.Repeat([]float64{1}, n)), N: n, Method: MergedPercentile}
		if !enoughToDraw(n, tail) {
			for e.Needed = n + 1; !enoughToDraw(e.Needed, expandedTail(e.Needed, c.opt.Confidence)); e.Needed++ {
			}
		} else {
			draws := c.draws.of(n, c.opt.Seed)
			values := make([]float64, len(draws))
			for i, weights := range draws {
				values[i] = f(weights)
			}
			slices.Sort(values)
			cut := int(tail * float64(len(values)))
			e.bound(values[cut], values[len(values)-1-cut], c.opt.Confidence)
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
	t := tQuantile(float64(n-1), 1-(1-confidence)/2)
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
