package paper

import (
	"cmp"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

// pairNeed is that a pair has some blocks more than it has.
type pairNeed struct {
	pair, blocks int
}

// cellsOf are the blocks that the cells of pairs need.
func (j decision) cellsOf(pairs []pairNeed) map[result.Cell]int {
	out := map[result.Cell]int{}
	for _, p := range pairs {
		for _, c := range slices.Concat(j.comparisons[p.pair].over, j.comparisons[p.pair].under) {
			out[c] = max(out[c], p.blocks)
		}
	}
	return out
}

// needs are the blocks of each cell that decide a claim at the least cost, if means and spreads
// stay what they are; nil where no number of blocks would. A pair that contradicts the claim is
// enough where all have to hold: the others need no more blocks then. Nor do those that show
// already what the claim says.
func (j decision) needs(cost func(map[result.Cell]int) time.Duration) map[result.Cell]int {
	var best map[result.Cell]int
	for _, want := range []Outcome{Contradicted, Reproduced} {
		pairs, possible := j.cheapest(want, cost)
		if !possible {
			continue
		}
		if cells := j.cellsOf(pairs); best == nil || cost(cells) < cost(best) {
			best = cells
		}
	}
	return best
}

// cheapest are the pairs that would give a claim a verdict if they had some blocks more.
func (j decision) cheapest(want Outcome, cost func(map[result.Cell]int) time.Duration) (pairs []pairNeed, possible bool) {
	costs := map[int]time.Duration{}
	shown := 0
	for i, c := range j.comparisons {
		if j.shows(c, 0) == want {
			shown++
			continue
		}
		if n := fewest(func(more int) bool { return j.shows(c, more) == want }); n > 0 {
			one := pairNeed{i, n}
			costs[i] = cost(j.cellsOf([]pairNeed{one}))
			pairs = append(pairs, one)
		}
	}
	n := j.enoughFor(want) - shown
	if n > len(pairs) {
		return nil, false
	}
	slices.SortStableFunc(pairs, func(a, b pairNeed) int { return cmp.Compare(costs[a.pair], costs[b.pair]) })
	return pairs[:max(0, n)], true
}

// enoughFor is how many pairs have to show something for a verdict of the whole claim; more than
// there are where pairs are missing.
func (j decision) enoughFor(want Outcome) int {
	n, all := len(j.comparisons), len(j.comparisons)+j.lost
	never := n + 1
	if want == Contradicted {
		switch {
		case j.enough == holdsAny:
			return all
		case j.enough != holdsMost:
			return 1
		case j.uncounted:
			return never
		}
		return (all + 1) / 2
	}
	switch {
	case j.enough == holdsAny:
		return 1
	case j.enough != holdsMost && j.lacking:
		return n
	case j.enough != holdsMost:
		return all
	case j.lacking:
		return n/2 + 1
	case j.uncounted:
		return never
	}
	return all/2 + 1
}

// undecided are the pairs that show nothing, with some blocks.
func (j decision) undecided(blocks int) []pairNeed {
	var out []pairNeed
	for i, c := range j.comparisons {
		if j.shows(c, 0) == Undecided {
			out = append(out, pairNeed{i, blocks})
		}
	}
	return out
}

// fewest is the least number, from 1 on, that is enough; 0 where none is.
func fewest(enough func(int) bool) int {
	high := 1
	for ; !enough(high); high *= 2 {
		if high > mostBlocks {
			return 0
		}
	}
	low := high / 2 // not enough, or 0
	for low+1 < high {
		if mid := (low + high) / 2; !enough(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
