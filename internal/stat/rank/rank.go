// Package rank compares what can be chosen: networks in each situation, networks and
// profiles for a goal or a job, levels of a factor. From these it recommends. It is pure.
package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
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
	// next Ranking ranks the same group by CPUPerByte.
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
	Value estimate.Estimate `json:"value"`
}

// Pair compares two networks inside blocks.
type Pair struct {
	// Better is the one with the better mean in the blocks that both have.
	Better string `json:"better"`
	Worse  string `json:"worse"`
	// Ratio is Better against Worse, at least 1 whichever way the metric is better.
	Ratio estimate.Estimate `json:"ratio"`
	// P is the paired t test's p-value on the logs, Adjusted that after Holm
	// over all pairs of the ranking.
	P        float64 `json:"p"`
	Adjusted float64 `json:"adjusted"`
	// Significant: the difference is beyond chance, or follows from such (see estimate.Decide).
	Significant bool `json:"significant"`
	// Why says why the pair was not tested; "" where it was.
	Why string `json:"why,omitempty"`
}

// Rankings ranks every group of at least two networks that were measured.
func Rankings(c *dataset.Dataset) []Ranking {
	groups, order := ranked(c)
	var out []Ranking
	for _, g := range order {
		metric := groups[g][0].Primary
		r := rank(c, g, metric, groups[g])
		if len(r.Ranked) < 2 {
			continue
		}
		out = append(out, r)
		if cpu := rank(c, g, dataset.CPUPerByte, linkBoundOnly(c, groups[g])); len(cpu.Ranked) > 1 {
			out = append(out, cpu)
		}
	}
	return out
}

// ranked are the cells that are ranked with each other, by what they have in common, and
// the groups in order.
func ranked(c *dataset.Dataset) (groups map[result.Cell][]*dataset.CellData, order []result.Cell) {
	groups = map[result.Cell][]*dataset.CellData{}
	for _, d := range c.Cells {
		if !dataset.IsRanked(d.Cell) || len(d.OK) == 0 {
			continue
		}
		g := dataset.RankedWith(d.Cell)
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], d)
	}
	return groups, order
}

func linkBoundOnly(c *dataset.Dataset, members []*dataset.CellData) []*dataset.CellData {
	var out []*dataset.CellData
	for _, d := range members {
		if _, bound := c.LinkBound(d); bound {
			out = append(out, d)
		}
	}
	return out
}

// rankedNetwork is a network in a ranking, with what was measured of it.
type rankedNetwork struct {
	Ranked
	series []estimate.Point
}

// rank orders the members by a metric.
func rank(c *dataset.Dataset, group result.Cell, metric string, members []*dataset.CellData) Ranking {
	r := Ranking{Group: group, Metric: metric, LinkBound: metric != dataset.CPUPerByte}
	var in []rankedNetwork
	for _, d := range members {
		series := d.Series(metric)
		if ls := estimate.Logs(series, 0); len(ls) > 0 {
			_, bound := c.LinkBound(d)
			in = append(in, rankedNetwork{Ranked{Network: d.Cell.Network, LinkBound: bound, CPUBound: dataset.CPUBound(d),
				Value: c.Tables.GeometricMean(ls)}, series})
			r.LinkBound = r.LinkBound && bound
		}
	}
	better := c.Better[metric]
	slices.SortFunc(in, func(x, y rankedNetwork) int {
		return cmp.Or(cmp.Compare(estimate.Goodness(math.Log(y.Value.Value), better), estimate.Goodness(math.Log(x.Value.Value), better)),
			cmp.Compare(x.Network, y.Network))
	})
	var beats [][]bool
	r.Pairs, beats = pairs(c, in, metric)
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
func pairs(c *dataset.Dataset, in []rankedNetwork, metric string) (pairs []Pair, beats [][]bool) {
	var pairings []estimate.Pairing
	var ps []float64
	for i := range in {
		for j := i + 1; j < len(in); j++ {
			ratios := estimate.LogRatios(in[i].series, in[j].series, c.Better[metric])
			m := estimate.MomentsOf(ratios)
			k := estimate.Pairing{Winner: i, Loser: j}
			if m.Mean < 0 {
				k = estimate.Pairing{Winner: j, Loser: i}
				ratios = negated(ratios)
			}
			p := Pair{Better: in[k.Winner].Network, Worse: in[k.Loser].Network, Ratio: c.Tables.GeometricMean(ratios), P: estimate.PairedT(m)}
			switch {
			case metric != dataset.CPUPerByte && in[i].LinkBound && in[j].LinkBound:
				p.Why, p.P = "link-bound: both fill the link", 1
			case m.N < 2:
				p.Why = "fewer than 2 blocks have both"
			}
			pairs, pairings, ps = append(pairs, p), append(pairings, k), append(ps, p.P)
		}
	}
	adjusted := estimate.Holm(ps)
	beats = estimate.Decide(len(in), pairings, adjusted, c.Options.Confidence)
	for i, k := range pairings {
		pairs[i].Adjusted, pairs[i].Significant = adjusted[i], beats[k.Winner][k.Loser]
	}
	return pairs, beats
}

func negated(points []estimate.Point) []estimate.Point {
	for i := range points {
		points[i].Value = -points[i].Value
	}
	return points
}
