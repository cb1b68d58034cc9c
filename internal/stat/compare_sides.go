package stat

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// differences sorts what differs between the environments into what matters for a
// compared cell and what does not. With no common cell, everything matters.
func (c *Comparison) differences(a, b result.Environment, opt CompareOptions) {
	s := sides{a: a, b: b, tools: opt.Tools, known: opt.KnownTools}
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
		n := s.affected(change)
		switch {
		case len(s.cells) == 0 || n == len(s.cells):
			c.Differences = append(c.Differences, change.String())
		case n == 0:
			c.Harmless = append(c.Harmless, change.String())
		default:
			c.Differences = append(c.Differences, fmt.Sprintf("%s (matters for %d of %d cells)", change, n, len(s.cells)))
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
	cells, networks []result.Cell
}

// affected counts the compared cells that a difference matters for.
func (s sides) affected(change result.Change) int {
	n := 0
	for _, cell := range s.cells {
		n += count(s.matters(change, cell))
	}
	return n
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

// toolMatters reports whether a cell uses a tool. CNI plugins matter for all cells of
// pods; what no workload is known to use matters for all.
func (s sides) toolMatters(tool string, cell result.Cell) bool {
	switch {
	case strings.HasPrefix(tool, "cni/"):
		return !cell.IsBaseline()
	case s.tools == nil || !slices.Contains(s.known, tool):
		return true
	}
	return slices.Contains(s.tools(cell), tool)
}

// placeMatters reports whether a cell is measured at a place: a lab's places begin with
// the name of their network. A pod on a renamed node is the same place.
func (s sides) placeMatters(change result.Change, cell result.Cell) bool {
	if change.What == change.Place { // a place of one side only
		if _, node, ok := strings.Cut(change.Place, " on "); ok && s.isRenamed(node) {
			return false
		}
	}
	at := func(c result.Cell) bool { return strings.HasPrefix(change.Place, c.Network+" ") }
	if slices.ContainsFunc(s.networks, at) {
		// Efficiencies contain the baseline, so that its places matter for all.
		return at(cell) || at(cell.Baseline())
	}
	return true
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
