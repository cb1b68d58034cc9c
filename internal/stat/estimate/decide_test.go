package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/stat/stattest"
)

// TestDetectableDifferenceIsDetected holds the word "detectable" to what it
// promises: a difference of that size is seen in 4 of 5 campaigns.
func TestDetectableDifferenceIsDetected(t *testing.T) {
	reps := stattest.Repetitions(20_000)
	tab := NewTables(0.95)
	r := rand.New(rand.NewPCG(9, 9))
	for _, n := range []int{5, 10, 30} {
		effect := math.Log1p(tab.Detectable(Moments{N: n, SD: 0.01}))
		seen := 0
		for range reps {
			points := make([]Point, n)
			for i := range points {
				points[i].Value = effect + 0.01*r.NormFloat64()
			}
			seen += stattest.Count(PairedT(MomentsOf(points)) < 0.05)
		}
		t.Logf("%d blocks: seen in %.1f %%", n, 100*float64(seen)/float64(reps))
		stattest.Near(t, "power", float64(seen)/float64(reps), 0.8, 0.03)
	}
}

func TestHolm(t *testing.T) {
	// Holm's own step-down by hand: 0.01·4, 0.02·3, 0.03·2, 0.04·1, made monotone.
	got := Holm([]float64{0.04, 0.01, 0.03, 0.02})
	for i, want := range []float64{0.06, 0.04, 0.06, 0.06} {
		stattest.Near(t, "adjusted", got[i], want, 1e-12)
	}
	if got := Holm(nil); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
}

func TestConclusions(t *testing.T) {
	beats := [][]bool{{false, true, false}, {false, false, true}, {false, false, false}}
	conclude(beats)
	if !beats[0][2] {
		t.Error("0 beats 1 beats 2, but not 2")
	}
	circle := [][]bool{{false, true, false}, {false, false, true}, {true, false, false}}
	conclude(circle)
	for i := range circle {
		for j := range circle {
			if circle[i][j] {
				t.Errorf("in a circle %d beats %d", i, j)
			}
		}
	}
}
