package stat

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// rankGoal orders the options and fills in the figures of each.
func (c *dataset) rankGoal(r *GoalRanking, in []goalOption) {
	if len(in) == 0 {
		return
	}
	beats := c.goalPairs(r, in)
	wins := map[Option]int{}
	for _, p := range r.Pairs {
		wins[p.Better]++
	}
	type placed struct {
		GoalRanked
		from goalOption
	}
	var all []placed
	r.LinkBound = r.Goal == Bandwidth
	for i, o := range in {
		p := placed{GoalRanked{Option: o.Option, Rank: 1, RankTo: len(in), LinkBound: r.Goal == Bandwidth && o.linkBound}, o}
		for j := range in {
			p.Rank += count(beats[j][i])
			p.RankTo -= count(beats[i][j])
		}
		r.LinkBound = r.LinkBound && o.linkBound
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.RankTo, b.RankTo), cmp.Compare(wins[b.Option], wins[a.Option]), a.compare(b.Option))
	})
	profile, bases, ok := c.bases(in, r)
	if ok {
		r.Base = &Option{Network: result.HostNetwork, Profile: profile}
	}
	for i, p := range all {
		if ok {
			p.Efficiency = c.goalRatio(p.from, bases[p.Cluster], r.Settings)
		}
		if i > 0 {
			p.AgainstFirst = c.goalRatio(p.from, all[0].from, r.Settings)
		}
		r.Ranked = append(r.Ranked, p.GoalRanked)
	}
}

// goalRatio is one option against another; nil where some setting has no block
// with both.
func (c *dataset) goalRatio(a, b goalOption, settings []Setting) *Estimate {
	x := acrossSettings(a.logs, b.logs)
	if x.empty {
		return nil
	}
	e := x.estimate(c.opt.Confidence)
	s := settings[0]
	if d := c.byCell[a.in(s.Cell)]; len(settings) == 1 && d != nil && d.primary == s.Metric && c.baseline(d) == c.byCell[b.in(s.Cell)] {
		c.widen(&e, c.judged(d)) // this is what the stopping rule looked at
	}
	return &e
}

// goalPairs tests every pair and decides which option beats which, as pairs does
// for networks in one setting.
func (c *dataset) goalPairs(r *GoalRanking, in []goalOption) (beats [][]bool) {
	type pairing struct{ winner, loser int }
	var pairings []pairing
	var ps []float64
	each := len(in) * (len(in) - 1) / 2
	for i := range in {
		for j := i + 1; j < len(in); j++ {
			x := acrossSettings(in[i].logs, in[j].logs)
			k := pairing{i, j}
			if x.mean < 0 {
				k, x.mean = pairing{j, i}, -x.mean
			}
			p := GoalPair{Better: in[k.winner].Option, Worse: in[k.loser].Option, Ratio: x.estimate(c.opt.Confidence), P: x.test(), difference: x}
			if h, ok := x.halfwidth(1 - (1-c.opt.Confidence)/float64(each)); ok {
				low, high := math.Exp(x.mean-h), math.Exp(x.mean+h)
				p.Low, p.High = &low, &high
			}
			switch {
			case r.Goal == Bandwidth && in[i].linkBound && in[j].linkBound:
				p.Why, p.P = "link-bound: both fill the link", 1
			case !x.known():
				p.Why = "a setting has fewer than 2 blocks with both"
			}
			r.Pairs, pairings, ps = append(r.Pairs, p), append(pairings, k), append(ps, p.P)
		}
	}
	beats = make([][]bool, len(in))
	for i := range beats {
		beats[i] = make([]bool, len(in))
	}
	for i, adjusted := range holm(ps) {
		r.Pairs[i].Adjusted = adjusted
		beats[pairings[i].winner][pairings[i].loser] = adjusted < 1-c.opt.Confidence
	}
	conclude(beats)
	for i, k := range pairings {
		r.Pairs[i].Significant = beats[k.winner][k.loser]
	}
	return beats
}

// across is the mean over settings of the difference of two series of logs.
type across struct {
	// mean of the settings' means: each counts the same.
	mean float64
	// se is the standard error of mean, blocks the number of blocks that it is
	// worth; both are 0 where a setting has fewer than two blocks.
	se, blocks float64
	seen       int // blocks with any value
	empty      bool
	settings   int
}

// acrossSettings compares a with b inside the blocks of each setting. The
// settings' samples of one block are near in time and may go wrong together, so
// the block is what varies (a cluster): with r the differences less their
// setting's mean, S settings and n blocks in each,
//
//	se² = Σ over blocks (Σ over settings r·√(n/(n−1)) / (S·n))²
//
// which is s²/n of a paired t test where there is one setting, and that of the
// blocks' means where all settings have all blocks (Liang and Zeger 1986). The
// blocks are worth 1 / Σ(weight of a block)², their number where all are whole.
// Blocks are numbered from 0 here, without gaps.
func acrossSettings(a, b [][]point) across {
	x := across{settings: len(a)}
	var influence, weight []float64 // by block
	whole := true
	for i := range a {
		d := differencesOf(a[i], b[i])
		m := momentsOf(d)
		if m.n == 0 {
			return across{empty: true, settings: len(a)}
		}
		whole = whole && m.n >= 2
		share := 1 / (float64(len(a)) * float64(m.n))
		x.mean += m.mean / float64(len(a))
		for _, p := range d {
			for len(weight) <= p.block {
				weight, influence = append(weight, 0), append(influence, 0)
			}
			weight[p.block] += share
			if m.n >= 2 {
				influence[p.block] += (p.value - m.mean) * share * math.Sqrt(float64(m.n)/float64(m.n-1))
			}
		}
	}
	var variance, sum float64
	for i, w := range weight {
		variance += influence[i] * influence[i]
		sum += w * w
		x.seen += count(w > 0)
	}
	if whole {
		x.se, x.blocks = math.Sqrt(variance), 1/sum
	}
	return x
}

// known reports whether there is an interval.
func (x across) known() bool { return x.blocks > 1 }

// halfwidth is that of the t interval of the mean.
func (x across) halfwidth(confidence float64) (float64, bool) {
	if !x.known() {
		return 0, false
	}
	return tQuantile(x.blocks-1, 1-(1-confidence)/2) * x.se, true
}

// test is the p-value of "the mean is 0".
func (x across) test() float64 {
	switch {
	case !x.known(), x.se == 0 && x.mean == 0:
		return 1
	}
	return tTest(x.mean/x.se, x.blocks-1)
}

func (x across) estimate(confidence float64) Estimate {
	e := Estimate{Value: math.Exp(x.mean), N: x.seen, Method: GeometricMean}
	if x.settings > 1 {
		e.Method = MeanOverSettings
	}
	h, ok := x.halfwidth(confidence)
	if !ok {
		e.Needed = 2
		return e
	}
	e.bound(math.Exp(x.mean-h), math.Exp(x.mean+h), confidence)
	return e
}
