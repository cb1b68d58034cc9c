package stat

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

func TestStoppingLooksAndDrops(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	opt := Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 5, MaxBlocks: 30}
	host, quiet, loud := cellOf(result.HostNetwork), cellOf("quiet"), cellOf("loud")
	var samples []result.Sample
	doneAt := map[string]int{}
	look := map[result.Cell]Progress{}
	for b := 1; b <= opt.MaxBlocks && !look[host].Done; b++ {
		for _, c := range []struct {
			cell   result.Cell
			spread float64
		}{{host, 0.001}, {quiet, 0.002}, {loud, 0.03}} {
			if !look[c.cell].Done {
				samples = append(samples, okSample(c.cell, b, metrics{throughput: math.Exp(c.spread * r.NormFloat64())}))
			}
		}
		was := look
		look = Look(samples, opt)
		for c, p := range look {
			if was[c].Done && !p.Done {
				t.Errorf("block %d: %s was done and no longer is: %s", b, c.Network, p.Why)
			}
			if p.Done && doneAt[c.Network] == 0 {
				doneAt[c.Network] = b
			}
		}
	}
	if doneAt["quiet"] != 6 {
		t.Errorf("quiet is done at block %d, want 6: the first look and one more", doneAt["quiet"])
	}
	if doneAt["loud"] <= 6 || doneAt[result.HostNetwork] != doneAt["loud"] {
		t.Errorf("done at %v: the baseline must stay as long as loud does", doneAt)
	}
	// The analysis says the same, and the interval of the one that was stopped
	// late is not narrower than the target.
	a := Analyse(samples, opt)
	s := find(t, a, loud)
	h, _ := s.Efficiency.RelativeHalfwidth()
	if !s.Progress.Done || h < 0.01999 {
		t.Errorf("loud: done %v, ± %.3f", s.Progress.Done, h)
	}
	if h, _ := find(t, a, quiet).Efficiency.RelativeHalfwidth(); h > 0.01 {
		t.Errorf("quiet was done at the first look: its interval must stay ± %.3f", h)
	}
	if w, ok := warningOf(a, TargetNotReached); ok {
		t.Errorf("warned: %s", w.Message)
	}
}

func TestStoppingSaysHowManyBlocksAreNeeded(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	opt := Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 5}
	var samples []result.Sample
	for b := 1; b <= 40; b++ {
		samples = append(samples, okSample(cellOf("x"), b, metrics{throughput: math.Exp(0.1 * r.NormFloat64())}))
	}
	p := Look(samples, opt)[cellOf("x")]
	// (1.96 · 0.1 / 0.02)² = 96 with the true spread.
	if p.Done || p.BlocksNeeded < 60 || p.BlocksNeeded > 140 {
		t.Errorf("%+v", p)
	}
	w, ok := warningOf(Analyse(samples, opt), TargetNotReached)
	if !ok || !strings.Contains(w.Message, "blocks") {
		t.Errorf("warning %+v", w)
	}
}

func TestStoppingWithoutBaselineJudgesTheMean(t *testing.T) {
	opt := Options{TargetRelativeHalfwidth: 0.05, MinBlocks: 3}
	host := cellOf(result.HostNetwork)
	p := Look(streams(host, 100, 101, 99, 100), opt)[host]
	if !p.Done || p.Blocks != 4 {
		t.Errorf("%+v", p)
	}
}

func TestStoppingOfWhatCannotBeMeasured(t *testing.T) {
	opt := Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 3}
	gone := failedSample(cellOf("calico/ipip"), 1, "kernel without ipip")
	gone.Status = result.StatusUnsupported
	bad := cellOf("bad")
	look := Look(append(streams(cellOf(result.HostNetwork), 1, 1, 1, 1), gone, failedSample(bad, 1, "no route")), opt)
	if p := look[gone.Cell]; !p.Done || p.Why != "unsupported: kernel without ipip" {
		t.Errorf("unsupported: %+v", p)
	}
	if p := look[bad]; p.Done || p.RelativeHalfwidth != nil {
		t.Errorf("failed: %+v", p)
	}
	if look[cellOf(result.HostNetwork)].Done {
		t.Error("the baseline is done before what leans on it")
	}
}

func TestStoppingWithoutTargetNeverSaysDone(t *testing.T) {
	if p := Look(streams(cellOf("x"), 1, 1, 1, 1, 1, 1), Options{})[cellOf("x")]; p.Done {
		t.Errorf("%+v", p)
	}
}

// TestPairsNeedBothInTheBlock: a block in which the baseline failed does not
// count for the efficiency.
func TestPairsNeedBothInTheBlock(t *testing.T) {
	host := cellOf(result.HostNetwork)
	samples := append(streams(cellOf("x"), 9, 9, 9, 9), streams(host, 10, 10)...)
	samples = append(samples, failedSample(host, 3, "x"), okSample(host, 4, metrics{throughput: 10}))
	e := find(t, Analyse(samples, Options{}), cellOf("x")).Efficiency
	if e.N != 3 || math.Abs(e.Value-0.9) > 1e-12 {
		t.Errorf("%+v", e)
	}
}

func TestRetryIsOneBlockAndTheFailureIsReported(t *testing.T) {
	c := cellOf("x")
	again := okSample(c, 1, metrics{throughput: 7})
	again.Attempt = 2
	s := find(t, Analyse([]result.Sample{failedSample(c, 1, "reset"), again, okSample(c, 2, metrics{throughput: 7})}, Options{}), c)
	if s.OK != 2 || s.Failed != 1 || s.Recovered != 1 {
		t.Errorf("%d ok, %d failed, %d recovered", s.OK, s.Failed, s.Recovered)
	}
}
