package rank

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
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
	AgainstReference *estimate.Estimate `json:"against_reference,omitempty"`
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

// FactorRankings compares the levels of every factor that varies, where no more
// than one network was measured.
func FactorRankings(c *dataset.Dataset) []FactorRanking {
	network := ""
	for _, d := range c.Cells {
		if len(d.OK) == 0 || !isOption(d.Cell) {
			continue
		}
		if result.OneName(d.Cell.Network) != d.Cell.Network {
			return nil // a null test asks nothing of factors
		}
		if n := d.Cell.Network; n != result.HostNetwork {
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
			if r, ok := factorRanking(c, f, g, network); ok {
				out = append(out, r)
			}
		}
	}
	return out
}

// factorRanking compares the levels of one factor where all others have the
// levels that the headline covers; ok is false where fewer than two levels were
// measured there.
func factorRanking(c *dataset.Dataset, f result.Factor, g Goal, network string) (r FactorRanking, ok bool) {
	var all []result.Cell
	for _, d := range c.Cells {
		if d.Cell.Network == network && isOption(d.Cell) && goalMetric(g, d) != "" {
			all = append(all, d.Cell)
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
		if r, ok = levels(c, f, g, members); ok {
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
func levels(c *dataset.Dataset, f result.Factor, g Goal, members []result.Cell) (FactorRanking, bool) {
	slices.SortStableFunc(members, func(a, b result.Cell) int { return compareLevel(f, a, b) })
	r := FactorRanking{Factor: f.Name, Goal: g}
	if f.Compare(members[0], members[len(members)-1]) == 0 {
		return r, false
	}
	var names []string
	var logged [][][]estimate.Point
	for i := 0; i < len(members); {
		level, from := members[i], i
		for i < len(members) && f.Compare(members[i], level) == 0 {
			i++
		}
		if from == 0 {
			r.Settings = settingsAt(c, g, members[:i])
		}
		if ls, ok := levelLogs(c, f, r.Settings, level); ok {
			names, logged = append(names, levelOf(f, level)), append(logged, ls)
		}
	}
	if len(names) < 2 {
		return r, false
	}
	ranks := rankLogs(c, logged)
	for i, name := range names {
		l := Level{Level: name, Rank: ranks[i][0], RankTo: ranks[i][1]}
		if i > 0 {
			if x := acrossSettings(logged[i], logged[0]); !x.empty {
				e := x.estimate(c.Options.Confidence)
				l.AgainstReference = &e
			}
		}
		r.Levels = append(r.Levels, l)
	}
	return r, true
}

// settingsAt are the settings of the cells of one level.
func settingsAt(c *dataset.Dataset, g Goal, cells []result.Cell) []Setting {
	var out []Setting
	for _, cell := range cells {
		out = append(out, Setting{cell, goalMetric(g, c.ByCell[cell])})
	}
	return out
}

// levelLogs are the logs of one level in each setting; ok is false where it was
// not measured in one of them.
func levelLogs(c *dataset.Dataset, f result.Factor, settings []Setting, level result.Cell) ([][]estimate.Point, bool) {
	var out [][]estimate.Point
	for _, s := range settings {
		cell := s.Cell
		f.Copy(&cell, level)
		d := c.ByCell[cell]
		if d == nil || !has(d, s.Metric) {
			return nil, false
		}
		out = append(out, goodnessLogs(c, d, s.Metric))
	}
	return out, true
}

// rankLogs gives each of several series the first and the last rank that it may
// hold: every pair is tested inside blocks, Holm-corrected.
func rankLogs(c *dataset.Dataset, logged [][][]estimate.Point) [][2]int {
	var pairs []estimate.Pairing
	var ps []float64
	for i := range logged {
		for j := i + 1; j < len(logged); j++ {
			x, p := acrossSettings(logged[i], logged[j]), estimate.Pairing{Winner: i, Loser: j}
			if x.mean < 0 {
				p = estimate.Pairing{Winner: j, Loser: i}
			}
			pairs, ps = append(pairs, p), append(ps, x.test())
		}
	}
	beats := estimate.Decide(len(logged), pairs, estimate.Holm(ps), c.Options.Confidence)
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
