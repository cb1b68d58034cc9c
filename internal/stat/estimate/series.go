package estimate

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/unit"
)

// Point is a value in a block.
type Point struct {
	Block int
	Value float64
}

// Values are those of points, without their blocks.
func Values(points []Point) []float64 {
	out := make([]float64, len(points))
	for i, p := range points {
		out[i] = p.Value
	}
	return out
}

// LogRatios is log(a/b) in each block that has both, as goodness: turned round
// for a metric of which less is better, so that more is always better. Values
// that are not above zero have no logarithm and are left out.
func LogRatios(a, b []Point, better unit.Better) []Point {
	return InBoth(a, b, func(x, y float64) (float64, bool) {
		if x > 0 && y > 0 {
			return Goodness(math.Log(x/y), better), true
		}
		return 0, false
	})
}

// Differences is a − b in each block that has both.
func Differences(a, b []Point) []Point {
	return InBoth(a, b, func(x, y float64) (float64, bool) { return x - y, true })
}

// InBoth is what f makes of the values of each block that has both, where it
// makes something of them. Both series are in the order of their blocks.
func InBoth(a, b []Point, f func(x, y float64) (float64, bool)) []Point {
	out := make([]Point, 0, min(len(a), len(b)))
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i].Block < b[j].Block:
			i++
		case a[i].Block > b[j].Block:
			j++
		default:
			if v, ok := f(a[i].Value, b[j].Value); ok {
				out = append(out, Point{a[i].Block, v})
			}
			i, j = i+1, j+1
		}
	}
	return out
}

// Logs is the log of each value, as goodness.
func Logs(points []Point, better unit.Better) []Point {
	out := make([]Point, 0, len(points))
	for _, p := range points {
		if p.Value > 0 {
			out = append(out, Point{p.Block, Goodness(math.Log(p.Value), better)})
		}
	}
	return out
}

// Goodness is a log so that more is better: turned round for a metric of which less is.
func Goodness(log float64, better unit.Better) float64 {
	if better == unit.Lower {
		return -log
	}
	return log
}

// Common is the points in the blocks that all have.
func Common(all [][]Point) [][]Point {
	count := map[int]int{}
	for _, points := range all {
		for _, p := range points {
			count[p.Block]++
		}
	}
	out := make([][]Point, len(all))
	for i, points := range all {
		out[i] = slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return count[p.Block] < len(all) })
	}
	return out
}

// Sum adds points in the same blocks.
func Sum(all [][]Point) []Point {
	out := all[0]
	for _, points := range all[1:] {
		out = InBoth(out, points, func(x, y float64) (float64, bool) { return x + y, true })
	}
	return out
}
