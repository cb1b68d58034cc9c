package stat

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// FactorRanking compares the levels of one factor (profile, MTU, message size …)
// with its reference level, for one goal and one network. A campaign that
// measured no more than one network has them: they are its answer.
type FactorRanking struct {
	// Factor is its name in records: "profile", "mtu", "message_bytes".
	Factor string `json:"factor"`
	// Network is the one that was measured with all levels; Cluster is absent
	// where the testbed is none, and where it is the factor itself.
	Network string `json:"network"`
	Cluster string `json:"cluster,omitempty"`
	Goal    Goal   `json:"goal"`
	// Settings are what was measured at every level; the factor has its
	// reference level in them.
	Settings []Setting `json:"settings"`
	// Levels, the reference first, then in the order of their values.
	Levels []Level `json:"levels"`
}

// Level is one level of a factor.
type Level struct {
	// Level is its value in words: "kernel_optimizations", "9000".
	Level string `json:"level"`
	// Rank and RankTo are the ranks that it may hold (see Ranked).
	Rank   int `json:"rank"`
	RankTo int `json:"rank_to"`
	// AgainstReference is against the reference level, more is better; nil for
	// the reference itself.
	AgainstReference *Estimate `json:"against_reference,omitempty"`
}

// levelFactors are the factors whose levels are compared, in the order of the report.
func levelFactors() []result.Factor {
	return result.FactorsBy(func(o result.Order) int { return o.Levels })
}

// compareLevel orders two cells by the level of a factor, the reference first.
func compareLevel(f result.Factor, a, b result.Cell) int {
	return cmp.Or(compareBool(f.IsReference(a), f.IsReference(b)), f.Compare(a, b))
}

// levelOf is a cell's level of a factor in words of this program: a switch is on or
// off, an absent number 0.
func levelOf(f result.Factor, c result.Cell) string {
	text := f.Text(c)
	switch {
	case f.IsSwitch() && text == "":
		return "off"
	case f.IsSwitch():
		return "on"
	case text == "" && !f.IsText():
		return "0"
	}
	return text
}

// factorRankings compares the levels of every factor that varies, where no more
// than one network was measured.
func (c *dataset) factorRankings() []FactorRanking {
	network := ""
	for _, d := range c.cells {
		if len(d.ok) == 0 || !isOption(d.cell) {
			continue
		}
		if result.OneName(d.cell.Network) != d.cell.Network {
			return nil // a null test asks nothing of factors
		}
		if n := d.cell.Network; n != result.HostNetwork {
			if network != "" && n != network {
				return nil
			}
			network = n
		}
	}
	network = cmp.Or(network, result.HostNetwork)
	var out []FactorRanking
	for _, f := range levelFactors() {
		for _, g := range measuredGoals() {
			if r, ok := c.factorRanking(f, g, network); ok {
				out = append(out, r)
			}
		}
	}
	return out
}

// factorRanking compares the levels of one factor where all others have the
// levels that the headline covers; ok is false where fewer than two levels were
// measured there.
func (c *dataset) factorRanking(f result.Factor, g Goal, network string) (r FactorRanking, ok bool) {
	var all []result.Cell
	for _, d := range c.cells {
		if d.cell.Network == network && isOption(d.cell) && goalMetric(g, d) != "" {
			all = append(all, d.cell)
		}
	}
	// The cells of one candidate differ in the factor, the message size and the
	// streams alone.
	rest := func(cell, like result.Cell) result.Cell {
		f.Copy(&cell, like)
		cell.MessageBytes, cell.ResponseBytes, cell.Streams = 0, 0, 0
		return cell
	}
	slices.SortFunc(all, compareScopes(g))
	for _, reference := range all {
		var members []result.Cell
		for _, cell := range all {
			if rest(cell, reference) == rest(reference, reference) {
				members = append(members, cell)
			}
		}
		if r, ok = c.levels(f, g, members); ok {
			r.Network = network
			if f.Name != "cluster" {
				r.Cluster = reference.Cluster
			}
			return r, true
		}
	}
	return r, false
}

// levels ranks the levels of a factor over the settings that the reference
// level was measured in; a level that lacks one of them is left out.
func (c *dataset) levels(f result.Factor, g Goal, members []result.Cell) (FactorRanking, bool) {
	slices.SortStableFunc(members, func(a, b result.Cell) int { return compareLevel(f, a, b) })
	r := FactorRanking{Factor: f.Name, Goal: g}
	if f.Compare(members[0], members[len(members)-1]) == 0 {
		return r, false
	}
	var names []string
	var logged [][][]point
	for i := 0; i < len(members); {
		level, from := members[i], i
		for i < len(members) && f.Compare(members[i], level) == 0 {
			i++
		}
		if from == 0 {
			r.Settings = c.settingsAt(g, members[:i])
		}
		if ls, ok := c.levelLogs(f, r.Settings, level); ok {
			names, logged = append(names, levelOf(f, level)), append(logged, ls)
		}
	}
	if len(names) < 2 {
		return r, false
	}
	ranks := c.rankLogs(logged)
	for i, name := range names {
		l := Level{Level: name, Rank: ranks[i][0], RankTo: ranks[i][1]}
		if i > 0 {
			if x := acrossSettings(logged[i], logged[0]); !x.empty {
				e := x.estimate(c.opt.Confidence)
				l.AgainstReference = &e
			}
		}
		r.Levels = append(r.Levels, l)
	}
	return r, true
}

// settingsAt are the settings of the cells of one level.
func (c *dataset) settingsAt(g Goal, cells []result.Cell) []Setting {
	var out []Setting
	for _, cell := range cells {
		out = append(out, Setting{cell, goalMetric(g, c.byCell[cell])})
	}
	return out
}

// levelLogs are the logs of one level in each setting; ok is false where it was
// not measured in one of them.
func (c *dataset) levelLogs(f result.Factor, settings []Setting, level result.Cell) ([][]point, bool) {
	var out [][]point
	for _, s := range settings {
		cell := s.Cell
		f.Copy(&cell, level)
		d := c.byCell[cell]
		if d == nil || !d.has(s.Metric) {
			return nil, false
		}
		out = append(out, c.goodnessLogs(d, s.Metric))
	}
	return out, true
}

// rankLogs gives each of several series the first and the last rank that it may
// hold: every pair is tested inside blocks, Holm-corrected.
func (c *dataset) rankLogs(logged [][][]point) [][2]int {
	type pair struct{ better, worse int }
	var pairs []pair
	var ps []float64
	for i := range logged {
		for j := i + 1; j < len(logged); j++ {
			x, p := acrossSettings(logged[i], logged[j]), pair{i, j}
			if x.mean < 0 {
				p = pair{j, i}
			}
			pairs, ps = append(pairs, p), append(ps, x.test())
		}
	}
	beats := make([][]bool, len(logged))
	for i := range beats {
		beats[i] = make([]bool, len(logged))
	}
	for i, adjusted := range holm(ps) {
		beats[pairs[i].better][pairs[i].worse] = adjusted < 1-c.opt.Confidence
	}
	conclude(beats)
	out := make([][2]int, len(logged))
	for i := range logged {
		out[i] = [2]int{1, len(logged)}
		for j := range logged {
			out[i][0] += count(beats[j][i])
			out[i][1] -= count(beats[i][j])
		}
	}
	return out
}
