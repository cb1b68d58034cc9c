package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/paper"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
)

// TestBudgetExplainsWhatIsCompared: a time budget goes to explaining windows only as far as
// a claim or a table of the study needs them, and to no warm-up that takes as long as the window.
func TestBudgetExplainsWhatIsCompared(t *testing.T) {
	labtest.Slow(t)
	for id, want := range map[string]struct {
		seconds float64
		every   int
		warmup  float64
	}{
		"dakic2024":        {0, 8, 0.1},   // throughput and latency alone
		"volpert2022":      {0.3, 8, 0.1}, // a table of CPU time, which is shown and not judged
		"qi2020":           {0.3, 2, 0.1}, // claims about the CPU time in parts of the kernel
		"infrabuilder2024": {0.3, 8, 0},   // iperf3, whose warm-up is at least as long as its window
		"lim2020":          {0, 8, 0.1},   // iperf3 as well, beside long windows of the engine
	} {
		p, err := loadPaper(id, "")
		if err != nil {
			t.Fatal(err)
		}
		text, err := budgetCampaign(p, 10*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		c, err := campaign.Parse(id, text, known())
		if err != nil {
			t.Fatalf("%s: %v\n%s", id, err, text)
		}
		if s := c.Sampling; s.ExplainSeconds != want.seconds || s.ExplainEvery != want.every || s.WarmupSeconds != want.warmup {
			t.Errorf("%s: windows of %g s in every %d blocks after %g s, not of %g s in every %d after %g s", id,
				s.ExplainSeconds, s.ExplainEvery, s.WarmupSeconds, want.seconds, want.every, want.warmup)
		}
	}
}

// A sample of a program that ends on its own takes that program's time, whatever the
// campaign's sampling asks for. All others take at least what the sampling asks for.
func TestSampleTime(t *testing.T) {
	of := func(seconds float64) campaign.Campaign {
		return campaign.Campaign{Sampling: campaign.Sampling{Seconds: seconds, WarmupSeconds: 0.1}}
	}
	short, long := of(0.5), of(60)
	for name, k := range map[string]struct {
		cell    result.Cell
		follows bool
	}{
		"hpcc":       {result.Cell{Workload: "mpi_hpcc", Ranks: 2, MatrixSize: 1000}, false},
		"NetPIPE":    {result.Cell{Workload: "mpi_netpipe", Ranks: 2, MessageBytes: 64}, false},
		"all_to_all": {result.Cell{Workload: "all_to_all", Ranks: 4, MessageBytes: 64}, true},
		"iperf3":     {result.Cell{Workload: "iperf3", Protocol: "tcp", Streams: 1}, true},
		"no such":    {result.Cell{Workload: "no such"}, true},
	} {
		least, most := sampleTime(short, k.cell), sampleTime(long, k.cell)
		if follows := most-least > 30*time.Second; follows != k.follows || !k.follows && most != least {
			t.Errorf("%s: %v with samples of 0.5 s, %v with samples of 60 s", name, least, most)
		}
	}
	small := result.Cell{Workload: "mpi_hpcc", Ranks: 2, MatrixSize: 1000}
	large := small
	large.MatrixSize = 10_000
	if a, b := sampleTime(short, small), sampleTime(short, large); b < a+time.Minute {
		t.Errorf("N 1000 takes %v, and N 10000 %v", a, b)
	}
	// The plan of a campaign has the same time: an average over its cells.
	p := plan.Plan{Cells: []result.Cell{small}}
	extra, err := toolTime(long, p)
	if total := extra + long.Sampling.Warmup() + long.Sampling.Window(); err != nil || extra >= 0 || total <= 0 {
		t.Errorf("%v, which with the sampling is %v, %v", extra, total, err)
	}
}

// TestDryRunCountsWhatCanBeMeasured: cells that a lab only records the reason of are in no
// estimate, and their number is printed.
func TestDryRunCountsWhatCanBeMeasured(t *testing.T) {
	lab := paper.Testbed{Refuses: func(c result.Cell) string {
		if c.Network == "calico/ipip" {
			return "kernel has no ipip"
		}
		return ""
	}}
	cells := []result.Cell{{Network: "host"}, {Network: "calico/ipip"}, {Network: "bridge"}}
	var said strings.Builder
	can := measurable(cells, lab, &said)
	if len(can) != 2 || can[0].Network != "host" || can[1].Network != "bridge" || len(cells) != 3 {
		t.Errorf("%v can be measured", can)
	}
	if !strings.Contains(said.String(), "cells that cannot be measured here, in addition: 1 ") {
		t.Errorf("said %q", said.String())
	}
	said.Reset()
	if measurable(can, lab, &said); said.Len() > 0 {
		t.Errorf("said %q of cells that all can be measured", said.String())
	}
}
