package flame

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

// byName is a rule for tests: the component is the first letter of the innermost
// function.
func byName(stack []string) string { return stack[len(stack)-1][:1] }

func stack(us int64, frames string) result.Stack {
	return result.Stack{Frames: strings.Split(frames, ";"), Microseconds: us}
}

func TestGraph(t *testing.T) {
	c := result.Cell{Network: "bridge", Workload: "tcp_rr", MTU: 1500}
	other := c
	other.Network = "macvlan"
	g := NewGraphs([]result.Cell{c, other}, byName)
	if !g.Sample(c) || !g.Sample(other) {
		t.Fatal("the first sample is not wanted")
	}
	for _, s := range []result.Stack{stack(30, "a;b"), stack(12, "a;b"), stack(5, "a"), stack(7, "a;c;b"), stack(99, elsewhere), stack(1, "z")} {
		g.Add(c, s)
	}
	all := g.All()
	if g.Alike != "" || len(all) != 1 || all[0].Cell != c || all[0].Samples != 1 || all[0].Microseconds != 55 {
		t.Fatalf("got %+v, %q", all, g.Alike)
	}
	var lines []string
	for _, n := range all[0].Nodes {
		lines = append(lines, fmt.Sprintf("%s%s %s %d %d", strings.Repeat(" ", n.Depth), n.Function, n.Component, n.Microseconds, n.Own))
	}
	want := "a a 54 5\n b b 42 42\n c c 7 0\n  b b 7 7\nz z 1 1"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestGraphsStaySmall: the more cells a campaign has, the more of them share a
// graph, and none has more functions or samples than there is room for.
func TestGraphsStaySmall(t *testing.T) {
	for _, c := range []struct{ places, messages, workloads, graphs int }{
		{1, 1, 2, 10}, {20, 1, 2, 10}, {9, 9, 2, 10}, {9, 9, 9, 5},
	} {
		var cells []result.Cell
		for n := range 5 {
			for p := range c.places {
				for m := range c.messages {
					for w := range c.workloads {
						cells = append(cells, result.Cell{Network: fmt.Sprint("n", n), MTU: p + 1, MessageBytes: m + 1, Workload: fmt.Sprint("w", w)})
					}
				}
			}
		}
		g := NewGraphs(cells, byName)
		read := 0
		for i := range 3 * len(cells) {
			cell := cells[i%len(cells)]
			if !g.Sample(cell) {
				continue
			}
			read++
			for f := range 20 {
				g.Add(cell, stack(int64(f+1), fmt.Sprintf("root;f%d;g%d", f, i)))
			}
		}
		all := g.All()
		nodes, unread, samples := 0, 0, 0
		for _, x := range all {
			nodes, unread, samples = nodes+len(x.Nodes), unread+x.Unread, samples+x.Samples
			for i, n := range x.Nodes {
				if n.Depth > 0 && (i == 0 || x.Nodes[i-1].Depth < n.Depth-1) {
					t.Fatalf("node %d is below none", i)
				}
			}
		}
		if len(all) != c.graphs || nodes > mostNodes || read > mostSamples || samples != read || read+unread != 3*len(cells) {
			t.Errorf("%+v: %d graphs (%s), %d nodes, %d samples read, %d not, of %d", c, len(all), g.Alike, nodes, read, unread, 3*len(cells))
		}
	}
}

// TestEmptyGraphs: cells without stacks have no graph.
func TestEmptyGraphs(t *testing.T) {
	g := NewGraphs(nil, byName)
	g.Sample(result.Cell{Network: "bridge"})
	g.Add(result.Cell{Network: "bridge"}, stack(5, elsewhere))
	if all := g.All(); len(all) != 0 {
		t.Errorf("got %+v", all)
	}
}
