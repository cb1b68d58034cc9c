package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stopping"
)

// rankGoal orders the options and fills in the figures of each.
func rankGoal(c *dataset.Dataset, r *GoalRanking, in []goalOption) {
	if len(in) == 0 {
		return
	}
	beats := goalPairs(c, r, in)
	wins := map[Option]int{}
	for _, p := range r.Pairs {
		wins[p.Better]++
	}
	type ranked struct {
		GoalRanked
		from goalOption
	}
	var all []ranked
	r.LinkBound = r.Goal == Bandwidth
	for i, o := range in {
		p := ranked{GoalRanked{Option: o.Option, Rank: 1, RankTo: len(in), LinkBound: r.Goal == Bandwidth && o.linkBound}, o}
		for j := range in {
			p.Rank += count(beats[j][i])
			p.RankTo -= count(beats[i][j])
		}
		r.LinkBound = r.LinkBound && o.linkBound
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.RankTo, b.RankTo), cmp.Compare(wins[b.Option], wins[a.Option]), a.compare(b.Option))
	})
	profile, bases, ok := bases(c, in, r)
	if ok {
		r.Base = &Option{Network: result.HostNetwork, Profile: profile}
	}
	for i, p := range all {
		if ok {
			p.Efficiency = goalRatio(c, p.from, bases[p.Cluster], r.Settings)
		}
		if i > 0 {
			p.AgainstFirst = goalRatio(c, p.from, all[0].from, r.Settings)
		}
		r.Ranked = append(r.Ranked, p.GoalRanked)
	}
}

// goalRatio is one option against another; nil where some setting has no block
// with both.
func goalRatio(c *dataset.Dataset, a, b goalOption, settings []Setting) *estimate.Estimate {
	x := acrossSettings(a.logs, b.logs)
	if x.empty {
		return nil
	}
	e := x.estimate(c.Options.Confidence)
	s := settings[0]
	if d := c.ByCell[a.in(s.Cell)]; len(settings) == 1 && d != nil && d.Primary == s.Metric && c.Baseline(d) == c.ByCell[b.in(s.Cell)] {
		stopping.Widen(c, &e, stopping.Judged(c, d)) // this is what the stopping rule looked at
	}
	return &e
}

// goalPairs tests every pair and decides which option beats which, as pairs does
// for networks in one setting.
func goalPairs(c *dataset.Dataset, r *GoalRanking, in []goalOption) (beats [][]bool) {
	var pairings []estimate.Pairing
	var ps []float64
	each := len(in) * (len(in) - 1) / 2
	for i := range in {
		for j := i + 1; j < len(in); j++ {
			x := acrossSettings(in[i].logs, in[j].logs)
			k := estimate.Pairing{Winner: i, Loser: j}
			if x.mean < 0 {
				k, x.mean = estimate.Pairing{Winner: j, Loser: i}, -x.mean
			}
			p := GoalPair{Better: in[k.Winner].Option, Worse: in[k.Loser].Option, Ratio: x.estimate(c.Options.Confidence), P: x.test(), difference: x}
			if h, ok := x.halfwidth(1 - (1-c.Options.Confidence)/float64(each)); ok {
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
	adjusted := estimate.Holm(ps)
	beats = estimate.Decide(len(in), pairings, adjusted, c.Options.Confidence)
	for i, k := range pairings {
		r.Pairs[i].Adjusted, r.Pairs[i].Significant = adjusted[i], beats[k.Winner][k.Loser]
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
func acrossSettings(a, b [][]estimate.Point) across {
	x := across{settings: len(a)}
	var influence, weight []float64 // by block
	whole := true
	for i := range a {
		d := estimate.Differences(a[i], b[i])
		m := estimate.MomentsOf(d)
		if m.N == 0 {
			return across{empty: true, settings: len(a)}
		}
		whole = whole && m.N >= 2
		share := 1 / (float64(len(a)) * float64(m.N))
		x.mean += m.Mean / float64(len(a))
		for _, p := range d {
			for len(weight) <= p.Block {
				weight, influence = append(weight, 0), append(influence, 0)
			}
			weight[p.Block] += share
			if m.N >= 2 {
				influence[p.Block] += (p.Value - m.Mean) * share * math.Sqrt(float64(m.N)/float64(m.N-1))
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
	return estimate.TQuantile(x.blocks-1, 1-(1-confidence)/2) * x.se, true
}

// test is the p-value of "the mean is 0".
func (x across) test() float64 {
	switch {
	case !x.known(), x.se == 0 && x.mean == 0:
		return 1
	}
	return estimate.TTest(x.mean/x.se, x.blocks-1)
}

func (x across) estimate(confidence float64) estimate.Estimate {
	e := estimate.Estimate{Value: math.Exp(x.mean), N: x.seen, Method: estimate.GeometricMean}
	if x.settings > 1 {
		e.Method = estimate.MeanOverSettings
	}
	h, ok := x.halfwidth(confidence)
	if !ok {
		e.Needed = 2
		return e
	}
	e.Bound(math.Exp(x.mean-h), math.Exp(x.mean+h), confidence)
	return e
}
