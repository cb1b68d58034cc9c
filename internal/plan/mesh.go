package plan

import (
	"iter"
	"math/rand/v2"
	"slices"
)

// Pair is two nodes by their numbers: traffic from one to the other. The pair
// the other way round is another one.
type Pair struct{ From, To int }

// AllPairs gives every ordered pair of n nodes once, in rounds in which no node
// is twice, so that the pairs of a round can be measured at the same time. They
// are as few rounds as can be: 2(n-1) for an even n, as each node is in 2(n-1)
// pairs; 2n for an odd one, as a round has at most (n-1)/2 of n(n-1) pairs. The
// slice is used again for the next round.
//
// It is the circle method of round-robin tournaments (Kirkman 1847): one node
// stays, the others go round it; for an odd n there is nobody, and
// its partner rests. The second half is the first the other way round.
func AllPairs(n int) iter.Seq2[int, []Pair] {
	return func(yield func(int, []Pair) bool) {
		if n < 2 {
			return
		}
		circle := n - 1 + n%2 // odd: nodes that go round, and rounds of each half
		pairs := make([]Pair, 0, n/2)
		for round := range 2 * circle {
			turn := round % circle
			pairs = pairs[:0]
			if n%2 == 0 {
				pairs = append(pairs, Pair{n - 1, turn})
			}
			// Those at the same distance before and after turn are paired.
			before, after := turn, turn
			for range (circle - 1) / 2 {
				if before--; before < 0 {
					before = circle - 1
				}
				if after++; after == circle {
					after = 0
				}
				pairs = append(pairs, Pair{before, after})
			}
			if round >= circle {
				for i, p := range pairs {
					pairs[i] = Pair{p.To, p.From}
				}
			}
			if !yield(round, pairs) {
				return
			}
		}
	}
}

// Rounds puts pairs of nodes 0 … n-1 into rounds in which no node is twice. It
// is the colouring of a graph's edges: whether the bound of LeastRounds can be
// reached is not known to be decidable in good time (Holyer 1981), so it is
// searched for, for a time that depends on the pairs alone, and then with one
// round more. Where len equals LeastRounds there are no fewer. The same pairs give
// the same rounds. A pair of a node with itself is a round's part like any other.
func Rounds(n int, pairs []Pair) [][]Pair {
	for k := LeastRounds(n, pairs); ; k++ {
		// Taking any free one of 2 Δ - 1 rounds always succeeds, so this ends.
		c := newColouring(n, k, pairs)
		if !c.search() {
			continue
		}
		rounds := make([][]Pair, k)
		for i, p := range pairs {
			rounds[c.colour[i]] = append(rounds[c.colour[i]], p)
		}
		return slices.DeleteFunc(rounds, func(r []Pair) bool { return len(r) == 0 })
	}
}

// LeastRounds is a number of rounds that no plan can be below: a node is in one
// pair of a round, and of m nodes that hang together at most m/2 pairs fit into a
// round.
func LeastRounds(n int, pairs []Pair) int {
	group := make([]int, n) // a node that it hangs together with; itself: the group's root
	for i := range group {
		group[i] = i
	}
	root := func(i int) int {
		for group[i] != i {
			group[i] = group[group[i]]
			i = group[i]
		}
		return i
	}
	degree, least := make([]int, n), 0
	for _, p := range pairs {
		for _, node := range p.nodes() {
			degree[node]++
			least = max(least, degree[node])
		}
		group[root(p.From)] = root(p.To)
	}
	size, edges := make([]int, n), make([]int, n)
	for i := range n {
		size[root(i)]++
	}
	for _, p := range pairs {
		if p.From != p.To {
			edges[root(p.From)]++
		}
	}
	for i := range n {
		if fit := size[i] / 2; fit > 0 {
			least = max(least, (edges[i]+fit-1)/fit)
		}
	}
	return least
}

// nodes are the pair's nodes, each once.
func (p Pair) nodes() []int {
	if p.From == p.To {
		return []int{p.From}
	}
	return []int{p.From, p.To}
}

// colouring is a partial one of the edges: the rounds of the pairs.
type colouring struct {
	pairs []Pair
	k     int
	// colour of each pair; -1: none yet.
	colour []int
	// at is the pair of each node in each round, at[node*k+round]; -1: it rests.
	at  []int
	rng *rand.Rand
	// effort is what may still be looked at until the search is given up.
	effort int
}

func newColouring(n, k int, pairs []Pair) *colouring {
	c := &colouring{pairs: pairs, k: k, colour: make([]int, len(pairs)), at: make([]int, n*k)}
	c.effort = leastEffort + 4*k*len(pairs)
	for i := range c.colour {
		c.colour[i] = -1
	}
	for i := range c.at {
		c.at[i] = -1
	}
	c.rng = rand.New(rand.NewPCG(uint64(k), uint64(len(pairs))))
	return c
}

// leastEffort is about a tenth of a second of searching.
const leastEffort = 1 << 24

// search colours all pairs, or gives up. A pair for which no round has both
// nodes free gets one by changing the rounds along a path of two rounds (Kempe's
// chain); where every such path leads back, it takes the place of another pair at
// random, which is then put elsewhere.
func (c *colouring) search() bool {
	waiting := make([]int, len(c.pairs))
	for i := range waiting {
		waiting[i] = len(waiting) - 1 - i
	}
	for len(waiting) > 0 && c.effort > 0 {
		last := len(waiting) - 1
		pair := waiting[last]
		waiting = waiting[:last]
		round, free := c.free(pair)
		if !free {
			other := c.at[c.pairs[pair].To*c.k+round]
			c.set(other, -1)
			// Not the next one, or the two might only change places.
			waiting = append(waiting, other)
			j := c.rng.IntN(len(waiting))
			waiting[j], waiting[last] = waiting[last], waiting[j]
		}
		c.set(pair, round)
	}
	return len(waiting) == 0
}

// free finds or makes a round in which both nodes of a pair rest. Where there is
// none it gives one in which the first of them does.
func (c *colouring) free(pair int) (round int, found bool) {
	from, to := c.pairs[pair].From, c.pairs[pair].To
	var rests []int // rounds in which from rests; there is one, as this pair has none
	for round := range c.k {
		c.effort--
		if c.at[from*c.k+round] >= 0 {
			continue
		}
		if c.at[to*c.k+round] < 0 {
			return round, true
		}
		rests = append(rests, round)
	}
	for _, a := range rests {
		for b := range c.k {
			if c.at[to*c.k+b] < 0 && c.swap(to, a, b, from) {
				return a, true
			}
		}
	}
	return rests[c.rng.IntN(len(rests))], false
}

// swap exchanges the rounds a and b on the path that begins at a node with its
// pair of round a. It does nothing where that path comes to the node end.
func (c *colouring) swap(node, a, b, end int) bool {
	var path []int
	for at, round := node, a; ; {
		pair := c.at[at*c.k+round]
		if pair < 0 {
			break
		}
		p := c.pairs[pair]
		path = append(path, pair)
		c.effort--
		if p.From == p.To {
			break
		}
		at = p.From + p.To - at
		if at == end {
			return false
		}
		round = a + b - round
	}
	was := make([]int, len(path))
	for i, pair := range path {
		was[i] = c.colour[pair]
		c.set(pair, -1)
	}
	for i, pair := range path {
		c.set(pair, a+b-was[i])
	}
	return true
}

// set puts a pair into a round, or with -1 out of its own.
func (c *colouring) set(pair, round int) {
	for _, node := range c.pairs[pair].nodes() {
		if old := c.colour[pair]; old >= 0 {
			c.at[node*c.k+old] = -1
		}
		if round >= 0 {
			c.at[node*c.k+round] = pair
		}
	}
	c.colour[pair] = round
}
