package warning

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stopping"
	"github.com/cnibench/cnibench/internal/unit"
)

// Doubts about how the blocks of a cell lie: too few, drifting, in two heaps,
// some far out.

// fewBlocks is the number below which an interval leans on the normal
// distribution more than on the data.
const fewBlocks = 5

func warnFewBlocks(c *dataset.Dataset, a Answers) Warning {
	var f finding
	want := max(c.Options.MinBlocks, fewBlocks)
	for i, s := range a.Cells {
		if n := len(stopping.Judged(c, c.Cells[i])); s.OK > 0 && n < want && !c.HasDependents(c.Cells[i]) {
			f.add(s.Cell, float64(want-n), float64(n))
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: TooFewBlocks, Cells: f.cells,
		Message: fmt.Sprintf("%s: fewer than %d blocks; %s has only %.0f", counted(len(f.cells), "cell"), want, named(f.worst), f.value),
		Cure:    fmt.Sprintf("measure %.0f more: raise sampling.min_blocks", f.by)}
}

func warnTarget(c *dataset.Dataset, a Answers) Warning {
	var f finding
	for i, s := range a.Cells {
		if c.Options.TargetRelativeHalfwidth <= 0 || s.OK == 0 || s.Progress.Done || c.HasDependents(c.Cells[i]) {
			continue
		}
		f.add(s.Cell, float64(s.Progress.BlocksNeeded), float64(s.Progress.BlocksNeeded))
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	w := Warning{Code: TargetNotReached, Cells: f.cells,
		Message: fmt.Sprintf("%s missed the target of ± %.3g %%", counted(len(f.cells), "cell"), 100*c.Options.TargetRelativeHalfwidth),
		Cure:    "raise sampling.max_blocks, and max_seconds if it is set, or set a wider target_relative_halfwidth"}
	if f.value > 0 {
		w.Message += fmt.Sprintf("; %s would need about %s blocks", named(f.worst), unit.Rough(int(f.value)))
	}
	return w
}

// fewestToDrift is the number of blocks from which drift is looked for.
const fewestToDrift = 8

// warnDrift looks for a trend over the blocks with Spearman's rank correlation,
// Holm-corrected over the cells.
func warnDrift(c *dataset.Dataset, a Answers) Warning {
	var tested []*dataset.CellData
	var ps []float64
	for _, d := range c.Cells {
		if points := estimate.Logs(d.Series(d.Primary), 0); len(points) >= fewestToDrift {
			tested, ps = append(tested, d), append(ps, trend(points))
		}
	}
	var f finding
	for i, p := range estimate.Holm(ps) {
		if p < 1-c.Options.Confidence {
			change := driftOf(estimate.Logs(tested[i].Series(tested[i].Primary), 0))
			f.add(tested[i].Cell, math.Abs(change), change)
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: Drift, Cells: f.cells,
		Message: fmt.Sprintf("%s drifted over the blocks, most %s: %+.1f %% from the first to the last", counted(len(f.cells), "cell"), named(f.worst), 100*f.value),
		Cure:    "use the efficiencies, in which drift cancels inside blocks, instead of absolute values; let the machine warm up, and stop other programs"}
}

// trend is the p-value of Spearman's rank correlation of value and block, by
// its t approximation: t = r·√((n−2)/(1−r²)) with n−2 degrees of freedom.
func trend(points []estimate.Point) float64 {
	n := float64(len(points))
	var mean, sxy, sxx, syy float64
	mean = (n + 1) / 2
	for i, r := range ranks(points) { // the points are in the order of blocks
		x, y := float64(i+1)-mean, r-mean
		sxy, sxx, syy = sxy+x*y, sxx+x*x, syy+y*y
	}
	if syy == 0 {
		return 1 // all equal
	}
	r := sxy / math.Sqrt(sxx*syy)
	return estimate.TTest(r*math.Sqrt((n-2)/math.Max(0, 1-r*r)), n-2)
}

// ranks gives each point the rank of its value, ties the mean of theirs.
func ranks(points []estimate.Point) []float64 {
	order := make([]int, len(points))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(points[a].Value, points[b].Value) })
	out := make([]float64, len(points))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && points[order[j]].Value == points[order[i]].Value {
			j++
		}
		for k := i; k < j; k++ {
			out[order[k]] = float64(i+j+1) / 2
		}
		i = j
	}
	return out
}

// driftOf is the relative change from the first block to the last on the
// least-squares line through the logs.
func driftOf(points []estimate.Point) float64 {
	m := estimate.MomentsOf(points)
	var blocks float64
	for _, p := range points {
		blocks += float64(p.Block) / float64(m.N)
	}
	var sxy, sxx float64
	for _, p := range points {
		x := float64(p.Block) - blocks
		sxy, sxx = sxy+x*(p.Value-m.Mean), sxx+x*x
	}
	return math.Expm1(sxy / sxx * float64(points[len(points)-1].Block-points[0].Block))
}

func warnBimodal(c *dataset.Dataset, a Answers) Warning {
	var f finding
	for _, d := range c.Cells {
		if apart, ok := twoHeaps(estimate.Values(estimate.Logs(d.Series(d.Primary), 0))); ok {
			f.add(d.Cell, apart, math.Expm1(apart))
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: Bimodal, Cells: f.cells,
		Message: fmt.Sprintf("the blocks of %s form two groups, farthest apart in %s: by %.1f %%; the mean describes neither group", counted(len(f.cells), "cell"), named(f.worst), 100*f.value),
		Cure:    "something has two states (a shared core, a queue chosen by hash, offloads, frequency): pin the CPUs, and look at the blocks one by one"}
}

// fewestToSplit is the number of blocks from which two heaps are looked for,
// leastHeap the share of them that makes a heap, and withinHeaps the share of
// the variance that may be left inside the heaps. One heap has more left in all
// but 2 of 1000 cells of 12 blocks, normal or heavy-tailed (by simulation, see
// TestFalseAlarms), and of more blocks in nearly all.
const (
	fewestToSplit = 12
	leastHeap     = 0.2
	withinHeaps   = 0.08
)

// twoHeaps cuts the values in two where the least variance is left inside the
// parts (Engelman and Hartigan 1969). It measures how far apart the parts' means
// are.
func twoHeaps(xs []float64) (apart float64, ok bool) {
	n := len(xs)
	if n < fewestToSplit {
		return 0, false
	}
	xs = slices.Sorted(slices.Values(xs))
	var total, mean float64
	for _, x := range xs {
		mean += x / float64(n)
	}
	for _, x := range xs {
		total += (x - mean) * (x - mean)
	}
	least := int(math.Ceil(leastHeap * float64(n)))
	var between, left float64
	for k := 1; k <= n-least; k++ {
		left += xs[k-1] - mean
		if k < least {
			continue
		}
		// The sum over the right part is −left, as both are about the mean.
		if b := left*left/float64(k) + left*left/float64(n-k); b > between {
			between, apart = b, -left/float64(k)-left/float64(n-k)
		}
	}
	return apart, total > 0 && 1-between/total < withinHeaps
}

// fewestForOutliers is the number of blocks from which outliers are looked for,
// farOut the distance from the median in robust standard deviations. Normal
// noise gets there in 1 of 100 cells of 10 blocks, in 1 of 1000 of 20.
const (
	fewestForOutliers = 10
	farOut            = 7
)

// warnOutliers finds blocks that lie far from the others of their cell by the
// modified z-score of Iglewicz and Hoaglin (1993), farther out than their 3.5,
// which with few blocks cries out at noise.
func warnOutliers(c *dataset.Dataset, a Answers) Warning {
	var f finding
	blocks := map[int]int{}
	for _, d := range c.Cells {
		points := estimate.Logs(d.Series(d.Primary), 0)
		if len(points) < fewestForOutliers {
			continue
		}
		center, spread := robust(points)
		for _, p := range points {
			if z := math.Abs(p.Value-center) / spread; spread > 0 && z > farOut {
				f.add(d.Cell, z, math.Expm1(p.Value-center))
				blocks[p.Block]++
			}
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: OutlierBlocks, Cells: f.cells,
		Message: fmt.Sprintf("%s far from the median of their cell, in %s; the farthest in %s, by %+.1f %%", counted(total(blocks), "sample"), theBlocks(blocks), named(f.worst), 100*f.value),
		Cure:    "something disturbed these samples (a cron job, a neighbour); they are kept, and more blocks reduce their weight"}
}

// robust is the median and 1.4826 times the median distance from it, which is
// the standard deviation of normal values.
func robust(points []estimate.Point) (center, spread float64) {
	xs := estimate.Values(points)
	center = estimate.MedianOf(xs)
	for i := range xs {
		xs[i] = math.Abs(xs[i] - center)
	}
	return center, 1.4826 * estimate.MedianOf(xs)
}

func total(counts map[int]int) int {
	var sum int
	for _, n := range counts {
		sum += n
	}
	return sum
}

// theBlocks names the blocks, the first few of them.
func theBlocks(counts map[int]int) string {
	var names []string
	for _, b := range slices.Sorted(maps.Keys(counts)) {
		names = append(names, fmt.Sprint(b))
	}
	if len(names) > 6 {
		return fmt.Sprintf("%d blocks", len(names))
	}
	if len(names) == 1 {
		return "block " + names[0]
	}
	return "blocks " + strings.Join(names, ", ")
}
