package stopping_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/stat/stopping"
	"github.com/cnibench/cnibench/internal/stat/warning"
)

func TestStoppingLooksAndDrops(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	opt := dataset.Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 5, MaxBlocks: 30}
	host, quiet, loud := stattest.CellOf(result.HostNetwork), stattest.CellOf("quiet"), stattest.CellOf("loud")
	var samples []result.Sample
	doneAt := map[string]int{}
	look := map[result.Cell]stopping.Progress{}
	for b := 1; b <= opt.MaxBlocks && !look[host].Done; b++ {
		for _, c := range []struct {
			cell   result.Cell
			spread float64
		}{{host, 0.001}, {quiet, 0.002}, {loud, 0.03}} {
			if !look[c.cell].Done {
				samples = append(samples, stattest.OKSample(c.cell, b, stattest.Metrics{stattest.Throughput: math.Exp(c.spread * r.NormFloat64())}))
			}
		}
		was := look
		look = stopping.Look(samples, opt)
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
	a := stat.Analyse(samples, opt)
	s := stattest.Find(t, a, loud)
	h, _ := s.Efficiency.RelativeHalfwidth()
	if !s.Progress.Done || h < 0.01999 {
		t.Errorf("loud: done %v, ± %.3f", s.Progress.Done, h)
	}
	if h, _ := stattest.Find(t, a, quiet).Efficiency.RelativeHalfwidth(); h > 0.01 {
		t.Errorf("quiet was done at the first look: its interval must stay ± %.3f", h)
	}
	if w, ok := a.Warning(warning.TargetNotReached); ok {
		t.Errorf("warned: %s", w.Message)
	}
}

func TestStoppingSaysHowManyBlocksAreNeeded(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	opt := dataset.Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 5}
	var samples []result.Sample
	for b := 1; b <= 40; b++ {
		samples = append(samples, stattest.OKSample(stattest.CellOf("x"), b, stattest.Metrics{stattest.Throughput: math.Exp(0.1 * r.NormFloat64())}))
	}
	p := stopping.Look(samples, opt)[stattest.CellOf("x")]
	// (1.96 · 0.1 / 0.02)² = 96 with the true spread.
	if p.Done || p.BlocksNeeded < 60 || p.BlocksNeeded > 140 {
		t.Errorf("%+v", p)
	}
	w, ok := stat.Analyse(samples, opt).Warning(warning.TargetNotReached)
	if !ok || !strings.Contains(w.Message, "blocks") {
		t.Errorf("warning %+v", w)
	}
}

func TestStoppingWithoutBaselineJudgesTheMean(t *testing.T) {
	opt := dataset.Options{TargetRelativeHalfwidth: 0.05, MinBlocks: 3}
	host := stattest.CellOf(result.HostNetwork)
	p := stopping.Look(stattest.Streams(host, 100, 101, 99, 100), opt)[host]
	if !p.Done || p.Blocks != 4 {
		t.Errorf("%+v", p)
	}
}

func TestStoppingOfWhatCannotBeMeasured(t *testing.T) {
	opt := dataset.Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 3}
	gone := stattest.FailedSample(stattest.CellOf("calico/ipip"), 1, "kernel without ipip")
	gone.Status = result.StatusUnsupported
	bad := stattest.CellOf("bad")
	look := stopping.Look(append(stattest.Streams(stattest.CellOf(result.HostNetwork), 1, 1, 1, 1), gone, stattest.FailedSample(bad, 1, "no route")), opt)
	if p := look[gone.Cell]; !p.Done || p.Why != "unsupported: kernel without ipip" {
		t.Errorf("unsupported: %+v", p)
	}
	if p := look[bad]; p.Done || p.RelativeHalfwidth != nil {
		t.Errorf("failed: %+v", p)
	}
	if look[stattest.CellOf(result.HostNetwork)].Done {
		t.Error("the baseline is done before what leans on it")
	}
}

func TestStoppingWithoutTargetNeverSaysDone(t *testing.T) {
	if p := stopping.Look(stattest.Streams(stattest.CellOf("x"), 1, 1, 1, 1, 1, 1), dataset.Options{})[stattest.CellOf("x")]; p.Done {
		t.Errorf("%+v", p)
	}
}

// TestPairsNeedBothInTheBlock: a block in which the baseline failed does not
// count for the efficiency.
func TestPairsNeedBothInTheBlock(t *testing.T) {
	host := stattest.CellOf(result.HostNetwork)
	samples := append(stattest.Streams(stattest.CellOf("x"), 9, 9, 9, 9), stattest.Streams(host, 10, 10)...)
	samples = append(samples, stattest.FailedSample(host, 3, "x"), stattest.OKSample(host, 4, stattest.Metrics{stattest.Throughput: 10}))
	e := stattest.Find(t, stat.Analyse(samples, dataset.Options{}), stattest.CellOf("x")).Efficiency
	if e.N != 3 || math.Abs(e.Value-0.9) > 1e-12 {
		t.Errorf("%+v", e)
	}
}

func TestRetryIsOneBlockAndTheFailureIsReported(t *testing.T) {
	c := stattest.CellOf("x")
	again := stattest.OKSample(c, 1, stattest.Metrics{stattest.Throughput: 7})
	again.Attempt = 2
	s := stattest.Find(t, stat.Analyse([]result.Sample{stattest.FailedSample(c, 1, "reset"), again, stattest.OKSample(c, 2, stattest.Metrics{stattest.Throughput: 7})}, dataset.Options{}), c)
	if s.OK != 2 || s.Failed != 1 || s.Recovered != 1 {
		t.Errorf("%d ok, %d failed, %d recovered", s.OK, s.Failed, s.Recovered)
	}
}
