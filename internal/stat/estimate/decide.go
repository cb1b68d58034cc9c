package estimate

import (
	"cmp"
	"math"
	"slices"
)

// Holm adjusts p-values so that all decisions "adjusted < α" together are wrong
// with a probability of at most α, whatever the tests have to do with each
// other (Holm 1979).
func Holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	out := make([]float64, len(ps))
	var least float64
	for rank, i := range order {
		least = math.Max(least, math.Min(1, ps[i]*float64(len(ps)-rank)))
		out[i] = least
	}
	return out
}

// PairedT is the p-value of "the mean of these logs is 0". With no spread at
// all, as of a link that is exactly full, equal is equal and other is other.
func PairedT(m Moments) float64 {
	switch {
	case m.N < 2:
		return 1
	case m.SD == 0 && m.Mean == 0:
		return 1
	}
	return TTest(m.Mean/(m.SD/math.Sqrt(float64(m.N))), float64(m.N-1))
}

// Power is the share of campaigns that should see a difference of the size
// that is called detectable (Cohen 1988: 0.8).
const Power = 0.8

// Detectable is the smallest relative difference that n blocks of this spread
// show with the given power: (t(1−α/2) + t(power))·s/√n, with n−1 degrees of
// freedom, as a change of the ratio.
func (t *Tables) Detectable(m Moments) float64 {
	sum := t.tQuantile(m.N-1) + TQuantile(float64(m.N-1), Power)
	return math.Expm1(sum * m.SD / math.Sqrt(float64(m.N)))
}

// Pairing is two of several, by their indexes; the winner is the one with the better mean.
type Pairing struct{ Winner, Loser int }

// Decide returns which of n beats which, at a confidence, from the p-values after Holm.
func Decide(n int, pairings []Pairing, adjusted []float64, confidence float64) (beats [][]bool) {
	beats = make([][]bool, n)
	for i := range beats {
		beats[i] = make([]bool, n)
	}
	for i, k := range pairings {
		beats[k.Winner][k.Loser] = adjusted[i] < 1-confidence
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
