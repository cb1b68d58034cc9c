package rank_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

// varied is samples of throughput of cells about given values, with small noise.
func varied(seed uint64, blocks int, cells map[result.Cell]float64) []result.Sample {
	r := rand.New(rand.NewPCG(seed, 1))
	var out []result.Sample
	for _, cell := range dataset.SortedCells(keysOf(cells)) {
		for b := 1; b <= blocks; b++ {
			out = append(out, stattest.OKSample(cell, b, stattest.Metrics{stattest.Throughput: cells[cell] * math.Exp(0.005*r.NormFloat64())}))
		}
	}
	return out
}

func keysOf(cells map[result.Cell]float64) []result.Cell {
	var out []result.Cell
	for c := range cells {
		out = append(out, c)
	}
	return out
}

// TestHeadlineCoversOnePath: the headline is what networks cost between nodes; a
// loopback inside a node that is twenty times as fast changes nothing of it.
func TestHeadlineCoversOnePath(t *testing.T) {
	cells := map[result.Cell]float64{}
	for network, speed := range map[string][2]float64{"host": {1e10, 2e11}, "cilium/native": {0.95e10, 1e10}, "bridge": {0.9e10, 1.1e10}} {
		between := stattest.CellOf(network)
		inside := between
		inside.Placement = result.IntraHost
		cells[between], cells[inside] = speed[0], speed[1]
	}
	a := stat.Analyse(varied(1, 8, cells), dataset.Options{})
	if len(a.Goals) != 1 || len(a.OtherPaths) != 1 {
		t.Fatalf("%d headlines, %d others", len(a.Goals), len(a.OtherPaths))
	}
	head, other := a.Goals[0], a.OtherPaths[0]
	if len(head.Settings) != 1 || head.Settings[0].Cell.Placement != result.InterHost || other.Settings[0].Cell.Placement != result.IntraHost {
		t.Errorf("the headline covers %+v, the other ranking %+v", head.Settings, other.Settings)
	}
	stattest.Near(t, "between nodes", head.Ranked[0].Efficiency.Value, 0.95, 0.02)
	if head.Ranked[0].Network != "cilium/native" || other.Ranked[0].Network != "bridge" {
		t.Errorf("first %s and %s", head.Ranked[0].Network, other.Ranked[0].Network)
	}
	rec, err := rank.Recommend(varied(1, 8, cells), dataset.Options{}, rank.Question{Goal: rank.Bandwidth})
	if err != nil || rec.Take.Network != "cilium/native" || len(rec.Goals[0].Settings) != 1 {
		t.Errorf("recommended %+v over %+v: %v", rec.Take, rec.Goals, err)
	}
	stattest.Near(t, "inside a node", other.Ranked[0].Efficiency.Value, 0.055, 0.002)
}

// TestHeadlineHoldsFactors: MTUs are not averaged, message sizes are.
func TestHeadlineHoldsFactors(t *testing.T) {
	cells := map[result.Cell]float64{}
	for network, speed := range map[string]float64{"host": 1e10, "bridge": 0.9e10} {
		for _, mtu := range []int{1500, 9000} {
			for _, size := range []int{1472, 9000} {
				c := stattest.CellOf(network)
				c.MTU, c.MessageBytes = mtu, size
				cells[c] = speed
			}
		}
	}
	a := stat.Analyse(varied(2, 6, cells), dataset.Options{})
	if len(a.Goals) != 1 || len(a.Goals[0].Settings) != 2 || a.Goals[0].Settings[0].Cell.MTU != 1500 || a.Goals[0].Settings[1].Cell.MTU != 1500 {
		t.Errorf("headline %+v", a.Goals)
	}
	if len(a.OtherPaths) != 1 || a.OtherPaths[0].Settings[0].Cell.MTU != 9000 {
		t.Errorf("others %+v", a.OtherPaths)
	}
}

// TestFactorsOfBaseline: a campaign of the bare network with three profiles
// says which profile is better.
func TestFactorsOfBaseline(t *testing.T) {
	cells := map[result.Cell]float64{}
	for profile, speed := range map[string]float64{result.DefaultProfile: 1e10, "kernel_optimizations": 1.25e10, "nic_optimizations": 1.25e10} {
		c := stattest.CellOf(result.HostNetwork)
		c.Profile = profile
		cells[c] = speed
	}
	a := stat.Analyse(varied(3, 10, cells), dataset.Options{})
	if len(a.Factors) != 1 {
		t.Fatalf("%+v", a.Factors)
	}
	f := a.Factors[0]
	if f.Factor != "profile" || f.Network != result.HostNetwork || f.Goal != rank.Bandwidth || len(f.Levels) != 3 {
		t.Fatalf("%+v", f)
	}
	if l := f.Levels[0]; l.Level != result.DefaultProfile || l.AgainstReference != nil || l.Rank != 3 || l.RankTo != 3 {
		t.Errorf("reference %+v", l)
	}
	for _, l := range f.Levels[1:] {
		stattest.Near(t, l.Level, l.AgainstReference.Value, 1.25, 0.02)
		if low, high, ok := l.AgainstReference.Interval(); !ok || low > 1.25 || high < 1.2 || l.Rank != 1 || l.RankTo != 2 {
			t.Errorf("%+v", l)
		}
	}
}

// TestFactorsOfOneNetwork: with one network the MTUs of that network are
// compared, message sizes at the reference MTU, and with two networks none.
func TestFactorsOfOneNetwork(t *testing.T) {
	cells := map[result.Cell]float64{}
	for network, speed := range map[string]float64{"host": 1e10, "bridge": 0.8e10} {
		for _, mtu := range []int{1500, 9000} {
			for _, size := range []int{64, 1472} {
				c := stattest.CellOf(network)
				c.MTU, c.MessageBytes = mtu, size
				cells[c] = speed * float64(mtu) / 1500 * float64(size) / 64
			}
		}
	}
	a := stat.Analyse(varied(4, 8, cells), dataset.Options{})
	got := map[string]rank.Level{}
	for _, f := range a.Factors {
		if f.Network != "bridge" || len(f.Levels) != 2 {
			t.Errorf("%+v", f)
			continue
		}
		got[f.Factor] = f.Levels[1]
	}
	if len(got) != 2 || got["mtu"].Level != "9000" || got["message_bytes"].Level != "1472" {
		t.Fatalf("%+v", got)
	}
	stattest.Near(t, "MTU", got["mtu"].AgainstReference.Value, 6, 0.1)
	stattest.Near(t, "message size", got["message_bytes"].AgainstReference.Value, 23, 0.4)
	two := stattest.CellOf("macvlan")
	cells[two] = 1e10
	if a := stat.Analyse(varied(5, 8, cells), dataset.Options{}); len(a.Factors) != 0 {
		t.Errorf("with two networks: %+v", a.Factors)
	}
}
