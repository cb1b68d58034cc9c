package histogram

import (
	"iter"
	"math"
	"slices"
)

// Merged is the histograms of one cell, laid out so that the percentile of any
// weighting of the blocks is a binary search: cumulative[k·n+b] is the number
// of values of block b that are at most values[k].
type Merged struct {
	blocks     []int   // the blocks with a histogram, ascending
	values     []int64 // nanoseconds, ascending
	cumulative []float64
	totals     []float64 // by block
}

// bucket is the number of values up to value, and above the bucket before.
type bucket struct {
	value, count int64
}

// Merge reads the histograms of a cell, each with its block, in ascending order of blocks.
// A histogram that cannot be read is counted and left out. What comes of it is in into's
// memory.
func (d *Reader) Merge(histograms iter.Seq2[int, *Packed], into *[]float64) (m Merged, unreadable int) {
	d.flat = d.flat[:0]
	var ends []int // of each histogram's buckets in flat
	for block, h := range histograms {
		begin := len(d.flat)
		all, err := d.buckets(h, d.flat)
		if err != nil {
			unreadable++
			continue
		}
		if len(all) == begin {
			continue // nothing was counted
		}
		d.flat = all
		m.blocks = append(m.blocks, block)
		ends = append(ends, len(all))
		m.values = union(m.values, all[begin:])
	}
	n := len(ends)
	*into = slices.Grow((*into)[:0], len(m.values)*n)[:len(m.values)*n]
	m.cumulative, m.totals = *into, make([]float64, n)
	// Value by value, so that memory is written in its order.
	at := make([]int, n) // of each block's next bucket
	copy(at[min(1, n):], ends)
	for k, v := range m.values {
		row := m.cumulative[k*n : (k+1)*n]
		for b, end := range ends {
			for at[b] < end && d.flat[at[b]].value <= v {
				m.totals[b] += float64(d.flat[at[b]].count)
				at[b]++
			}
			row[b] = m.totals[b]
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

// Blocks are those with a histogram, ascending.
func (m Merged) Blocks() []int { return m.blocks }

// Keep is m with the given blocks alone, which must all be in it.
func (m Merged) Keep(blocks []int) Merged {
	if len(blocks) == len(m.blocks) {
		return m
	}
	n := len(m.blocks)
	out := Merged{blocks: blocks, values: m.values, cumulative: make([]float64, len(m.values)*len(blocks))}
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

// Count is the number of values in all blocks.
func (m Merged) Count() float64 {
	var sum float64
	for _, t := range m.totals {
		sum += t
	}
	return sum
}

// Percentile is the smallest value that the share p of all values, each block
// weighted, does not exceed; in seconds. Hint is the index to begin at; the
// index found is returned as the hint for the next call.
func (m Merged) Percentile(p float64, weights []float64, hint int) (seconds float64, index int) {
	var total float64
	for b, w := range weights {
		total += w * m.totals[b]
	}
	rank := math.Max(1, math.Floor(p*total+0.5)) // as HdrHistogram counts
	k := m.search(weights, rank, hint)
	return float64(m.values[k]) / 1e9, k
}

// search finds the first index where the weighted count reaches rank, galloping
// out from hint: the percentiles of resamples lie close together.
func (m Merged) search(weights []float64, rank float64, hint int) int {
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

func (m Merged) weighted(k int, weights []float64) float64 {
	n := len(weights)
	var sum float64
	for b, c := range m.cumulative[k*n : k*n+n] {
		sum += weights[b] * c
	}
	return sum
}
