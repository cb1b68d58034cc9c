package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

const (
	// slowPairs is how many pairs are named in words.
	slowPairs = 3
	// mostNodes is how many nodes a table of all pairs takes; of more the slowest
	// pairs are listed.
	mostNodes = 40
	// mostPairs is the length of that list.
	mostPairs = 50
)

// mesh is, for each traffic between pairs of nodes, which pair is slow.
func mesh(d *document) []block {
	var out []block
	for _, m := range d.Analysis.Meshes {
		if len(out) == 0 {
			out = append(out, para("Between which nodes it is slow. Each figure is the geometric mean over blocks, the share that of the median of all pairs: less is worse. Of pairs that are all alike 2.5 % are called slower by chance, at 95 %. Pairs of one round were measured at the same time; who was beside whom differs from block to block."))
		}
		out = append(out, headOf(d.meshName(m), m.Cell), para(d.slowest(m)))
		nodes := nodesOf(m)
		if len(nodes) > mostNodes {
			out = append(out, block{Table: d.slowTable(m)})
			continue
		}
		out = append(out, block{Table: d.matrix(m, nodes)})
		if t := d.efficiencyMatrix(m, nodes); t != nil {
			out = append(out, block{Table: t})
		}
	}
	return out
}

// meshName says what of a mesh.
func (d *document) meshName(m stat.Mesh) string {
	name := d.name(m.Cell.Network)
	if m.Cell.IsBaseline() {
		name = hostOf(m.Cell.Cluster)
	}
	return name + ", " + m.Cell.Path + ", " + m.Cell.Traffic()
}

// nodesOf are the nodes of a mesh, sorted.
func nodesOf(m stat.Mesh) []string {
	var nodes []string
	for _, p := range m.Pairs {
		nodes = append(nodes, p.Client, p.Server)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// slowest names the slowest of the pairs that are slower than the median by more
// than their interval.
func (d *document) slowest(m stat.Mesh) string {
	metric, _ := findMetric(m.Metric)
	var slow []string
	for _, p := range m.Pairs {
		if p.Slow {
			slow = append(slow, fmt.Sprintf("%s to %s %s (%s of the median)", p.Client, p.Server, metric.Format(p.Value.Value, halfwidth(p.Value)), share(p.OfMedian)))
		}
	}
	words := "No pair's whole interval is on the slow side of the median."
	if more := len(slow) - slowPairs; more > 0 {
		words = fmt.Sprintf("Slowest: %s and %d more that are slower than the median.", strings.Join(slow[:slowPairs], ", "), more)
	} else if len(slow) > 0 {
		words = "Slower than the median: " + strings.Join(slow, ", ") + "."
	}
	return fmt.Sprintf("%s of %s, median %s %s. %s", count(len(m.Pairs), "pair", "pairs"), count(len(nodesOf(m)), "node", "nodes"),
		metric.Label, metric.Format(m.Median, nan()), words)
}

func share(x float64) string { return unit.Percent(x, nan()) }

// matrix is client nodes × server nodes, shaded by the share of the median.
func (d *document) matrix(m stat.Mesh, nodes []string) *table {
	metric, _ := findMetric(m.Metric)
	return pairTable(m, nodes, metric.Label, func(p stat.MeshPair) cell {
		return cell{Text: metric.Format(p.Value.Value, nan()), Value: &p.Value.Value, Shade: shadeOf(p.OfMedian)}
	})
}

// efficiencyMatrix is the same of efficiencies; nil where no pair has any.
func (d *document) efficiencyMatrix(m stat.Mesh, nodes []string) *table {
	if !slices.ContainsFunc(m.Pairs, func(p stat.MeshPair) bool { return p.Efficiency != nil }) {
		return nil
	}
	return pairTable(m, nodes, "efficiency against the same nodes' own network", func(p stat.MeshPair) cell {
		if p.Efficiency == nil {
			return text("no baseline")
		}
		return cell{Text: share(p.Efficiency.Value), Value: &p.Efficiency.Value, Shade: shadeOf(p.Efficiency.Value)}
	})
}

func pairTable(m stat.Mesh, nodes []string, what string, say func(stat.MeshPair) cell) *table {
	t := &table{Caption: m.Cell.Network + " " + m.Cell.Path + ", " + m.Cell.Traffic() + ": " + what + ", client in rows, server in columns", Columns: []column{{Head: "from \\ to"}}, Of: &m.Cell}
	pairs := map[[2]string]stat.MeshPair{}
	for _, p := range m.Pairs {
		pairs[[2]string{p.Client, p.Server}] = p
	}
	for _, to := range nodes {
		t.Columns = append(t.Columns, column{Head: to, Number: true})
	}
	for _, from := range nodes {
		row := []cell{text(from)}
		for _, to := range nodes {
			p, have := pairs[[2]string{from, to}]
			switch {
			case have:
				row = append(row, say(p))
			case from == to:
				row = append(row, text(""))
			default:
				row = append(row, text("none"))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// slowTable lists the slowest pairs of a mesh that is too large for a matrix.
func (d *document) slowTable(m stat.Mesh) *table {
	metric, _ := findMetric(m.Metric)
	shown := m.Pairs[:min(mostPairs, len(m.Pairs))]
	t := &table{Caption: fmt.Sprintf("the %d slowest of %d pairs", len(shown), len(m.Pairs)), Of: &m.Cell,
		Columns: []column{{Head: "from"}, {Head: "to"}, {Head: metric.Label, Number: true}, {Head: "of the median", Number: true}}}
	for _, p := range shown {
		t.Rows = append(t.Rows, []cell{text(p.Client), text(p.Server), {Text: metric.Format(p.Value.Value, halfwidth(p.Value)), Value: &p.Value.Value},
			{Text: share(p.OfMedian), Value: &p.OfMedian, Shade: shadeOf(p.OfMedian)}})
	}
	return t
}

// meshLines are the meshes for a terminal: words, and with long the tables.
func (sc screen) meshLines(d *document, long bool) []string {
	var lines []string
	for _, m := range d.Analysis.Meshes {
		lines = append(lines, sc.wrap(d.meshName(m)+": "+d.slowest(m), "", "  ")...)
		if !long {
			continue
		}
		for _, b := range mesh(&document{Input: Input{Analysis: stat.Analysis{Meshes: []stat.Mesh{m}}, Environment: d.Environment}}) {
			if b.Table != nil {
				lines = append(append(lines, ""), sc.wrap(b.Table.Caption, "", "")...)
				lines = append(lines, sc.textTable(*b.Table)...)
			}
		}
		lines = append(lines, "")
	}
	return lines
}

// pairOf names the nodes of a cell of a pair; "" for others.
func pairOf(c result.Cell) string {
	if !c.IsPair() {
		return ""
	}
	return c.ClientNode + " to " + c.ServerNode
}
