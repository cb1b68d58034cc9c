package stat

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
)

// merged is the histograms of one cell, laid out so that the percentile of any
// weighting of the blocks is a binary search: cumulative[k·n+b] is the number
// of values of block b that are at most values[k].
type merged struct {
	blocks     []int   // the blocks with a histogram, ascending
	values     []int64 // nanoseconds, ascending
	cumulative []float64
	totals     []float64 // by block
}

// bucket is the number of values up to value, and above the bucket before.
type bucket struct {
	value, count int64
}

// merge reads the histograms of a cell. A histogram that cannot be read is
// counted and left out.
func merge(samples []*result.Sample) (m merged, unreadable int) {
	var all [][]bucket
	for _, s := range samples {
		if s.Histogram == nil {
			continue
		}
		h, err := decode(s.Histogram)
		if err != nil {
			unreadable++
			continue
		}
		if h.TotalCount() == 0 {
			continue
		}
		buckets := make([]bucket, 0, h.Populated())
		for low, count := range h.ForEachBucket {
			buckets = append(buckets, bucket{highestEquivalent(h, low), count})
		}
		m.values = union(m.values, buckets)
		m.blocks = append(m.blocks, s.Block)
		m.totals = append(m.totals, float64(h.TotalCount()))
		all = append(all, buckets)
	}
	n := len(all)
	m.cumulative = make([]float64, len(m.values)*n)
	for b, buckets := range all {
		var sum float64
		i := 0
		for k, v := range m.values {
			for i < len(buckets) && buckets[i].value <= v {
				sum += float64(buckets[i].count)
				i++
			}
			m.cumulative[k*n+b] = sum
		}
	}
	return m, unreadable
}

// union adds the buckets' values, both ascending. Mostly there are none to add.
func union(values []int64, buckets []bucket) []int64 {
	missing := 0
	i := 0
	for _, b := range buckets {
		for i < len(values) && values[i] < b.value {
			i++
		}
		if i == len(values) || values[i] != b.value {
			missing++
		}
	}
	if missing == 0 {
		return values
	}
	out := make([]int64, 0, len(values)+missing)
	i = 0
	for _, b := range buckets {
		for i < len(values) && values[i] < b.value {
			out = append(out, values[i])
			i++
		}
		if i == len(values) || values[i] != b.value {
			out = append(out, b.value)
		}
	}
	return append(out, values[i:]...)
}

func decode(h *result.Histogram) (*hdrhistogram.PackedHistogram, error) {
	if h.Unit != "nanoseconds" {
		return nil, fmt.Errorf("histogram in %q, not nanoseconds", h.Unit)
	}
	return hdrhistogram.DecodePacked([]byte(h.HDRBase64))
}

// highestEquivalent is the largest value of the bucket that begins at low: what
// HDR histograms call the value of a percentile. A bucket is one unit wide up
// to 2·10^digits, and twice as wide with each doubling after that.
func highestEquivalent(h *hdrhistogram.PackedHistogram, low int64) int64 {
	half := bits.Len64(uint64(2*math.Pow10(int(h.SignificantFigures())))-1) - 1
	unit := bits.Len64(uint64(max(h.LowestTrackableValue(), 1))) - 1
	size := int64(1) << max(unit, bits.Len64(uint64(low))-1-half, 0)
	return low + size - 1
}

// keep is m with the given blocks alone, which must all be in it.
func (m merged) keep(blocks []int) merged {
	if len(blocks) == len(m.blocks) {
		return m
	}
	n := len(m.blocks)
	out := merged{blocks: blocks, values: m.values, cumulative: make([]float64, len(m.values)*len(blocks))}
	from := make([]int, len(blocks))
	for j, b := range blocks {
		from[j], _ = slices.BinarySearch(m.blocks, b)
		out.totals = append(out.totals, m.totals[from[j]])
	}
	for k := range m.values {
		for j, i := range from {
			out.cumulative[k*len(blocks)+j] = m.cumulative[k*n+i]
		}
	}
	return out
}

// count is the number of values in all blocks.
func (m merged) count() float64 {
	var sum float64
	for _, t := range m.totals {
		sum += t
	}
	return sum
}

// percentile is the smallest value that the share p of all values, each block
// weighted, does not exceed; in seconds. Hint is the place to begin at; the
// place found is handed back for the next call.
func (m merged) percentile(p float64, weights []float64, hint int) (seconds float64, place int) {
	var total float64
	for b, w := range weights {
		total += w * m.totals[b]
	}
	rank := math.Max(1, math.Floor(p*total+0.5)) // as HdrHistogram counts
	k := m.search(weights, rank, hint)
	return float64(m.values[k]) / 1e9, k
}

// search finds the first place where the weighted count reaches rank, galloping
// out from hint: the percentiles of resamples lie close together.
func (m merged) search(weights []float64, rank float64, hint int) int {
	last := len(m.values) - 1
	low, high := -1, last // count(low) < rank ≤ count(high)
	if m.weighted(hint, weights) >= rank {
		high = hint
		for step := 1; high-step >= 0; step *= 2 {
			if m.weighted(high-step, weights) < rank {
				low = high - step
				break
			}
			high -= step
		}
	} else {
		low = hint
		for step := 1; low+step <= last; step *= 2 {
			if m.weighted(low+step, weights) >= rank {
				high = low + step
				break
			}
			low += step
		}
	}
	for high-low > 1 {
		if mid := (low + high) / 2; m.weighted(mid, weights) >= rank {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

func (m merged) weighted(k int, weights []float64) float64 {
	n := len(weights)
	var sum float64
	for b, c := range m.cumulative[k*n : k*n+n] {
		sum += weights[b] * c
	}
	return sum
}
