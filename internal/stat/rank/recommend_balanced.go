package rank

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// balance takes the option whose largest loss, against the best of each goal, is
// least (the minimax regret of Savage, JASA 46, 1951): no goal outweighs
// another, and no weight has to be chosen.
func (r *Recommendation) balance() {
	type candidate struct {
		Option
		loss Regret
	}
	var all []candidate
	for _, o := range r.Goals[0].Ranked {
		all = append(all, candidate{o.Option, r.loss(o.Option)})
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.loss.Share, b.loss.Share), a.compare(b.Option))
	})
	take := all[0]
	r.Take, r.WorstLoss, r.Sure = take.Option, &take.loss, true
	least, bounded := 1.0, take.loss.High != nil
	for _, c := range all {
		if c.loss.Low == nil {
			bounded = false
		} else {
			least = math.Min(least, *c.loss.Low)
		}
	}
	for _, c := range all[1:] {
		v := Alternative{Option: c.Option, WorstLoss: &c.loss, Significant: r.dominates(take.Option, c.Option) || take.loss.below(c.loss)}
		r.Others = append(r.Others, v)
		r.Sure = r.Sure && v.Significant
	}
	slices.SortStableFunc(r.Others, func(a, b Alternative) int { return cmp.Compare(count(a.Significant), count(b.Significant)) })
	if bounded {
		atMost := 0.0
		if !r.Sure {
			atMost = math.Max(0, *take.loss.High-least)
		}
		r.LossAtMost = &atMost
	}
	if !r.Sure {
		r.Settle = r.settleBalance()
	}
}

// loss is what an option loses in the goal where it loses most. The bounds of
// all options hold together with the confidence: each is drawn from the bounds
// of pairs, which are corrected for the number of goals here.
func (r *Recommendation) loss(o Option) Regret {
	out := Regret{Share: -1}
	var low, high float64
	known := true
	for _, g := range r.Goals {
		var share, from, to float64
		for _, other := range g.Ranked {
			if other.Option == o {
				continue
			}
			x, ok := g.behindLogs(o, other.Option, r.Confidence, len(r.Goals))
			known = known && ok
			share = math.Max(share, -math.Expm1(-x.mean))
			from = math.Max(from, -math.Expm1(-x.low))
			to = math.Max(to, -math.Expm1(-x.high))
		}
		if share > out.Share {
			out.Goal, out.Share = g.Goal, share
		}
		low, high = math.Max(low, from), math.Max(high, to)
	}
	if known {
		out.Low, out.High = &low, &high
	}
	return out
}

// bounds of a difference of logs.
type bounds struct{ mean, low, high float64 }

// behindLogs is how far a is behind b on the logs, with bounds that hold for all
// pairs of all goals together.
func (g GoalRanking) behindLogs(a, b Option, confidence float64, goals int) (bounds, bool) {
	p, sign := g.pair(a, b)
	mean := -sign * p.difference.mean // the pair's own is of the better, at least 0
	h, ok := p.difference.halfwidth(1 - (1-confidence)/float64(goals*len(g.Pairs)))
	return bounds{mean, mean - h, mean + h}, ok
}

// below reports whether l is surely less than m.
func (l Regret) below(m Regret) bool { return l.High != nil && m.Low != nil && *l.High < *m.Low }

// dominates reports whether a was shown better than b in every goal: then its
// worst loss is less, whatever the best is.
func (r *Recommendation) dominates(a, b Option) bool {
	for _, g := range r.Goals {
		x, ok := g.behindLogs(a, b, r.Confidence, len(r.Goals))
		if !ok || x.high >= 0 {
			return false
		}
	}
	return true
}

// settleBalance says how many blocks would part the bounds of the losses, if
// these shrink with the square root of the number of blocks about where they are.
func (r *Recommendation) settleBalance() *Settle {
	out := &Settle{Options: []Option{r.Take}}
	blocks := math.Inf(1)
	for _, g := range r.Goals {
		for _, p := range g.Pairs {
			blocks = math.Min(blocks, p.difference.blocks)
		}
	}
	most := 0.0
	for _, v := range r.Others {
		if v.Significant {
			continue
		}
		out.Options = append(out.Options, v.Option)
		if v.WorstLoss.Low == nil || r.WorstLoss.High == nil {
			out.Why = "a spread takes 2 blocks of each"
			continue
		}
		apart := v.WorstLoss.Share - r.WorstLoss.Share
		wide := (*r.WorstLoss.High - r.WorstLoss.Share) + (v.WorstLoss.Share - *v.WorstLoss.Low)
		most = math.Max(most, math.Ceil(blocks*math.Pow(wide/apart, 2)))
	}
	switch {
	case out.Why != "":
	case !(most <= MostBlocks):
		out.Why = fmt.Sprintf("with this noise no campaign of up to %d blocks; a quieter machine needs fewer", MostBlocks)
	default:
		out.Blocks = int(most)
	}
	return out
}
