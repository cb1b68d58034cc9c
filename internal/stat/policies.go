package stat

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// PolicySweep is what each further policy costs, of cells that differ in nothing
// but their number.
type PolicySweep struct {
	// Cell is the one with the fewest, Policies are all numbers measured.
	Cell     result.Cell `json:"cell"`
	Policies []int       `json:"policies"`
	// Cost is the derived metric whose slope it is.
	Cost string `json:"cost"`
	// PerPolicy is the cost of one more policy, PerRule that of one more rule that
	// a packet is checked against on its whole way; nil where that was not counted, and
	// where their number does not grow with the policies (RulesPerPacket).
	PerPolicy estimate.Estimate  `json:"per_policy"`
	PerRule   *estimate.Estimate `json:"per_rule,omitempty"`
	// RulesPerPacket is how many rules a packet was checked against on its way, the fewest
	// and the most of all numbers of policies; nil where that was not counted.
	RulesPerPacket *[2]float64 `json:"rules_per_packet,omitempty"`
}

// policySweeps fits a line through the costs of each block and takes the mean of
// the blocks' slopes: what drifts from block to block is in none of them.
func policySweeps(c *dataset.Dataset) []PolicySweep {
	byCell := map[result.Cell][]*dataset.CellData{}
	var order []result.Cell
	for _, d := range c.Cells {
		if len(d.OK) == 0 {
			continue
		}
		k := d.Cell
		k.Policies = 0
		if byCell[k] == nil {
			order = append(order, k)
		}
		byCell[k] = append(byCell[k], d)
	}
	var out []PolicySweep
	for _, k := range dataset.SortedCells(order) {
		if all := byCell[k]; len(all) > 1 {
			if s, ok := policySweep(c, all); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

func policySweep(c *dataset.Dataset, cells []*dataset.CellData) (PolicySweep, bool) {
	slices.SortFunc(cells, func(a, b *dataset.CellData) int { return a.Cell.Policies - b.Cell.Policies })
	s := PolicySweep{Cell: cells[0].Cell}
	for _, d := range cells {
		s.Policies = append(s.Policies, d.Cell.Policies)
	}
	for _, work := range []string{"transaction", "packet", "byte"} {
		for _, cost := range []string{"instructions", "own_cpu_seconds", "cpu_seconds"} {
			s.Cost = cost + "_per_" + work
			slopes := blockSlopes(cells, s.Cost, func(d *dataset.CellData, _ dataset.Record) (float64, bool) { return float64(d.Cell.Policies), true })
			if len(slopes) == 0 {
				continue
			}
			s.PerPolicy = c.Tables.Mean(slopes)
			s.RulesPerPacket = rulesMet(cells)
			if s.RulesPerPacket == nil || s.RulesPerPacket[1]-s.RulesPerPacket[0] < leastMoreRules {
				return s, true
			}
			if perRule := blockSlopes(cells, s.Cost, rulesOfTheWay); len(perRule) > 0 {
				e := c.Tables.Mean(perRule)
				s.PerRule = &e
			}
			return s, true
		}
	}
	return s, false
}

// leastMoreRules is how many more rules must check a packet with the most policies
// than with the fewest for a slope over them: what passes by the first rules, as all
// packets of a connection but the first do, is checked by the same however many follow.
const leastMoreRules = 2

// rulesMet is the fewest and the most rules of the way, by the medians of cells; nil
// where one of them has no count.
func rulesMet(cells []*dataset.CellData) *[2]float64 {
	met := [2]float64{math.Inf(1), math.Inf(-1)}
	for _, d := range cells {
		var all []float64
		for _, r := range d.OK {
			if v, ok := rulesOfTheWay(d, r); ok {
				all = append(all, v)
			}
		}
		if len(all) == 0 {
			return nil
		}
		m := estimate.MedianOf(all)
		met[0], met[1] = min(met[0], m), max(met[1], m)
	}
	return &met
}

// rulesOfTheWay is how many rules check a packet, on all nodes of its way.
func rulesOfTheWay(d *dataset.CellData, r dataset.Record) (float64, bool) {
	client, okClient := r.Probe(result.ClientNode, unit.NetfilterRulesPerPacket)
	server, okServer := r.Probe(result.ServerNode, unit.NetfilterRulesPerPacket)
	if d.Cell.Placement == result.IntraHost {
		return client, okClient
	}
	return client + server, okClient && okServer
}

// blockSlopes are the slopes of a cost over x by least squares, one for each
// block that has two values of x.
func blockSlopes(cells []*dataset.CellData, cost string, x func(*dataset.CellData, dataset.Record) (float64, bool)) []estimate.Point {
	type xy struct{ x, y float64 }
	blocks := map[int][]xy{}
	var order []int
	for _, d := range cells {
		at := map[int]float64{}
		for _, p := range d.Series(cost) {
			at[p.Block] = p.Value
		}
		for _, r := range d.OK {
			v, ok := x(d, r)
			y, known := at[r.Block()]
			if !ok || !known {
				continue
			}
			if blocks[r.Block()] == nil {
				order = append(order, r.Block())
			}
			blocks[r.Block()] = append(blocks[r.Block()], xy{v, y})
		}
	}
	slices.Sort(order)
	var out []estimate.Point
	for _, b := range order {
		var mx, my, sxx, sxy float64
		n := float64(len(blocks[b]))
		for _, p := range blocks[b] {
			mx, my = mx+p.x/n, my+p.y/n
		}
		for _, p := range blocks[b] {
			sxx, sxy = sxx+(p.x-mx)*(p.x-mx), sxy+(p.x-mx)*(p.y-my)
		}
		if sxx > 0 {
			out = append(out, estimate.Point{Block: b, Value: sxy / sxx})
		}
	}
	return out
}
