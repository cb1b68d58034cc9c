package flame

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// What a page can hold and a reader can look through. A campaign of thousands
// of cells has its stacks added up in fewer graphs, of fewer samples each.
const (
	mostGraphs  = 40
	mostNodes   = 6000 // of all graphs together
	mostOfOne   = 600  // nodes of one graph
	mostSamples = 2000 // that stacks are read of, all graphs together
)

// elsewhere is the frame that stands for other programs (see probe.Stacks).
const elsewhere = "[elsewhere]"

// Graph is the stacks of one network and traffic as a tree.
type Graph struct {
	// Cell has the factors that all of its stacks have in common; the others are
	// zero.
	Cell result.Cell
	// Samples is how many samples the stacks are of, Unread how many more were
	// measured whose stacks were not read.
	Samples, Unread int
	// Microseconds is the CPU time of all stacks. That of other programs is not
	// in it.
	Microseconds int64
	// Nodes are the largest functions, each behind its caller.
	Nodes []Node
}

// Node is a function below its callers.
type Node struct {
	Function string
	// Component is what the function's own time belongs to: a name of
	// unit.Components.
	Component string
	// Depth is how many callers it has.
	Depth int
	// Microseconds is the CPU time in the function and all that it called, Own
	// that in itself. What callees that are not among Nodes took is in neither
	// Own nor another node.
	Microseconds, Own int64
}

// Graphs adds up stacks as they are read.
type Graphs struct {
	// Alike names what the cells of a graph do not have in common; ""
	// where each is of one cell.
	Alike string

	attribute func([]string) string
	key       func(result.Cell) result.Cell
	most      int // samples of one graph
	of        map[result.Cell]*tree
}

// tree is a graph that is being built.
type tree struct {
	samples, unread int
	top             branch
}

type branch struct {
	total, own int64
	below      map[string]*branch
}

// level is how much the cells of one graph have in common.
type level struct {
	alike string
	key   func(result.Cell) result.Cell
}

// levels lists them, the finest first.
func levels() []level {
	return []level{
		{"", func(c result.Cell) result.Cell { return c }},
		{"all paths, links, profiles and MTUs together", func(c result.Cell) result.Cell {
			c.Path, c.Placement, c.Link, c.Profile, c.MTU, c.Services, c.ServiceProxy, c.Policies = "", "", "", "", 0, 0, "", 0
			c.Encryption = ""
			return c
		}},
		{"all places, messages and streams together", func(c result.Cell) result.Cell {
			return result.Cell{Network: c.Network, Cluster: c.Cluster, Workload: c.Workload, Test: c.Test, Protocol: c.Protocol}
		}},
		{"all places and traffics together", func(c result.Cell) result.Cell { return result.Cell{Network: c.Network, Cluster: c.Cluster} }},
	}
}

// NewGraphs makes those of a campaign's cells: one for each cell where they are
// few, else one for what more and more cells have in common. attribute names the
// component of a stack, the outermost function first.
func NewGraphs(cells []result.Cell, attribute func([]string) string) *Graphs {
	g := &Graphs{attribute: attribute, of: map[result.Cell]*tree{}}
	for _, l := range levels() {
		seen := map[result.Cell]bool{}
		for _, c := range cells {
			seen[l.key(c)] = true
		}
		g.Alike, g.key, g.most = l.alike, l.key, max(1, mostSamples/max(1, len(seen)))
		if len(seen) <= mostGraphs {
			break
		}
	}
	return g
}

// Sample announces a measured sample that has stacks. Where it says so they are
// to be added with Add; a graph of many samples does without the later ones.
func (g *Graphs) Sample(c result.Cell) bool {
	t := g.of[g.key(c)]
	if t == nil {
		t = &tree{}
		g.of[g.key(c)] = t
	}
	if t.samples >= g.most {
		t.unread++
		return false
	}
	t.samples++
	return true
}

// Add adds a stack of the cell's sample.
func (g *Graphs) Add(c result.Cell, s result.Stack) {
	t := g.of[g.key(c)]
	if t == nil || len(s.Frames) == 0 || s.Frames[0] == elsewhere {
		return
	}
	b := &t.top
	b.total += s.Microseconds
	for _, f := range s.Frames {
		next := b.below[f]
		if next == nil {
			next = &branch{}
			if b.below == nil {
				b.below = map[string]*branch{}
			}
			b.below[f] = next
		}
		next.total += s.Microseconds
		b = next
	}
	b.own += s.Microseconds
}

// All gives the graphs that have any stack, in the order of their cells.
func (g *Graphs) All() []Graph {
	room := min(mostOfOne, mostNodes/max(1, len(g.of)))
	var out []Graph
	for cell, t := range g.of {
		if t.top.total == 0 {
			continue
		}
		x := Graph{Cell: cell, Samples: t.samples, Unread: t.unread, Microseconds: t.top.total}
		x.Nodes = g.nodes(x.Nodes, &t.top, t.top.least(room), nil)
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Graph) int { return a.Cell.Compare(b.Cell) })
	return out
}

// least is the least total of which no more than room branches have as much.
func (b *branch) least(room int) int64 {
	var totals []int64
	var gather func(*branch)
	gather = func(b *branch) {
		for _, next := range b.below {
			totals = append(totals, next.total)
			gather(next)
		}
	}
	gather(b)
	if len(totals) <= room {
		return 0
	}
	slices.SortFunc(totals, func(x, y int64) int { return cmp.Compare(y, x) })
	return totals[room] + 1
}

// nodes appends the branches of at least some total, in the order of their names.
func (g *Graphs) nodes(out []Node, b *branch, least int64, callers []string) []Node {
	var names []string
	for f, next := range b.below {
		if next.total >= least {
			names = append(names, f)
		}
	}
	slices.SortFunc(names, strings.Compare)
	for _, f := range names {
		next := b.below[f]
		stack := append(slices.Clone(callers), f)
		out = append(out, Node{Function: f, Component: g.attribute(stack), Depth: len(callers), Microseconds: next.total, Own: next.own})
		out = g.nodes(out, next, least, stack)
	}
	return out
}
