package cli_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/cli"
	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report/format"
	"github.com/cnibench/cnibench/internal/result"
)

// TestReportsOfClocksThatJump: the clock of the machine that measures is set forward and
// back by a year in the middle of a campaign. Its records are reported in every format, and
// no figure depends on when they began.
func TestReportsOfClocksThatJump(t *testing.T) {
	recorded := func(jumps ...time.Duration) string {
		cell := result.Cell{Network: "host", Path: "host-to-host", Placement: "inter-host", Link: "unshaped", Profile: "default_settings", MTU: 1500,
			Workload: "tcp_rr", MessageBytes: 64, Streams: 1}
		other := cell
		other.Network, other.Path = "bridge", "pod-to-pod"
		p := plan.Plan{Schema: plan.Schema, Seed: 7, Cells: []result.Cell{cell, other}, MinBlocks: 4, MaxBlocks: 4, SampleSeconds: 0.05, WarmupSeconds: 0.01}
		d, err := result.Create(filepath.Join(t.TempDir(), "r"), []byte(strings.ReplaceAll(tiny("bridge"), "3", "4")), p)
		if err != nil {
			t.Fatal(err)
		}
		clock, seconds, n := fault.NewClock(), 0.05, 0
		clock.Jump(50 * 365 * 24 * time.Hour)
		errs := []error{d.WriteJSON(result.EnvironmentFile, result.Environment{Schema: result.Schema, Testbed: "lab", Started: clock.Now().UTC()})}
		for b := 1; b <= p.MaxBlocks; b++ {
			for _, slot := range p.Block(b, nil) {
				rate := 1000 + float64(10*b)
				if slot.Cell.Network == "bridge" {
					rate *= 0.8
				}
				errs = append(errs, d.Append(result.Sample{Schema: result.Schema, ID: slot.ID, Block: b, Attempt: 1, Cell: slot.Cell, Status: result.StatusOK,
					Started: clock.Now().UTC(), MeasuredSeconds: &seconds, Metrics: map[string]float64{"transactions_per_second": rate}}))
				clock.Jump(time.Second)
				if n++; n <= len(jumps) {
					clock.Jump(jumps[n-1])
				}
			}
		}
		errs = append(errs, d.WriteJSON(result.EnvironmentFile, result.Environment{Schema: result.Schema, Testbed: "lab", Finished: clock.Now().UTC()}), d.Close())
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return d.Path
	}
	year := 365 * 24 * time.Hour
	steady, jumped := recorded(), recorded(0, year, -2*year, year, -30*year)
	shown := func(dir string, args ...string) string {
		var out bytes.Buffer
		root := cli.Root(&out, io.Discard)
		root.SetArgs(append([]string{"report", dir}, args...))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Errorf("report %v: %v", args, err)
		}
		return strings.ReplaceAll(out.String(), dir, "DIR")
	}
	for _, name := range format.Names() {
		if text := shown(jumped, "--format", name); text == "" {
			t.Errorf("%s: %.300s", name, text)
		}
	}
	if a, b := shown(steady, "--format", "csv"), shown(jumped, "--format", "csv"); a != b {
		t.Errorf("figures depend on the clock:\n%s\n%s", a, b)
	}
}
