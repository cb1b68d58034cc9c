package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

func TestRankingTellsApartWhatDiffers(t *testing.T) {
	a := Analyse(quietSamples(1, 10, map[string]float64{"slow": 0.5, "fast": 0.9, "twin-a": 0.7, "twin-b": 0.7}), Options{})
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
			samples = append(samples, okSample(cellOf(n.name), b, metrics{throughput: n.mean * math.Exp(n.spread*r.NormFloat64())}))
		}
	}
	places := map[string]Ranked{}
	for _, r := range Analyse(samples, Options{}).Rankings[0].Ranked {
		places[r.Network] = r
	}
	for n, want := range map[string][2]int{"a": {1, 2}, "b": {1, 3}, "c": {2, 3}} {
		if got := [2]int{places[n].Rank, places[n].RankTo}; got != want {
			t.Errorf("%s has places %v, want %v", n, got, want)
		}
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

// TestRankingFamilyWiseError: eight networks that are all the same, measured
// with the stopping rule in force, so that each stops when its own efficiency
// seems narrow. At most one campaign in twenty may find a difference between any two.
func TestRankingFamilyWiseError(t *testing.T) {
	reps := repetitions(2000)
	for _, noise := range noises() {
		for _, spread := range []float64{0.005, 0.02} {
			r := rand.New(rand.NewPCG(11, 11))
			c := collect(nil, Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 5, MaxBlocks: 20})
			wrong := 0
			for range reps {
				pairs, _ := c.pairs(equalNetworks(r, c, 8, func() float64 { return spread * noise.draw(r) }), throughput)
				wrong += count(slices.ContainsFunc(pairs, func(p Pair) bool { return p.Significant }))
			}
			share := float64(wrong) / float64(reps)
			t.Logf("%s, spread %g: %.1f %%", noise.name, spread, 100*share)
			if share > 0.05+margin(0.05, reps) {
				t.Errorf("%s, spread %g: %.1f %% of the campaigns find differences between equal networks", noise.name, spread, 100*share)
			}
		}
	}
}

// equalNetworks measures k equal networks until the stopping rule is content
// with each.
func equalNetworks(r *rand.Rand, c *dataset, k int, draw func() float64) []rankedNetwork {
	in := make([]rankedNetwork, k)
	efficiencies := make([][]point, k)
	for i := range in {
		in[i].Network = fmt.Sprint(i)
	}
	for b := 1; b <= c.opt.MaxBlocks; b++ {
		day, host := 0.1*r.NormFloat64(), draw()
		for i := range in {
			if met := c.targetMet(efficiencies[i]); met > 0 && len(efficiencies[i]) > met {
				continue // done
			}
			own := draw()
			in[i].series = append(in[i].series, point{b, math.Exp(day + own)})
			efficiencies[i] = append(efficiencies[i], point{b, own - host})
		}
	}
	return in
}

func TestGoodputShare(t *testing.T) {
	tcp, udp := cellOf("host"), cellOf("host")
	udp.Workload = "udp_stream"
	big := tcp
	big.MTU = 9000
	small := udp
	small.MessageBytes = 64
	six := tcp
	six.Family = "ipv6"
	frag := udp
	frag.MessageBytes = 9000
	for _, c := range []struct {
		name string
		cell result.Cell
		mtu  int
		want float64
	}{
		{"tcp 1500", tcp, 1500, 1448.0 / 1514},
		{"tcp 9000", big, 9000, 8948.0 / 9014},
		{"tcp over ipv6", six, 1500, 1428.0 / 1514},
		{"tcp in vxlan", tcp, 1450, 1398.0 / 1514},
		{"udp 1472", udp, 1500, 1472.0 / 1514},
		{"udp 64", small, 1500, 64.0 / (64 + 42)},
		{"udp 64 in vxlan", small, 1450, 64.0 / (64 + 42 + 50)},
		{"udp 9000 in fragments", frag, 1500, 9000.0 / (9008 + 7*34)}, // 1480 bytes each
	} {
		got, ok := goodputShare(c.cell, c.mtu)
		if !ok {
			t.Errorf("%s: not known", c.name)
		}
		near(t, c.name, got, c.want, 1e-12)
	}
	if _, ok := goodputShare(result.Cell{Workload: "redis", MTU: 1500}, 1500); ok {
		t.Error("redis has a known framing")
	}
}

func TestOnlyThoseThatFillTheLinkShareItsRank(t *testing.T) {
	const limit = 1e9 * 1448 / 1514
	var samples []result.Sample
	for b := 1; b <= 8; b++ {
		for n, share := range map[string]float64{"a": 0.9999, "b": 0.998, "slow": 0.5} {
			c := cellOf(n)
			c.Link = "1-gigabit"
			samples = append(samples, okSample(c, b, metrics{throughput: limit * share * (1 + 1e-5*float64(b%2))}))
		}
	}
	r := Analyse(samples, Options{LinkRate: func(string) (float64, bool) { return 1e9, true }}).Rankings[0]
	if r.LinkBound {
		t.Error("not all fill the link")
	}
	for _, p := range r.Ranked {
		if want := map[string][2]int{"a": {1, 2}, "b": {1, 2}, "slow": {3, 3}}[p.Network]; want != [2]int{p.Rank, p.RankTo} {
			t.Errorf("%s has places %d to %d, want %v", p.Network, p.Rank, p.RankTo, want)
		}
	}
}
