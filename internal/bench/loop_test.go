package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stopping"
)

// watching is the stopping rule of a campaign, as the program has it.
type watching struct{ *stopping.Watch }

func (w watching) Done(n int) map[result.Cell]bool {
	done := map[result.Cell]bool{}
	for cell, p := range w.Look(n) {
		done[cell] = p.Done
	}
	return done
}

// large is a campaign of n cells: networks, message sizes and streams.
func large(n int) []result.Cell {
	const networks = 40
	var cells []result.Cell
	for i := range n {
		cell := result.Cell{Network: result.HostNetwork, Path: result.PathHostToHost, Placement: result.InterHost, Link: "unshaped",
			Profile: "default_settings", MTU: 1500, Workload: "tcp_rr", MessageBytes: 64 + i/networks, Streams: 1}
		if i%networks > 0 {
			cell.Network, cell.Path = fmt.Sprintf("network-%d", i%networks), result.PathPodToPod
		}
		cells = append(cells, cell)
	}
	return cells
}

// simulated is a run without ends: its samples are drawn, and are as large as those of
// round trips.
type simulated struct {
	*run
	rng  *rand.Rand
	rest []byte
}

func newSimulated(cells, blocks int) *simulated {
	o := Options{
		Sampling: campaign.Sampling{SliceSeconds: 0.02, MinBlocks: 5, MaxBlocks: blocks, Retries: 1, TargetRelativeHalfwidth: 0.001},
		Plan:     plan.Plan{Schema: plan.Schema, Seed: 7, Cells: large(cells), MinBlocks: 5, MaxBlocks: blocks},
		Observer: quiet{}, Store: &memory{},
	}
	o.StoppingRule = watching{stopping.NewWatch(dataset.Options{TargetRelativeHalfwidth: 0.001, MinBlocks: 5, MaxBlocks: blocks,
		Primary: func(result.Cell) string { return "latency_mean_seconds" }})}
	return &simulated{run: newRun(o), rng: rand.New(rand.NewPCG(1, 1))}
}

// measure is one block, with all that the loop does for it but waiting for ends.
func (s *simulated) measure(b *testing.B, n int) {
	b.Helper()
	todo := s.remaining(s.run.block(n))
	for _, turns := range s.inTurns(todo) {
		for _, slot := range turns.slots {
			latency := math.Exp(0.05 * s.rng.NormFloat64())
			sample := result.Sample{Schema: result.Schema, ID: slot.ID, Block: n, Attempt: 1, Cell: slot.Cell, Status: result.StatusOK, Started: time.Unix(int64(n), 0),
				Metrics: map[string]float64{"latency_mean_seconds": latency, "transactions_per_second": 1 / latency}}
			data, err := json.Marshal(sample) // as the store does
			if err != nil {
				b.Fatal(err)
			}
			s.rest = data
			s.keep(&sample)
		}
	}
	s.settle(n)
}

// BenchmarkLoop is what the controller does in a campaign of 5,000 cells and 50 blocks,
// apart from waiting for the ends. It prints the CPU time of one sample, of the last block by
// the first, and what is held at the end.
func BenchmarkLoop(b *testing.B) {
	const cells, blocks = 5000, 50
	for range b.N {
		s := newSimulated(cells, blocks)
		s.left = s.planned(1, blocks)
		var first, last, all time.Duration
		for n := 1; n <= blocks; n++ {
			begin := time.Now()
			s.measure(b, n)
			last = time.Since(begin)
			all += last
			if n == s.Plan.MinBlocks {
				first = last
			}
		}
		var held runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&held)
		b.ReportMetric(float64(all.Microseconds())/(cells*blocks), "µs/sample")
		b.ReportMetric(last.Seconds()/first.Seconds(), "last/first-block")
		b.ReportMetric(float64(held.HeapAlloc)/(1<<20), "MiB-held")
		runtime.KeepAlive(s)
	}
}

// TestPlannedCountsWithoutBuilding: what is still planned is what building every block
// would give, with records, retired cells and pairs of nodes.
func TestPlannedCountsWithoutBuilding(t *testing.T) {
	s := newSimulated(90, 12)
	count := func() (n int) {
		for b := 1; b <= 12; b++ {
			n += len(s.remaining(s.run.block(b)))
		}
		return n
	}
	if got, want := s.planned(1, 12), count(); got != want || want != 90*12 {
		t.Errorf("nothing is measured: %d planned, want %d", got, want)
	}
	for _, slot := range s.run.block(1)[:40] {
		s.keep(&result.Sample{ID: slot.ID, Block: 1, Attempt: 1, Cell: slot.Cell, Status: result.StatusOK})
	}
	for _, slot := range s.run.block(3)[:7] {
		s.keep(&result.Sample{ID: slot.ID, Block: 3, Attempt: 1, Cell: slot.Cell, Status: result.StatusFailed})
	}
	for _, cell := range s.Plan.Cells[:33] {
		s.retired[cell] = true
	}
	if got, want := s.planned(1, 12), count(); got != want {
		t.Errorf("some is measured and some retired: %d planned, want %d", got, want)
	}
}
