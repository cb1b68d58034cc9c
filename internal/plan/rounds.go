package plan

import (
	"math/rand/v2"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// rounds gives each cell of a pair of nodes its round in a block, from 1 on: those
// of one round are of one traffic on one network and have no node in common. 0: the
// cell belongs to no pair, and is measured alone. Which pairs share a round differs from block
// to block, so that no pair is slow because of the same neighbours every time.
func (p Plan) rounds(rng *rand.Rand) []int {
	out := make([]int, len(p.Cells))
	last := 0
	for _, mesh := range p.meshes() {
		number := numbers(p.Cells, mesh, rng)
		at := make(map[Pair]int, len(mesh))
		pairs := make([]Pair, len(mesh))
		for i, cell := range mesh {
			pairs[i] = Pair{number[p.Cells[cell].ClientNode], number[p.Cells[cell].ServerNode]}
			at[pairs[i]] = cell
		}
		put := func(round []Pair) {
			last++
			for _, pair := range round {
				out[at[pair]] = last
			}
		}
		if n := len(number); len(at) == n*(n-1) && !slices.ContainsFunc(pairs, func(p Pair) bool { return p.From == p.To }) {
			for _, round := range AllPairs(n) {
				put(round)
			}
			continue
		}
		for _, round := range Rounds(len(number), pairs) {
			put(round)
		}
	}
	return out
}

// meshes are the indices of the cells that differ by their nodes alone, in the
// order of the cells.
func (p Plan) meshes() [][]int {
	var out [][]int
	index := map[result.Cell]int{}
	for i, c := range p.Cells {
		if !c.IsPair() {
			continue
		}
		m, have := index[c.OfAnyPair()]
		if !have {
			m = len(out)
			index[c.OfAnyPair()] = m
			out = append(out, nil)
		}
		out[m] = append(out[m], i)
	}
	return out
}

// numbers gives the nodes of some cells numbers 0 … n-1 in random order.
func numbers(cells []result.Cell, of []int, rng *rand.Rand) map[string]int {
	number := map[string]int{}
	var names []string
	for _, i := range of {
		for _, name := range []string{cells[i].ClientNode, cells[i].ServerNode} {
			if _, have := number[name]; !have {
				number[name] = 0
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	for i, n := range rng.Perm(len(names)) {
		number[names[i]] = n
	}
	return number
}

// Turns is how many samples and rounds of samples a block has that come one after
// the other, and how many of them are rounds of pairs.
func (p Plan) Turns() (turns, rounds int) {
	for _, together := range Together(p.Block(1, nil)) {
		turns++
		if together[0].Round > 0 {
			rounds++
		}
	}
	return turns, rounds
}

// Together splits slots, in their order, into those that are measured at the same
// time: the pairs of one round, and everything else alone.
func Together(slots []Slot) [][]Slot {
	var out [][]Slot
	for i, s := range slots {
		if i > 0 && s.Round > 0 && s.Round == slots[i-1].Round && s.Block == slots[i-1].Block {
			out[len(out)-1] = append(out[len(out)-1], s)
		} else {
			out = append(out, []Slot{s})
		}
	}
	return out
}
