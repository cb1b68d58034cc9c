package stat

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// Ranking orders the networks of one set of cells that differ in the network,
// and in its own cluster only. The baseline is not among them: efficiencies are compared with it.
type Ranking struct {
	// Group is the cells' common part: a cell without a network.
	Group result.Cell `json:"group"`
	// Metric is what was ranked: the primary one, or CPUPerByte among
	// link-bound networks.
	Metric string `json:"metric"`
	// LinkBound reports that all of them fill the link, so that this metric cannot
	// rank them: they share one rank. Where their CPU cost was measured, the
	// next Ranking is of the same group by CPUPerByte.
	LinkBound bool `json:"link_bound,omitempty"`
	// Ranked, the best first.
	Ranked []Ranked `json:"ranked"`
	// Pairs has every comparison, in the order of Ranked.
	Pairs []Pair `json:"pairs,omitempty"`
}

// Ranked is the rank of a network.
type Ranked struct {
	Network string `json:"network"`
	// Rank is 1 + the number of networks shown to be better, RankTo the number
	// of all less those shown to be worse: the ranks that the network may
	// have. Networks that are tied have ranks in common.
	Rank   int `json:"rank"`
	RankTo int `json:"rank_to"`
	// LinkBound reports that the network fills the link.
	LinkBound bool `json:"link_bound,omitempty"`
	// CPUBound reports that the busiest core of an end was at least 95 % busy.
	CPUBound bool `json:"cpu_bound,omitempty"`
	// Value is the geometric mean of the metric over its own blocks, base units.
	Value Estimate `json:"value"`
}

// Pair compares two networks inside blocks.
type Pair struct {
	// Better is the one with the better mean in the blocks that both have.
	Better string `json:"better"`
	Worse  string `json:"worse"`
	// Ratio is Better against Worse, at least 1 whichever way the metric is better.
	Ratio Estimate `json:"ratio"`
	// P is the paired t test's p-value on the logs, Adjusted that after Holm
	// over all pairs of the ranking.
	P        float64 `json:"p"`
	Adjusted float64 `json:"adjusted"`
	// Significant: the difference is beyond chance, or follows from such (see conclude).
	Significant bool `json:"told_apart"`
	// Why says why the pair was not tested; "" where it was.
	Why string `json:"why,omitempty"`
}

// rankings ranks every group of at least two networks that were measured.
func (c *dataset) rankings(a Analysis) []Ranking {
	groups, order := c.ranked()
	var out []Ranking
	for _, g := range order {
		metric := a.Cells[groups[g][0]].Primary
		r := c.rank(a, g, metric, groups[g])
		if len(r.Ranked) < 2 {
			continue
		}
		out = append(out, r)
		if cpu := c.rank(a, g, CPUPerByte, linkBoundOnly(a, groups[g])); len(cpu.Ranked) > 1 {
			out = append(out, cpu)
		}
	}
	return out
}

// ranked are the cells that are ranked with each other, as indexes, by what they have in
// common, and the groups in order.
func (c *dataset) ranked() (groups map[result.Cell][]int, order []result.Cell) {
	groups = map[result.Cell][]int{}
	for i, d := range c.cells {
		if !isRanked(d.cell) || len(d.ok) == 0 {
			continue
		}
		g := rankedWith(d.cell)
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], i)
	}
	return groups, order
}

// isRanked reports whether rankings compare a cell's network with others.
func isRanked(c result.Cell) bool {
	return !c.IsBaseline() && !result.IsLadderOnly(c.Network) && !c.IsPair()
}

// rankedWith is what a cell has in common with those that it is ranked with.
func rankedWith(c result.Cell) result.Cell {
	c.Network, c.Cluster = "", ""
	return c
}

func linkBoundOnly(a Analysis, members []int) []int {
	var out []int
	for _, i := range members {
		if a.Cells[i].LinkBound {
			out = append(out, i)
		}
	}
	return out
}

// rankedNetwork is a network in a ranking, with what was measured of it.
type rankedNetwork struct {
	Ranked
	series []point
}

// rank orders the members, indexes of a.Cells, by a metric.
func (c *dataset) rank(a Analysis, group result.Cell, metric string, members []int) Ranking {
	r := Ranking{Group: group, Metric: metric, LinkBound: metric != CPUPerByte}
	var in []rankedNetwork
	for _, i := range members {
		s := a.Cells[i]
		series := c.cells[i].series(metric) // a.Cells and c.cells are in one order
		if ls := logs(series, 0); len(ls) > 0 {
			in = append(in, rankedNetwork{Ranked{Network: s.Cell.Network, LinkBound: s.LinkBound, CPUBound: s.CPUBound,
				Value: c.tables.geometricMean(ls)}, series})
			r.LinkBound = r.LinkBound && s.LinkBound
		}
	}
	better := c.better[metric]
	slices.SortFunc(in, func(x, y rankedNetwork) int {
		return cmp.Or(cmp.Compare(goodness(math.Log(y.Value.Value), better), goodness(math.Log(x.Value.Value), better)),
			cmp.Compare(x.Network, y.Network))
	})
	var beats [][]bool
	r.Pairs, beats = c.pairs(in, metric)
	for i := range in {
		one := in[i].Ranked
		one.Rank, one.RankTo = 1, len(in)
		for j := range in {
			if beats[j][i] {
				one.Rank++
			}
			if beats[i][j] {
				one.RankTo--
			}
		}
		r.Ranked = append(r.Ranked, one)
	}
	slices.SortStableFunc(r.Ranked, func(x, y Ranked) int {
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.RankTo, y.RankTo))
	})
	return r
}

// pairs tests every pair and decides which network beats which.
func (c *dataset) pairs(in []rankedNetwork, metric string) (pairs []Pair, beats [][]bool) {
	var pairings []pairing
	var ps []float64
	for i := range in {
		for j := i + 1; j < len(in); j++ {
			ratios := logRatios(in[i].series, in[j].series, c.better[metric])
			m := momentsOf(ratios)
			k := pairing{i, j}
			if m.mean < 0 {
				k = pairing{j, i}
				ratios = negated(ratios)
			}
			p := Pair{Better: in[k.winner].Network, Worse: in[k.loser].Network, Ratio: c.tables.geometricMean(ratios), P: pairedT(m)}
			switch {
			case metric != CPUPerByte && in[i].LinkBound && in[j].LinkBound:
				p.Why, p.P = "link-bound: both fill the link", 1
			case m.n < 2:
				p.Why = "fewer than 2 blocks have both"
			}
			pairs, pairings, ps = append(pairs, p), append(pairings, k), append(ps, p.P)
		}
	}
	adjusted := holm(ps)
	beats = c.decide(len(in), pairings, adjusted)
	for i, k := range pairings {
		pairs[i].Adjusted, pairs[i].Significant = adjusted[i], beats[k.winner][k.loser]
	}
	return pairs, beats
}

// pairing is two of several networks, by their indexes; the winner is the one with the
// better mean.
type pairing struct{ winner, loser int }

// decide returns which of n networks beats which, from the p-values after Holm.
func (c *dataset) decide(n int, pairings []pairing, adjusted []float64) (beats [][]bool) {
	beats = make([][]bool, n)
	for i := range beats {
		beats[i] = make([]bool, n)
	}
	for i, k := range pairings {
		beats[k.winner][k.loser] = adjusted[i] < 1-c.opt.Confidence
	}
	conclude(beats)
	return beats
}

// conclude adds what follows: who beats one that beats a third beats the third.
// All decisions are right together with the confidence asked for, and then so
// is what follows from them. Two that would beat each other, which needs pairs
// that were measured in different blocks, are tied.
func conclude(beats [][]bool) {
	for k := range beats {
		for i := range beats {
			for j := range beats {
				beats[i][j] = beats[i][j] || beats[i][k] && beats[k][j]
			}
		}
	}
	for i := range beats {
		for j := range i + 1 {
			if beats[i][j] && beats[j][i] {
				beats[i][j], beats[j][i] = false, false
			}
		}
	}
}

func negated(points []point) []point {
	for i := range points {
		points[i].value = -points[i].value
	}
	return points
}
