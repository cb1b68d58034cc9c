package bench

import (
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

// A path that queues for long is given the time that it takes; one slice that the
// machine held up does not make all later blocks long.
func TestDrainOf(t *testing.T) {
	const length = 100 * time.Millisecond
	for name, c := range map[string]struct {
		drains []time.Duration
		want   time.Duration
	}{
		"none":                     {nil, 0},
		"short":                    {[]time.Duration{1, 3, 2}, 3},
		"one was held up":          {[]time.Duration{1, 2, 3, time.Second}, 4 * length},
		"a path with a long queue": {[]time.Duration{450 * time.Millisecond, 500 * time.Millisecond, 600 * time.Millisecond}, 600 * time.Millisecond},
		"and held up as well":      {[]time.Duration{450 * time.Millisecond, 500 * time.Millisecond, 1900 * time.Millisecond}, time.Second},
	} {
		try := &slicedTry{turns: make([]traffic.Turn, len(c.drains)), report: workload.Output{Native: &traffic.Report{}}}
		for i, d := range c.drains {
			at := time.Duration(i) * time.Second
			try.turns[i] = traffic.Turn{At: at, LeadIn: length / 10, Length: length}
			try.report.Native.Slices = append(try.report.Native.Slices, traffic.Slice{Turn: i, Begin: at + length/10, End: at + length/10 + length + d})
		}
		if got := drainOf(try); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A sample in slices takes its slices and its part of the explaining windows; slices of a
// link with a rate are longer.
func TestSlicedTime(t *testing.T) {
	s := campaign.Sampling{SliceSeconds: 0.02, Slices: 5, ExplainSeconds: 0.3, ExplainEvery: 4, MinBlocks: 8}
	rr := result.Cell{Workload: "tcp_rr", Link: "unshaped", MessageBytes: 64, Streams: 1}
	slices := 5 * (22*time.Millisecond + firstDrain + betweenSlices)
	windows := (300*time.Millisecond + 2*Overhead) / 4
	if got, want := SlicedTime(s, rr), slices+windows+slicedOverhead; got != want {
		t.Errorf("round trips: %v, want %v", got, want)
	}
	s.ExplainSeconds = 0
	if got, want := SlicedTime(s, rr), slices+slicedOverhead; got != want {
		t.Errorf("without explaining windows: %v, want %v", got, want)
	}
	stream := rr
	stream.Workload = "tcp_stream"
	short := SlicedTime(s, stream)
	stream.Link = "10-gigabit"
	if long := SlicedTime(s, stream); long < short+5*(4*20+10)*time.Millisecond { // longer slices, and a buffer of 10 ms
		t.Errorf("a stream takes %v, on a link with a rate %v", short, long)
	}
	parallel := stream
	parallel.Link, parallel.Streams = "unshaped", 4
	if got := SlicedTime(s, parallel); got < short+5*4*16*time.Millisecond {
		t.Errorf("a stream takes %v, four take %v: not a tick for each end of each, twice", short, got)
	}
	both := stream
	both.Link, both.Direction = "unshaped", traffic.Bidirectional
	if got := SlicedTime(s, both); got < short+5*(4*20+2*16)*time.Millisecond {
		t.Errorf("a stream takes %v, one that goes both ways, in longer slices, %v", short, got)
	}
	both.Workload = "udp_stream"
	if got := SlicedTime(s, both); got > short+5*2*24*time.Millisecond {
		t.Errorf("datagrams that go both ways take %v: their slices need not be longer", got)
	}
	parallel.Workload = "tcp_rr"
	if got, want := SlicedTime(s, parallel), slices+5*3*firstDrain+slicedOverhead; got != want {
		t.Errorf("round trips by four streams: %v, want %v", got, want)
	}
	if got := SlicedTime(s, result.Cell{Workload: "iperf3_tcp"}); got != 0 {
		t.Errorf("a tool without slices: %v", got)
	}
}

// TestBuffersDrain: after a stream that fills a shaped link the next slice waits for the buffers of
// the link and, with TCP, of the sender, also where the slices before left them nearly empty.
func TestBuffersDrain(t *testing.T) {
	r := newRun(Options{Sampling: campaign.Sampling{SliceSeconds: 0.02, Slices: 3}})
	stream := func(link string, streams int) result.Cell {
		return result.Cell{Workload: "tcp_stream", Link: link, MessageBytes: 65536, Streams: streams}
	}
	const ms = time.Millisecond
	for _, x := range []struct {
		cell        result.Cell
		drained     time.Duration // 0: nothing was measured
		least, most time.Duration
		carried     bool
	}{
		{stream("10-gigabit", 1), 0, 17 * ms, 25 * ms, false},
		{stream("1-gigabit", 1), 0, 66 * ms, 90 * ms, false},
		{stream("10-gigabit", 1), 1 * ms, 10 * ms, 12 * ms, false},
		{stream("10-gigabit", 1), 40 * ms, 50 * ms, 52 * ms, false},
		{stream("10-gigabit", 4), 20 * ms, 74 * ms, 76 * ms, false},
		{stream("unshaped", 1), 1 * ms, 1 * ms, 3 * ms, false},
		{stream("unshaped", 3), 10 * ms, 48 * ms, 50 * ms, false},
		{result.Cell{Workload: "udp_stream", Link: "1-gigabit", MessageBytes: 1400, Streams: 1}, 0, 12 * ms, 15 * ms, false},
		{result.Cell{Workload: "udp_stream", Link: "10-gigabit", MessageBytes: 9000, Streams: 1}, 3 * ms, 10 * ms, 12 * ms, false},
		{result.Cell{Workload: "udp_rr", Link: "10-gigabit", MessageBytes: 9000, Streams: 1}, 0, 2 * ms, 4 * ms, false},
		{stream("unshaped", 1), 0, 32 * ms, 34 * ms, true},
		{stream("unshaped", 1), 5 * ms, 5 * ms, 7 * ms, true},
		{result.Cell{Workload: "tcp_rr", Link: "unshaped", MessageBytes: 64, Streams: 1}, 0, 2 * ms, 4 * ms, true},
	} {
		if clear(r.drains); x.drained > 0 {
			r.drains[x.cell] = x.drained
		}
		one := &slicedTry{try: &try{sample: result.Sample{Cell: x.cell}, ends: testbed.Ends{Carried: x.carried}}, slot: plan.Slot{Block: 2, Cell: x.cell}}
		r.schedule([]*slicedTry{one})
		last := one.turns[2]
		if got := last.At - one.turns[1].At - last.LeadIn - last.Length; got < x.least || got > x.most {
			t.Errorf("%s, after drains of %v: %v are left after a slice, want %v to %v", x.cell.Traffic(), x.drained, got, x.least, x.most)
		}
	}
}

// TestLongOpen: one connection that took long to open makes no slice longer where another of the
// path opened at once, in this block or in one before. A path that is long has long slices.
func TestLongOpen(t *testing.T) {
	r := newRun(Options{Sampling: campaign.Sampling{SliceSeconds: 0.02, Slices: 3}})
	lengthOf := func(network, workload string, opened time.Duration) time.Duration {
		c := result.Cell{Network: network, Workload: workload, MessageBytes: 64, Streams: 1}
		one := &slicedTry{try: &try{sample: result.Sample{Cell: c}}, slot: plan.Slot{Block: 2, Cell: c}, opened: opened}
		r.schedule([]*slicedTry{one})
		return one.turns[0].Length
	}
	const ms = time.Millisecond
	for i, x := range []struct {
		network, workload string
		opened, want      time.Duration
	}{
		{"far", "udp_stream", 100 * ms, 1000 * ms},
		{"near", "tcp_rr", ms, 20 * ms},
		{"near", "udp_stream", 100 * ms, 20 * ms},
		{"far", "udp_stream", 50 * ms, 500 * ms},
		{"far", "udp_stream", 200 * ms, 500 * ms},
	} {
		if got := lengthOf(x.network, x.workload, x.opened); got != x.want {
			t.Errorf("%d: a slice of %s, whose connection opened in %v, takes %v, want %v", i, x.network, x.opened, got, x.want)
		}
	}
}

// A sample has as many slices as the campaign asks for in seconds: those of a shaped link are longer.
func TestSlicesBySeconds(t *testing.T) {
	for _, c := range []struct {
		slices  int
		seconds float64
		link    string
		test    string
		want    int
	}{
		{2, 0.08, "unshaped", "tcp_rr", 4}, {2, 0.08, "10-gigabit", "tcp_rr", 4}, {2, 0.08, "10-gigabit", "tcp_stream", 2},
		{2, 0.07, "unshaped", "tcp_rr", 4}, {6, 0.08, "unshaped", "tcp_rr", 6}, {0, 0.4, "unshaped", "tcp_rr", 20}, {2, 0, "unshaped", "tcp_rr", 2},
	} {
		cell := result.Cell{Workload: c.test, Link: c.link, MessageBytes: 64, Streams: 1}
		r := newRun(Options{Sampling: campaign.Sampling{SliceSeconds: 0.02, Slices: c.slices, SlicedSeconds: c.seconds}})
		if got := r.slicesOf(plan.Slot{Block: 1, Cell: cell}); got != c.want {
			t.Errorf("%+v: %d slices", c, got)
		}
	}
}
