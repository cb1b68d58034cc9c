package rank_test

import (
	"testing"

	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

// TestGoalIsTheRanking: in one setting a goal says what the ranking says.
func TestGoalIsTheRanking(t *testing.T) {
	a := stat.Analyse(stattest.QuietSamples(1, 10, map[string]float64{"slow": 0.5, "fast": 0.9, "twin-a": 0.7, "twin-b": 0.7}), dataset.Options{})
	if len(a.Goals) != 1 || a.Goals[0].Goal != rank.Bandwidth || len(a.Goals[0].Settings) != 1 {
		t.Fatalf("goals %+v", a.Goals)
	}
	for i, r := range a.Goals[0].Ranked {
		n := a.Rankings[0].Ranked[i]
		if r.Network != n.Network || r.Rank != n.Rank || r.RankTo != n.RankTo {
			t.Errorf("place %d: goal %s %d to %d, ranking %s %d to %d", i, r.Network, r.Rank, r.RankTo, n.Network, n.Rank, n.RankTo)
		}
		e, want := *r.Efficiency, *stattest.Find(t, a, stattest.CellOf(r.Network)).Efficiency
		stattest.Near(t, r.Network, e.Value, want.Value, 1e-12)
		stattest.Near(t, r.Network+" low", *e.Low, *want.Low, 1e-12)
		stattest.Near(t, r.Network+" high", *e.High, *want.High, 1e-12)
	}
	for i, p := range a.Goals[0].Pairs {
		stattest.Near(t, "p", p.P, pairOf(t, a.Rankings[0], p.Better.Network, p.Worse.Network).P, 1e-12)
		if i > 0 && p.Low != nil && *p.Low > *p.Ratio.Low {
			t.Errorf("%s: the bound of all pairs together is narrower than its own", p.Better)
		}
	}
}

func pairOf(t *testing.T, r rank.Ranking, a, b string) rank.Pair {
	t.Helper()
	for _, p := range r.Pairs {
		if p.Better == a && p.Worse == b || p.Better == b && p.Worse == a {
			return p
		}
	}
	t.Fatalf("no pair %s, %s", a, b)
	return rank.Pair{}
}
