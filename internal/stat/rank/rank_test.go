package rank_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

func TestRankingTellsApartWhatDiffers(t *testing.T) {
	a := stat.Analyse(stattest.QuietSamples(1, 10, map[string]float64{"slow": 0.5, "fast": 0.9, "twin-a": 0.7, "twin-b": 0.7}), dataset.Options{})
	if len(a.Rankings) != 1 {
		t.Fatalf("%d rankings", len(a.Rankings))
	}
	got := ""
	for _, r := range a.Rankings[0].Ranked {
		got += fmt.Sprintf("%s %d-%d; ", r.Network, r.Rank, r.RankTo)
	}
	if got != "fast 1-1; twin-a 2-3; twin-b 2-3; slow 4-4; " && got != "fast 1-1; twin-b 2-3; twin-a 2-3; slow 4-4; " {
		t.Errorf("ranking %s", got)
	}
	if g := a.Rankings[0].Group; g.Network != "" || g.Workload != "tcp_stream" {
		t.Errorf("group %+v", g)
	}
}

// TestNonTransitiveDecisions: A beats C, but B is tied with both.
func TestNonTransitiveDecisions(t *testing.T) {
	var samples []result.Sample
	r := rand.New(rand.NewPCG(2, 2))
	for b := 1; b <= 8; b++ {
		for _, n := range []struct {
			name         string
			mean, spread float64
		}{{"a", 1.02, 0.001}, {"b", 1.01, 0.05}, {"c", 1.00, 0.001}} {
			samples = append(samples, stattest.OKSample(stattest.CellOf(n.name), b, stattest.Metrics{stattest.Throughput: n.mean * math.Exp(n.spread*r.NormFloat64())}))
		}
	}
	places := map[string]rank.Ranked{}
	for _, r := range stat.Analyse(samples, dataset.Options{}).Rankings[0].Ranked {
		places[r.Network] = r
	}
	for n, want := range map[string][2]int{"a": {1, 2}, "b": {1, 3}, "c": {2, 3}} {
		if got := [2]int{places[n].Rank, places[n].RankTo}; got != want {
			t.Errorf("%s has places %v, want %v", n, got, want)
		}
	}
}

func TestOnlyThoseThatFillTheLinkShareItsRank(t *testing.T) {
	const limit = 1e9 * 1448 / 1514
	var samples []result.Sample
	for b := 1; b <= 8; b++ {
		for n, share := range map[string]float64{"a": 0.9999, "b": 0.998, "slow": 0.5} {
			c := stattest.CellOf(n)
			c.Link = "1-gigabit"
			samples = append(samples, stattest.OKSample(c, b, stattest.Metrics{stattest.Throughput: limit * share * (1 + 1e-5*float64(b%2))}))
		}
	}
	r := stat.Analyse(samples, dataset.Options{LinkRate: func(string) (float64, bool) { return 1e9, true }}).Rankings[0]
	if r.LinkBound {
		t.Error("not all fill the link")
	}
	for _, p := range r.Ranked {
		if want := map[string][2]int{"a": {1, 2}, "b": {1, 2}, "slow": {3, 3}}[p.Network]; want != [2]int{p.Rank, p.RankTo} {
			t.Errorf("%s has places %d to %d, want %v", p.Network, p.Rank, p.RankTo, want)
		}
	}
}
