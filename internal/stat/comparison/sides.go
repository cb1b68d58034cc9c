package comparison

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// differences sorts what differs between the environments into what matters for a
// compared cell and what does not. With no common cell, everything matters.
func (c *Comparison) differences(a, b result.Environment, opt Options) {
	s := sides{a: a, b: b, tools: opt.Tools, known: opt.KnownTools, plugins: opt.Plugins}
	for _, f := range []struct{ what, a, b string }{
		{"testbed", a.Testbed, b.Testbed}, {"OS", a.Host.OS, b.Host.OS},
	} {
		if f.a != f.b {
			c.Differences = append(c.Differences, f.what+": "+orUnknown(f.a)+" → "+orUnknown(f.b))
		}
	}
	for _, x := range c.Cells {
		s.cells = append(s.cells, x.Cell)
	}
	s.networks = slices.Concat(s.cells, c.OnlyBase, c.OnlyNew)
	for _, change := range result.Changes(a, b) {
		affected := s.affected(change)
		switch {
		case len(s.cells) == 0 || len(affected) == len(s.cells):
			c.Differences = append(c.Differences, change.String())
		case len(affected) == 0:
			c.Harmless = append(c.Harmless, change.String())
		default:
			c.Differences = append(c.Differences, fmt.Sprintf("%s (matters for %d of %d cells: %s)", change, len(affected), len(s.cells), s.name(affected)))
		}
	}
}

// sides is what decides which cells a difference matters for.
type sides struct {
	a, b  result.Environment
	tools func(result.Cell) []string
	// known are the tools of any workload; cells are those compared, networks those
	// of either side.
	known           []string
	plugins         func(string) ([]string, bool)
	cells, networks []result.Cell
}

// affected are the compared cells that a difference matters for.
func (s sides) affected(change result.Change) []result.Cell {
	var out []result.Cell
	for _, cell := range s.cells {
		if s.matters(change, cell) {
			out = append(out, cell)
		}
	}
	return out
}

// mostNamed bounds the cells that a difference names.
const mostNamed = 5

// name names cells by network and traffic, and by all factors where that is not enough.
func (s sides) name(cells []result.Cell) string {
	short := func(c result.Cell) string { return c.Network + " " + c.Traffic() }
	same := map[string]int{}
	for _, c := range s.cells {
		same[short(c)]++
	}
	var out []string
	for i, c := range cells {
		if i == mostNamed {
			out = append(out, fmt.Sprintf("and %d more", len(cells)-mostNamed))
			break
		}
		name := short(c)
		if same[name] > 1 {
			name = c.Describe()
		}
		out = append(out, name)
	}
	return strings.Join(out, "; ")
}

func (s sides) matters(change result.Change, cell result.Cell) bool {
	switch {
	case change.Tool != "":
		return s.toolMatters(change.Tool, cell)
	case change.Place != "":
		return s.placeMatters(change, cell)
	case change.Cluster != "" && change.What == nodesOf(change.Cluster):
		return cell.Cluster == change.Cluster && !s.renamed(change.Cluster) && !s.hasBothNodes(cell)
	case change.Cluster != "":
		return cell.Cluster == change.Cluster
	case change.What == "cnibench" && s.tools != nil:
		// A lab's networks are cnibench's own work; on a cluster or on hosts only its
		// traffic is.
		return s.b.Testbed == "lab" || len(s.tools(cell)) == 0
	}
	return true
}

func nodesOf(cluster string) string { return "cluster " + cluster + ": nodes" }

// toolMatters reports whether a cell uses a tool. A CNI plugin matters for cells of the
// networks that use it; what no workload is known to use matters for all.
func (s sides) toolMatters(tool string, cell result.Cell) bool {
	plugin, isPlugin := strings.CutPrefix(tool, "cni/")
	switch {
	case isPlugin && cell.IsBaseline():
		return false
	case isPlugin && s.plugins != nil:
		names, known := s.plugins(cell.Network)
		return !known || slices.Contains(names, plugin)
	case isPlugin:
		return true
	case s.tools == nil || !slices.Contains(s.known, tool):
		return true
	}
	return slices.Contains(s.tools(cell), tool)
}

// placeMatters reports whether a cell is measured at a place: a lab's places begin with
// the name of their network. A pod on a renamed node is the same place if its settings
// are the same.
func (s sides) placeMatters(change result.Change, cell result.Cell) bool {
	if change.What == change.Place && s.movedAlike(change.Place) {
		return false
	}
	at := func(c result.Cell) bool { return strings.HasPrefix(change.Place, c.Network+" ") }
	if slices.ContainsFunc(s.networks, at) {
		// Efficiencies contain the baseline, so that its places matter for all.
		return at(cell) || at(cell.Baseline())
	}
	return true
}

// movedAlike reports whether a place of one side only is on a renamed node, and the
// other side has the same place on its node with the same settings.
func (s sides) movedAlike(place string) bool {
	pod, node, ok := strings.Cut(place, " on ")
	if !ok || !s.isRenamed(node) {
		return false
	}
	here, there := s.a.Places, s.b.Places
	if _, inA := here[place]; !inA {
		here, there = there, here
	}
	for other, facts := range there {
		if _, both := here[other]; !both && strings.HasPrefix(other, pod+" on ") && sameSettings(facts, here[place]) {
			return true
		}
	}
	return false
}

// sameSettings reports whether two places have the same kernel, settings, offloads and
// MTUs.
func sameSettings(a, b result.PlaceFacts) bool {
	return a.Kernel == b.Kernel && maps.Equal(a.Sysctls, b.Sysctls) && maps.Equal(a.Offloads, b.Offloads) && maps.Equal(a.MTUs, b.MTUs)
}

// isRenamed reports whether a node belongs to a cluster whose nodes have only other names.
func (s sides) isRenamed(node string) bool {
	for name := range s.a.Clusters {
		_, inA := s.a.Clusters[name].Nodes[node]
		_, inB := s.b.Clusters[name].Nodes[node]
		if inA != inB && s.renamed(name) {
			return true
		}
	}
	return false
}

// renamed reports whether the nodes of a cluster differ in nothing but their names: the
// same number with the same OS, kernel, runtime, kubelet, architecture and CPUs, in the
// same zones. What is unknown is not the same.
func (s sides) renamed(cluster string) bool {
	a, b := facts(s.a.Clusters[cluster].Nodes), facts(s.b.Clusters[cluster].Nodes)
	return slices.Equal(a, b) && !slices.Contains(a, fmt.Sprintf("%+v", result.NodeFacts{}))
}

func facts(nodes map[string]result.NodeFacts) []string {
	var out []string
	for n := range maps.Values(nodes) {
		n.MemoryBytes = 0 // differs by some KiB between machines of one type
		out = append(out, fmt.Sprintf("%+v", n))
	}
	slices.Sort(out)
	return out
}

// hasBothNodes reports whether a cell names its pair of nodes and both sides have them:
// other nodes do not matter for it.
func (s sides) hasBothNodes(c result.Cell) bool {
	if c.ClientNode == "" || c.ServerNode == "" {
		return false
	}
	for _, node := range []string{c.ClientNode, c.ServerNode} {
		_, inA := s.a.Clusters[c.Cluster].Nodes[node]
		_, inB := s.b.Clusters[c.Cluster].Nodes[node]
		if !inA || !inB {
			return false
		}
	}
	return true
}
