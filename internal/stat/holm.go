package stat

import (
	"cmp"
	"math"
	"slices"
)

// holm adjusts p-values so that all decisions "adjusted < α" together are wrong
// with a probability of at most α, whatever the tests have to do with each
// other (Holm 1979).
func holm(ps []float64) []float64 {
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

// pairedT is the p-value of "the mean of these logs is 0". With no spread at
// all, as of a link that is exactly full, equal is equal and other is other.
func pairedT(m moments) float64 {
	switch {
	case m.n < 2:
		return 1
	case m.sd == 0 && m.mean == 0:
		return 1
	}
	return tTest(m.mean/(m.sd/math.Sqrt(float64(m.n))), float64(m.n-1))
}
