package lab

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// TestBigTCP: a stream's segments have more than 64 KiB from the sender's device to the
// receiver's, on every device between; where one of them takes none, the sample is doubted.
func TestBigTCP(t *testing.T) {
	needLab(t)
	const name = "bridge+bigtcp"
	labtest.Feature(t, name, netns.BigTCP().Probe())
	l := New(options(newRunner(t), t.TempDir()))
	all := cells(name)
	buildLab(t, l, all)
	pods := all
	for i := range all { // and backwards
		reverse := all[i]
		reverse.Direction = traffic.Reverse
		pods = append(pods, reverse)
	}
	for _, cell := range pods {
		cell.Workload, cell.MessageBytes = traffic.TCPStream, 1<<20
		bigSegments(t, l, cell)
	}
}

func bigSegments(t *testing.T, l *Lab, cell result.Cell) {
	t.Helper()
	c := l.clusters[keyOf(cell)]
	from, to, err := sites(cell, false)
	if err != nil {
		t.Fatal(err)
	}
	if cell.Direction == traffic.Reverse {
		from, to = to, from
	}
	watched := func() string {
		read := l.WatchNodes(t.Context(), cell, []string{probe.NetfilterName, probe.MemoryName})
		transmit(t, l, cell, cell.Workload)
		return strings.Join(read(t.Context()).Doubts, "; ")
	}
	received := func() netns.Passed {
		t.Helper()
		got, err := netns.Received(c.ns(to), device)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	what := cell.Placement + " " + cell.Direction
	before := received()
	if doubt := watched(); doubt != "" {
		t.Errorf("%s: %s", what, doubt)
	}
	mean := netns.Mean(before, received())
	t.Logf("%s: segments of %d bytes on average", what, mean)
	if mean <= netns.LegacySegment {
		t.Errorf("%s: the receiver's segments had %d bytes on average", what, mean)
	}
	sender := netns.Port{NS: c.ns(from), Device: device}
	if err := sender.SetSegments(netns.LegacySegment); err != nil {
		t.Fatal(err)
	}
	if doubt := watched(); !strings.HasPrefix(doubt, "BIG TCP: segments had ") {
		t.Errorf("%s: with small segments the doubt is %q", what, doubt)
	}
	if err := sender.SetSegments(netns.BigSegment); err != nil {
		t.Fatal(err)
	}
}
