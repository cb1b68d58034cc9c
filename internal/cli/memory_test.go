package cli_test

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// TestOutOfMemoryInMidSample: a sample whose agent or tool the kernel kills for lack of
// memory fails with that reason, and the next one is sound.
func TestOutOfMemoryInMidSample(t *testing.T) {
	t.Parallel()
	fault.NeedsMemory(t)
	labtest.Tool(t, "iperf3", "iperf3")
	b := newBrokenLab(t)
	check := func(who string, cell result.Cell, strike func(testbed.Ends) func()) {
		b.mustFail([]result.Cell{cell}, 4, 0, strike)
		for _, s := range b.struck {
			if !strings.Contains(s.Reason, "out of memory") {
				t.Errorf("%s: %s", who, s.Reason)
			}
		}
	}
	rr := faultCell("tcp_rr", "", "", func(c *result.Cell) { c.Streams = 1 })
	check("server's agent", rr, func(e testbed.Ends) func() { fault.OutOfMemory(t, b.pid(e.Server)); return nil })
	check("client's agent", rr, func(e testbed.Ends) func() { fault.OutOfMemory(t, b.pid(e.Client)); return nil })
	tool := faultCell("iperf3", "", "tcp", func(c *result.Cell) { c.MessageBytes, c.Streams, c.RateBitsPerSecond = 1472, 1, 50e6 })
	check("tool", tool, func(e testbed.Ends) func() {
		for _, pid := range b.children(b.pid(e.Server)) {
			fault.OutOfMemory(t, pid)
		}
		return nil
	})
}

// TestControllerOutOfMemory: a run that the kernel kills for lack of memory loses no
// sample, and leaves nothing after the next command.
func TestControllerOutOfMemory(t *testing.T) {
	t.Parallel()
	fault.NeedsMemory(t)
	inCampaign(t, steady, func(s *survivor, _ labtest.Trace) {
		r := s.run()
		s.middle(r)
		fault.OutOfMemory(t, r.PID())
		if status := r.wait(t); status != -1 {
			t.Errorf("status %d: %s", status, r.Stderr())
		}
		s.resumed()
	})
}
