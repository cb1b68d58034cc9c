package stat

import (
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// Collector takes the samples of a campaign one by one, so that they need not
// all be in memory at once.
type Collector struct{ c *dataset.Dataset }

// NewCollector makes one that has no sample yet.
func NewCollector(opt dataset.Options) *Collector { return &Collector{dataset.New(opt)} }

// Add takes a sample and keeps only its values.
func (k *Collector) Add(s *result.Sample) { k.c.Add(s) }

// Analyse makes estimates of the samples. It never fails: what cannot be estimated is
// absent and has a reason. No sample may be added after.
func (k *Collector) Analyse() Analysis {
	k.c.Sort()
	return analyse(k.c)
}

// Contrast gives the moments of the logarithm of a quotient, in the blocks that have all of it:
// the product of the metric in the cells over, divided by that in the cells
// under. One cell of each is a ratio; with a baseline of each it is the ratio of
// two efficiencies. The metric is one of a sample, a derived one, what a probe of
// the machine counts per second, or the CPU time of a part of the kernel per unit
// of work ("netfilter_component_seconds_per_segment"). notPositive is how many blocks have
// no logarithm, as a value of theirs is not above zero; there are no moments then, because
// the other blocks would be a selection. Analyse must have been called before.
func (k *Collector) Contrast(metric string, over, under []result.Cell) (m estimate.Moments, notPositive int) {
	sums, seen, none := map[int]float64{}, map[int]int{}, map[int]bool{}
	add := func(cells []result.Cell, sign float64) {
		for _, cell := range cells {
			for _, p := range k.c.SeriesOf(cell, metric) {
				seen[p.Block]++
				if p.Value > 0 {
					sums[p.Block] += sign * math.Log(p.Value)
				} else {
					none[p.Block] = true
				}
			}
		}
	}
	add(over, 1)
	add(under, -1)
	var logs []estimate.Point
	for _, block := range slices.Sorted(maps.Keys(seen)) {
		switch {
		case seen[block] < len(over)+len(under):
		case none[block]:
			notPositive++
		default:
			logs = append(logs, estimate.Point{Block: block, Value: sums[block]})
		}
	}
	if notPositive > 0 {
		return estimate.Moments{}, notPositive
	}
	return estimate.MomentsOf(logs), 0
}

// Difference gives the moments of a difference in the metric's base unit, in the blocks that have all of
// it: the sum of the metric in the cells over, minus that in the cells under. Metrics are as for Contrast.
// Values may be 0. Analyse must have been called before.
func (k *Collector) Difference(metric string, over, under []result.Cell) estimate.Moments {
	sums, seen := map[int]float64{}, map[int]int{}
	add := func(cells []result.Cell, sign float64) {
		for _, cell := range cells {
			for _, p := range k.c.SeriesOf(cell, metric) {
				seen[p.Block]++
				sums[p.Block] += sign * p.Value
			}
		}
	}
	add(over, 1)
	add(under, -1)
	var all []estimate.Point
	for _, block := range slices.Sorted(maps.Keys(seen)) {
		if seen[block] == len(over)+len(under) {
			all = append(all, estimate.Point{Block: block, Value: sums[block]})
		}
	}
	return estimate.MomentsOf(all)
}

// Excess gives the moments of left − factor × right in the metric's base unit, in the blocks that have
// both; metrics as for Contrast. Values may be 0. Analyse must have been called before.
func (k *Collector) Excess(metric string, left, right result.Cell, factor float64) estimate.Moments {
	return estimate.MomentsOf(estimate.InBoth(k.c.SeriesOf(left, metric), k.c.SeriesOf(right, metric), func(x, y float64) (float64, bool) { return x - factor*y, true }))
}

// Spread gives the moments of the logarithm of a quotient of two spreads: by how much the metric of left
// varies from block to block, divided by the same of right; metrics and notPositive as for Contrast. The
// spread of a cell is the mean distance of its logarithms from their median, as in Brown
// and Forsythe's test, because it keeps its level where values are not normally
// distributed (Robust tests for the equality of variances, JASA 69, 1974). The interval
// is the delta method's, in the blocks that have both. There is none below three blocks,
// or where a cell does not vary at all. Analyse must have been called before.
func (k *Collector) Spread(metric string, left, right result.Cell) (m estimate.Moments, notPositive int) {
	return spreadOf(k.c.SeriesOf(left, metric), k.c.SeriesOf(right, metric))
}

// spreadOf is Spread of two series.
func spreadOf(a, b []estimate.Point) (m estimate.Moments, notPositive int) {
	over, notPositiveOver := deviations(estimate.InBoth(a, b, func(x, _ float64) (float64, bool) { return x, true }))
	under, notPositiveUnder := deviations(estimate.InBoth(a, b, func(_, y float64) (float64, bool) { return y, true }))
	if n := notPositiveOver + notPositiveUnder; n > 0 {
		return estimate.Moments{}, n
	}
	x, y := estimate.MomentsOf(over).Mean, estimate.MomentsOf(under).Mean
	if len(over) < 3 || x <= 0 || y <= 0 {
		return estimate.Moments{}, 0
	}
	terms := slices.Clone(over)
	for i := range terms {
		terms[i].Value = math.Log(x/y) + over[i].Value/x - under[i].Value/y
	}
	return estimate.MomentsOf(terms), 0
}

// deviations are the distances of logarithms from their median, or how many values have
// no logarithm.
func deviations(points []estimate.Point) (distances []estimate.Point, notPositive int) {
	for _, p := range points {
		if p.Value <= 0 {
			notPositive++
			continue
		}
		distances = append(distances, estimate.Point{Block: p.Block, Value: math.Log(p.Value)})
	}
	if notPositive > 0 || len(distances) == 0 {
		return nil, notPositive
	}
	middle := estimate.MedianOf(estimate.Values(distances))
	for i := range distances {
		distances[i].Value = math.Abs(distances[i].Value - middle)
	}
	return distances, 0
}

// Values gives the moments of the metric itself in one cell; metrics as for
// Contrast. Analyse must have been called before.
func (k *Collector) Values(metric string, cell result.Cell) estimate.Moments {
	return estimate.MomentsOf(k.c.SeriesOf(cell, metric))
}

// LinkLimit is the goodput in bit/s that the cell's link can carry; ok is false
// where that is not known. Analyse must have been called before.
func (k *Collector) LinkLimit(cell result.Cell) (bitsPerSecond float64, ok bool) {
	d := k.c.ByCell[cell]
	if d == nil {
		return 0, false
	}
	limit, _ := k.c.LinkBound(d)
	if limit == nil {
		return 0, false
	}
	return *limit, true
}
