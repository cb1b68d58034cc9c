package comparison

import (
	"math"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// Needs is how long the next run must be to decide a cell at the threshold, if change
// and spread stay what they are.
type Needs struct {
	// Blocks is the number of blocks of the new side; with BaseToo, of each side.
	Blocks int `json:"blocks"`
	// Seconds is how long so many blocks of the new side took; 0: unknown.
	Seconds float64 `json:"seconds,omitempty"`
	// BaseToo: the base is too short. No length of the new side decides alone.
	BaseToo bool `json:"base_too,omitempty"`
}

// mostBlocks bounds estimates: a run of more blocks is out of reach.
const mostBlocks = 1_000_000

// needs sets Needs of each cell that cannot be decided although both sides measured it.
func (c *Comparison) needs(blockSeconds float64) {
	tested := 0
	for _, x := range c.Cells {
		if x.Change != nil {
			tested++
		}
	}
	for i := range c.Cells {
		x := &c.Cells[i]
		if x.Verdict != CannotTell || x.x.N < 2 || x.y.N < 2 {
			continue
		}
		// Inside the threshold the whole interval must come to lie inside it; outside,
		// the change must be significant after Holm, at worst as the smallest p-value.
		limit, diff := math.Log1p(c.Threshold), math.Abs(x.y.Mean-x.x.Mean)
		distance, alpha := limit-diff, 1-c.Confidence
		if diff > limit {
			distance, alpha = diff, alpha/float64(tested)
		}
		x.Needs = blocksToDecide(x.x, x.y, distance, alpha)
		if x.Needs != nil {
			x.Needs.Seconds = blockSeconds * float64(x.Needs.Blocks)
		}
	}
}

// blocksToDecide is the least number of blocks at which Welch's half-width of y − x at
// the level alpha is within a distance of logs: first with the base as it is, then with
// as many on both sides. Nil: more than mostBlocks.
func blocksToDecide(x, y estimate.Moments, distance, alpha float64) *Needs {
	within := func(nx, ny int) bool {
		vx, vy := x.SD*x.SD/float64(nx), y.SD*y.SD/float64(ny)
		if vx+vy == 0 {
			return distance > 0
		}
		dof := (vx + vy) * (vx + vy) / (vx*vx/float64(nx-1) + vy*vy/float64(ny-1))
		return estimate.TQuantile(dof, 1-alpha/2)*math.Sqrt(vx+vy) <= distance
	}
	for _, baseToo := range []bool{false, true} {
		enough := func(n int) bool {
			if baseToo {
				return within(n, n)
			}
			return within(x.N, n)
		}
		// Ten times the base's blocks gain little: then the base is what limits.
		low, most := x.N+1, mostBlocks
		if !baseToo {
			low, most = y.N+1, 10*max(x.N, y.N)
		}
		if n, ok := leastBlocks(low, most, enough); ok {
			return &Needs{Blocks: n, BaseToo: baseToo}
		}
	}
	return nil
}

// leastBlocks is the least number from low to high that is enough, by bisection.
func leastBlocks(low, high int, enough func(n int) bool) (int, bool) {
	if low > high || !enough(high) {
		return 0, false
	}
	for low < high {
		if mid := (low + high) / 2; enough(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low, true
}

// secondsPerBlock is how long a block took, from the start of the first to that of the
// last; 0 where there is only one.
func secondsPerBlock(samples []result.Sample) float64 {
	began := map[int]time.Time{}
	first, last := math.MaxInt, 0
	for i := range samples {
		s := &samples[i]
		if s.Block < 1 || s.Started.IsZero() {
			continue
		}
		if t, ok := began[s.Block]; !ok || s.Started.Before(t) {
			began[s.Block] = s.Started
		}
		first, last = min(first, s.Block), max(last, s.Block)
	}
	if last <= first {
		return 0
	}
	return max(0, began[last].Sub(began[first]).Seconds()/float64(last-first))
}

// Undecided lists the cells that CannotTell.
func (c Comparison) Undecided() []Cell {
	var out []Cell
	for _, x := range c.Cells {
		if x.Verdict == CannotTell {
			out = append(out, x)
		}
	}
	return out
}
