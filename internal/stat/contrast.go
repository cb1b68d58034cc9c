package stat

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// Moments are the number, mean and standard deviation (n − 1) of values, one a
// block.
type Moments struct {
	N        int
	Mean, SD float64
	// NotPositive is how many blocks have no logarithm, as a value of theirs is not
	// above zero. N is 0 then: what the other blocks say would be of a selection.
	NotPositive int
}

// Interval is Student's for the mean. There is none below two blocks.
func (m Moments) Interval(confidence float64) (low, high float64, ok bool) {
	if m.N < 2 {
		return 0, 0, false
	}
	h := tQuantile(float64(m.N-1), 1-(1-confidence)/2) * m.SD / math.Sqrt(float64(m.N))
	return m.Mean - h, m.Mean + h, true
}

// Contrast is the logarithm of a quotient, in the blocks that have all of it:
// the product of the metric in the cells over, divided by that in the cells
// under. One cell of each is a ratio; with a baseline of each it is the ratio of
// two efficiencies. The metric is one of a sample, a derived one, what a probe of
// the machine counts per second, or the CPU time of a part of the kernel per unit
// of work ("netfilter_component_seconds_per_segment"). There is none where a block has a
// value that is not above zero (Moments.NotPositive). Analyse must have been called
// before.
func (k *Collector) Contrast(metric string, over, under []result.Cell) Moments {
	sums, seen, none := map[int]float64{}, map[int]int{}, map[int]bool{}
	add := func(cells []result.Cell, sign float64) {
		for _, cell := range cells {
			for _, p := range k.c.seriesOf(cell, metric) {
				seen[p.block]++
				if p.value > 0 {
					sums[p.block] += sign * math.Log(p.value)
				} else {
					none[p.block] = true
				}
			}
		}
	}
	add(over, 1)
	add(under, -1)
	var logs []float64
	notPositive := 0
	for _, block := range slices.Sorted(maps.Keys(seen)) {
		switch {
		case seen[block] < len(over)+len(under):
		case none[block]:
			notPositive++
		default:
			logs = append(logs, sums[block])
		}
	}
	if notPositive > 0 {
		return Moments{NotPositive: notPositive}
	}
	return momentsOfValues(logs)
}

// Difference is left − right in the metric's base unit, in the blocks that have both;
// metrics as for Contrast. Values may be 0. Analyse must have been called before.
func (k *Collector) Difference(metric string, left, right result.Cell) Moments {
	return momentsOfValues(values(differencesOf(k.c.seriesOf(left, metric), k.c.seriesOf(right, metric))))
}

// Spread is the logarithm of a quotient of two spreads: by how much the metric of left
// varies from block to block, divided by the same of right; metrics as for Contrast. The
// spread of a cell is the mean distance of its logarithms from their median, as in Brown
// and Forsythe's test, because it keeps its level where values are not normally
// distributed (Robust tests for the equality of variances, JASA 69, 1974). The interval
// is the delta method's, in the blocks that have both. There is none below three blocks,
// or where a cell does not vary at all. Analyse must have been called before.
func (k *Collector) Spread(metric string, left, right result.Cell) Moments {
	return spreadOf(k.c.seriesOf(left, metric), k.c.seriesOf(right, metric))
}

// spreadOf is Spread of two series.
func spreadOf(a, b []point) Moments {
	over, notPositiveOver := deviations(inBoth(a, b, func(x, _ float64) (float64, bool) { return x, true }))
	under, notPositiveUnder := deviations(inBoth(a, b, func(_, y float64) (float64, bool) { return y, true }))
	if n := notPositiveOver + notPositiveUnder; n > 0 {
		return Moments{NotPositive: n}
	}
	x, y := momentsOfValues(over).Mean, momentsOfValues(under).Mean
	if len(over) < 3 || x <= 0 || y <= 0 {
		return Moments{}
	}
	terms := make([]float64, len(over))
	for i := range terms {
		terms[i] = math.Log(x/y) + over[i]/x - under[i]/y
	}
	return momentsOfValues(terms)
}

// deviations are the distances of logarithms from their median, or how many values have
// no logarithm.
func deviations(points []point) (distances []float64, notPositive int) {
	for _, p := range points {
		if p.value <= 0 {
			notPositive++
			continue
		}
		distances = append(distances, math.Log(p.value))
	}
	if notPositive > 0 || len(distances) == 0 {
		return nil, notPositive
	}
	middle := medianOf(distances)
	for i := range distances {
		distances[i] = math.Abs(distances[i] - middle)
	}
	return distances, 0
}

// Values are the moments of the metric itself in one cell; metrics as for
// Contrast. Analyse must have been called before.
func (k *Collector) Values(metric string, cell result.Cell) Moments {
	return momentsOfValues(values(k.c.seriesOf(cell, metric)))
}

// LinkLimit is the goodput in bit/s that the cell's link can carry; ok is false
// where that is not known. Analyse must have been called before.
func (k *Collector) LinkLimit(cell result.Cell) (bitsPerSecond float64, ok bool) {
	d := k.c.byCell[cell]
	if d == nil {
		return 0, false
	}
	limit, _ := k.c.linkBound(d)
	if limit == nil {
		return 0, false
	}
	return *limit, true
}

// seriesOf is a metric by block; that of a probe is of both ends' machines, per
// second, less what they do while idle.
func (c *dataset) seriesOf(cell result.Cell, metric string) []point {
	d := c.byCell[cell]
	if d == nil {
		return nil
	}
	if out := d.series(metric); len(out) > 0 {
		return out
	}
	for _, w := range works() {
		if component, ok := strings.CutSuffix(metric, "_component_seconds_per_"+w.name); ok {
			return d.perWork([]string{component}, w)
		}
	}
	if slices.ContainsFunc(unit.NodeMetrics(), func(m unit.Metric) bool { return m.Name == metric }) {
		return d.nodeSeries(metric)
	}
	var out []point
	for _, s := range d.ok {
		if v, ok := d.meter.machines(s, []string{metric}); ok {
			out = append(out, point{s.block(), v})
		}
	}
	return out
}

func momentsOfValues(xs []float64) Moments {
	points := make([]point, len(xs))
	for i, x := range xs {
		points[i].value = x
	}
	m := momentsOf(points)
	return Moments{N: m.n, Mean: m.mean, SD: m.sd}
}

// nodeSeries is what a node held, by block: the mean of both ends' nodes, in samples
// that have both.
func (d *cellData) nodeSeries(metric string) []point {
	var out []point
	for _, s := range d.ok {
		client, okClient := s.probe(result.ClientNode, metric)
		server, okServer := s.probe(result.ServerNode, metric)
		if okClient && okServer {
			out = append(out, point{s.block(), (client + server) / 2})
		}
	}
	return out
}
