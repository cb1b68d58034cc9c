package plan

import (
	"math/rand/v2"
	"testing"
)

// disjoint fails where a node is twice in a round.
func disjoint(t *testing.T, pairs []Pair) {
	t.Helper()
	seen := map[int]bool{}
	for _, p := range pairs {
		for _, node := range p.nodes() {
			if seen[node] {
				t.Fatalf("node %d is twice in %v", node, pairs)
			}
			seen[node] = true
		}
	}
}

func TestAllPairsInTheLeastRounds(t *testing.T) {
	for n := range 42 {
		seen, rounds := map[Pair]bool{}, 0
		for round, pairs := range AllPairs(n) {
			if round != rounds {
				t.Fatalf("n = %d: round %d comes after %d", n, round, rounds-1)
			}
			rounds++
			disjoint(t, pairs)
			for _, p := range pairs {
				if seen[p] || p.From == p.To || min(p.From, p.To) < 0 || max(p.From, p.To) >= n {
					t.Fatalf("n = %d: %v is no pair, or twice", n, p)
				}
				seen[p] = true
			}
		}
		want := 0
		if n > 1 {
			want = 2 * (n - 1 + n%2)
		}
		if rounds != want || len(seen) != n*max(n-1, 0) {
			t.Errorf("n = %d: %d rounds, want %d; %d pairs of %d", n, rounds, want, len(seen), n*(n-1))
		}
		all := make([]Pair, 0, len(seen))
		for p := range seen {
			all = append(all, p)
		}
		if least := LeastRounds(n, all); least != want {
			t.Errorf("n = %d: the bound is %d, the rounds are %d", n, least, want)
		}
	}
}

// draw gives different pairs of n nodes at random.
func draw(n, count int, rng *rand.Rand) []Pair {
	var all []Pair
	for from := range n {
		for to := range n {
			if from != to {
				all = append(all, Pair{from, to})
			}
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:count]
}

// Rounds keeps to the pairs, and 200 pairs over 20 nodes reach the bound: no
// plan has fewer rounds.
func TestRoundsReachTheBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		pairs := draw(20, 200, rng)
		rounds := checked(t, 20, pairs)
		if least := LeastRounds(20, pairs); rounds != least {
			t.Errorf("%d rounds, the bound is %d", rounds, least)
		}
	}
}

// Whatever the pairs, twice the same ones among them: never more than one round
// above the bound in all that was drawn here.
func TestRoundsOfAnyPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		n := 1 + rng.IntN(12)
		pairs := make([]Pair, rng.IntN(40))
		for i := range pairs {
			pairs[i] = Pair{rng.IntN(n), rng.IntN(n)}
		}
		if rounds, least := checked(t, n, pairs), LeastRounds(n, pairs); rounds > least+1 {
			t.Errorf("%d rounds for a bound of %d: %v", rounds, least, pairs)
		}
	}
	for name, c := range map[string]struct {
		n     int
		pairs []Pair
		want  int
	}{
		"none":               {3, nil, 0},
		"a star":             {5, []Pair{{0, 1}, {2, 0}, {0, 3}, {4, 0}}, 4},
		"a ring of five":     {5, []Pair{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}}, 3},
		"a node with itself": {2, []Pair{{0, 0}, {0, 1}, {1, 1}}, 2},
		"Petersen's graph, which is never at its bound": {10, []Pair{
			{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}, {0, 5}, {1, 6}, {2, 7}, {3, 8}, {4, 9},
			{5, 7}, {7, 9}, {9, 6}, {6, 8}, {8, 5},
		}, 4},
	} {
		if got := checked(t, c.n, c.pairs); got != c.want {
			t.Errorf("%s: %d rounds, want %d", name, got, c.want)
		}
	}
}

// checked gives the number of rounds of a plan that has every pair once.
func checked(t *testing.T, n int, pairs []Pair) int {
	t.Helper()
	left := map[Pair]int{}
	for _, p := range pairs {
		left[p]++
	}
	rounds := Rounds(n, pairs)
	for _, round := range rounds {
		disjoint(t, round)
		if len(round) == 0 {
			t.Fatal("a round is empty")
		}
		for _, p := range round {
			left[p]--
		}
	}
	for p, count := range left {
		if count != 0 {
			t.Fatalf("%v is %d times too few in the plan", p, count)
		}
	}
	return len(rounds)
}

func BenchmarkAllPairs5000(b *testing.B) {
	for b.Loop() {
		pairs := 0
		for _, round := range AllPairs(5000) {
			pairs += len(round)
		}
		if pairs != 5000*4999 {
			b.Fatal(pairs)
		}
	}
}

func BenchmarkRounds5000(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 6))
	pairs := make([]Pair, 20000)
	for i := range pairs {
		from := rng.IntN(5000)
		pairs[i] = Pair{from, (from + 1 + rng.IntN(4999)) % 5000}
	}
	for b.Loop() {
		if len(Rounds(5000, pairs)) > LeastRounds(5000, pairs)+1 {
			b.Fatal("more than a round above the bound")
		}
	}
}
