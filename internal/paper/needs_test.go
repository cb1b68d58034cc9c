package paper

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// pairOf compares two cells of its own; the relation holds above 1. Its value has a spread of 10 %
// in 4 blocks.
func pairOf(i int, value float64) comparison {
	return comparison{over: []result.Cell{cellOf(fmt.Sprintf("l%d", i))}, under: []result.Cell{cellOf(fmt.Sprintf("r%d", i))},
		bounds:  bounds{holdLow: 1, holdHigh: math.Inf(1), failLow: 1, failHigh: math.Inf(1)},
		moments: estimate.Moments{N: 4, Mean: math.Log(value), SD: 0.1}}
}

// perCell costs a second for each block of a cell.
func perCell(blocks map[result.Cell]int) time.Duration {
	var sum time.Duration
	for _, n := range blocks {
		sum += time.Duration(n) * time.Second
	}
	return sum
}

// TestNeeds: only the pairs that a verdict still depends on need more blocks, and each as many as it
// needs itself.
func TestNeeds(t *testing.T) {
	const yes, likely, open, unlikely, no = 3, 1.2, 1.05, 0.85, 0.3
	for name, x := range map[string]struct {
		values []float64
		enough string
		lost   int
		open   bool // whether there may be more pairs
		want   string
	}{
		"all, and two are shown":         {values: []float64{yes, likely, yes, open}, want: "l1 l3 r1 r3"},
		"all, and one may be against it": {values: []float64{open, unlikely, open}, want: "l1 r1"},
		"all, the nearest against it":    {values: []float64{0.95, unlikely, open}, want: "l1 r1"},
		"all, and one is missing":        {values: []float64{likely, likely}, lost: 1},
		"one is missing, one against it": {values: []float64{likely, unlikely}, lost: 1, want: "l1 r1"},
		"any":                            {values: []float64{open, likely, no}, enough: holdsAny, want: "l1 r1"},
		"any, and all are against it":    {values: []float64{unlikely, no, 0.9}, enough: holdsAny, want: "l0 l2 r0 r2"},
		"most, the nearest that do":      {values: []float64{yes, open, likely}, enough: holdsMost, want: "l2 r2"},
		"most against it":                {values: []float64{no, open, unlikely, likely}, enough: holdsMost, want: "l2 r2"},
		"most, of unknown many":          {values: []float64{yes, likely}, enough: holdsMost, lost: 1, open: true},
	} {
		j := decision{confidence: openConfidence, enough: x.enough, lost: x.lost, uncounted: x.open}
		for i, v := range x.values {
			j.comparisons = append(j.comparisons, pairOf(i, v))
		}
		var got []string
		cells := j.needs(perCell)
		for c := range cells {
			got = append(got, c.Network)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != x.want {
			t.Errorf("%s: %v, want %s", name, got, x.want)
		}
		if cells == nil {
			continue
		}
		for i := range j.comparisons { // with them it is decided
			c := &j.comparisons[i]
			c.moments.N += cells[c.over[0]]
		}
		if j.verdict(0) == Undecided {
			t.Errorf("%s: undecided with %v", name, cells)
		}
		one := slices.SortedFunc(maps.Keys(cells), func(a, b result.Cell) int { return cells[b] - cells[a] })[0]
		for i := range j.comparisons {
			if c := &j.comparisons[i]; c.over[0] == one || c.under[0] == one {
				c.moments.N--
			}
		}
		if j.verdict(0) != Undecided {
			t.Errorf("%s: decided with a block less than %v", name, cells)
		}
	}
}

// TestManyLooksAtPairs: a claim whose pairs are all on the boundary is asked about after every block,
// and only the pairs that come nearest to a verdict have a next one. It is decided falsely in fewer
// than 5 % of runs.
func TestManyLooksAtPairs(t *testing.T) {
	labtest.Slow(t)
	const runs, pairs, blocks = 150, 12, 30
	for _, enough := range []string{"", holdsAny, holdsMost} {
		r := rand.New(rand.NewPCG(4, blocks))
		wrong := 0
		for range runs {
			j := decision{confidence: openConfidence, enough: enough}
			sums, squares := make([]float64, pairs), make([]float64, pairs)
			next := map[result.Cell]int{}
			for i := range pairs {
				j.comparisons = append(j.comparisons, pairOf(i, 1))
				j.comparisons[i].moments.N = 0
				next[j.comparisons[i].over[0]] = 1
			}
			for n := 1; n <= blocks && len(next) > 0 && j.verdict(0) == Undecided; n++ {
				for i := range j.comparisons {
					c := &j.comparisons[i]
					if next[c.over[0]] == 0 {
						continue
					}
					v := 0.1 * r.NormFloat64()
					sums[i], squares[i] = sums[i]+v, squares[i]+v*v
					m := &c.moments
					m.N++
					m.Mean = sums[i] / float64(m.N)
					m.SD = math.Sqrt((squares[i] - sums[i]*m.Mean) / float64(max(1, m.N-1)))
				}
				if n >= firstBlocks {
					next = j.needs(perCell)
				}
			}
			if j.verdict(0) != Undecided {
				wrong++
			}
		}
		share := float64(wrong) / runs
		t.Logf("%q: %.1f %%", enough, 100*share)
		if share > 0.05 {
			t.Errorf("%q: %.1f %% of runs decide falsely, want at most 5 %%", enough, 100*share)
		}
	}
}
