package rank

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

// scopeOf is what all settings of one headline figure have in common: every
// factor except the network with its profile and cluster, the message size and
// the number of streams. Figures are averaged inside a scope only, so one
// figure never covers two paths, links, MTUs or workloads.
func scopeOf(c result.Cell) result.Cell {
	c = settingOf(c)
	c.MessageBytes, c.ResponseBytes, c.Streams = 0, 0, 0
	return c
}

// GoalRankings ranks for every goal that the campaign measured: first the headline of
// each goal, then the goals of all other scopes. Networks compared with
// themselves (a null test) are not ranked, and implausible cells are left out.
func GoalRankings(c *dataset.Dataset, implausible map[result.Cell]bool) (headline, others []GoalRanking) {
	for _, d := range c.Cells {
		if result.OneName(d.Cell.Network) != d.Cell.Network {
			return nil, nil
		}
	}
	for _, g := range measuredGoals() {
		for i, scope := range scopes(c, g) {
			r := goal(c, g, func(cell result.Cell) bool { return scopeOf(cell) == scope }, implausible)
			if i == 0 {
				headline = append(headline, r)
			} else {
				others = append(others, r)
			}
		}
	}
	return headline, others
}

// scopes are those in which a goal was measured, the headline's first.
func scopes(c *dataset.Dataset, g Goal) []result.Cell {
	var out []result.Cell
	for _, d := range c.Cells {
		if d.Cell.IsBaseline() || !isOption(d.Cell) || goalMetric(g, d) == "" {
			continue
		}
		if s := scopeOf(d.Cell); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, compareScopes(g))
	return out
}

// onOnePath narrows what is wanted to the path of the goal's headline: figures
// between nodes and inside a node are not averaged.
func onOnePath(c *dataset.Dataset, g Goal, wants func(result.Cell) bool) func(result.Cell) bool {
	var first *result.Cell
	compare := compareScopes(g)
	for _, d := range c.Cells {
		cell := d.Cell
		if cell.IsBaseline() || !isOption(cell) || !wants(cell) || goalMetric(g, d) == "" {
			continue
		}
		if first == nil || compare(cell, *first) < 0 {
			first = &cell
		}
	}
	return func(cell result.Cell) bool {
		return wants(cell) && (first == nil || cell.Placement == first.Placement && cell.Path == first.Path)
	}
}

// isOption reports whether a cell belongs to a network that users can choose:
// steps of ladders and pairs of nodes have sections of their own.
func isOption(c result.Cell) bool { return !result.IsLadderOnly(c.Network) && !c.IsPair() }

// goalMetric is the metric by which a cell is judged for a goal; "" where it has none.
func goalMetric(g Goal, d *dataset.CellData) string {
	if len(d.OK) == 0 {
		return ""
	}
	for _, m := range goalMetrics(g, d) {
		if has(d, m) {
			return m
		}
	}
	return ""
}

// compareScopes gives an order that puts the scope that a headline should cover first: between
// nodes, from pod to pod, the workload made for the goal, and the reference
// level of every other factor.
func compareScopes(g Goal) func(a, b result.Cell) int {
	levels := levelFactors()
	return func(a, b result.Cell) int {
		if n := cmp.Or(
			compareBool(a.Placement == result.InterHost, b.Placement == result.InterHost),
			compareBool(a.Path == result.PathPodToPod, b.Path == result.PathPodToPod),
			cmp.Compare(workloadOrder(g, a.Workload), workloadOrder(g, b.Workload)),
		); n != 0 {
			return n
		}
		for _, f := range levels {
			if n := compareLevel(f, a, b); n != 0 {
				return n
			}
		}
		return a.Compare(b)
	}
}

// workloadOrder is the position of a workload in the choice of a goal's headline.
func workloadOrder(g Goal, workload string) int {
	order := []string{"tcp_stream", "udp_stream", "tcp_rr", "udp_rr"}
	if g == Latency {
		order = []string{"tcp_rr", "udp_rr"}
	}
	if i := slices.Index(order, workload); i >= 0 {
		return i
	}
	return len(order)
}

// compareBool orders true before false.
func compareBool(a, b bool) int { return count(b) - count(a) }

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
