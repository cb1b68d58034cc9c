package section

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
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

// Mesh is, for each traffic between pairs of nodes, which pair is slow.
func Mesh(d *report.Document) []page.Element {
	var out []page.Element
	for _, m := range d.Analysis.Meshes {
		if len(out) == 0 {
			out = append(out, page.Para("Between which nodes it is slow. Each figure is the geometric mean over blocks, the share that of the median of all pairs: less is worse. Of pairs that are all alike 2.5 % are called slower by chance, at 95 %. Pairs of one round were measured at the same time; who was beside whom differs from block to block."))
		}
		out = append(out, page.HeadOf(MeshName(d, m), m.Cell), page.Para(Slowest(d, m)))
		nodes := nodesOf(m)
		if len(nodes) > mostNodes {
			out = append(out, page.Element{Table: slowTable(d, m)})
			continue
		}
		out = append(out, page.Element{Table: matrix(d, m, nodes)})
		if t := efficiencyMatrix(d, m, nodes); t != nil {
			out = append(out, page.Element{Table: t})
		}
	}
	return out
}

// MeshName says what of a mesh.
func MeshName(d *report.Document, m stat.Mesh) string {
	name := d.Name(m.Cell.Network)
	if m.Cell.IsBaseline() {
		name = report.HostOf(m.Cell.Cluster)
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

// Slowest names the slowest of the pairs that are slower than the median by more
// than their interval.
func Slowest(d *report.Document, m stat.Mesh) string {
	metric, _ := report.FindMetric(m.Metric)
	var slow []string
	for _, p := range m.Pairs {
		if p.Slow {
			slow = append(slow, fmt.Sprintf("%s to %s %s (%s of the median)", p.Client, p.Server, metric.Format(p.Value.Value, report.Halfwidth(p.Value)), share(p.OfMedian)))
		}
	}
	words := "No pair's whole interval is on the slow side of the median."
	if more := len(slow) - slowPairs; more > 0 {
		words = fmt.Sprintf("Slowest: %s and %d more that are slower than the median.", strings.Join(slow[:slowPairs], ", "), more)
	} else if len(slow) > 0 {
		words = "Slower than the median: " + strings.Join(slow, ", ") + "."
	}
	return fmt.Sprintf("%s of %s, median %s %s. %s", report.Count(len(m.Pairs), "pair", "pairs"), report.Count(len(nodesOf(m)), "node", "nodes"),
		metric.Label, metric.Format(m.Median, math.NaN()), words)
}

func share(x float64) string { return unit.Percent(x, math.NaN()) }

// matrix is client nodes × server nodes, shaded by the share of the median.
func matrix(d *report.Document, m stat.Mesh, nodes []string) *page.Table {
	metric, _ := report.FindMetric(m.Metric)
	return pairTable(m, nodes, metric.Label, func(p stat.MeshPair) page.Field {
		return page.Field{Text: metric.Format(p.Value.Value, math.NaN()), Value: &p.Value.Value, Shade: page.ShadeOf(p.OfMedian)}
	})
}

// efficiencyMatrix is the same of efficiencies; nil where no pair has any.
func efficiencyMatrix(d *report.Document, m stat.Mesh, nodes []string) *page.Table {
	if !slices.ContainsFunc(m.Pairs, func(p stat.MeshPair) bool { return p.Efficiency != nil }) {
		return nil
	}
	return pairTable(m, nodes, "efficiency against the same nodes' own network", func(p stat.MeshPair) page.Field {
		if p.Efficiency == nil {
			return page.Text("no baseline")
		}
		return page.Field{Text: share(p.Efficiency.Value), Value: &p.Efficiency.Value, Shade: page.ShadeOf(p.Efficiency.Value)}
	})
}

func pairTable(m stat.Mesh, nodes []string, what string, say func(stat.MeshPair) page.Field) *page.Table {
	t := &page.Table{Caption: m.Cell.Network + " " + m.Cell.Path + ", " + m.Cell.Traffic() + ": " + what + ", client in rows, server in columns", Columns: []page.Column{{Head: "from \\ to"}}, Of: &m.Cell}
	pairs := map[[2]string]stat.MeshPair{}
	for _, p := range m.Pairs {
		pairs[[2]string{p.Client, p.Server}] = p
	}
	for _, to := range nodes {
		t.Columns = append(t.Columns, page.Column{Head: to, Number: true})
	}
	for _, from := range nodes {
		row := []page.Field{page.Text(from)}
		for _, to := range nodes {
			p, have := pairs[[2]string{from, to}]
			switch {
			case have:
				row = append(row, say(p))
			case from == to:
				row = append(row, page.Text(""))
			default:
				row = append(row, page.Text("none"))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// slowTable lists the slowest pairs of a mesh that is too large for a matrix.
func slowTable(d *report.Document, m stat.Mesh) *page.Table {
	metric, _ := report.FindMetric(m.Metric)
	shown := m.Pairs[:min(mostPairs, len(m.Pairs))]
	t := &page.Table{Caption: fmt.Sprintf("the %d slowest of %d pairs", len(shown), len(m.Pairs)), Of: &m.Cell,
		Columns: []page.Column{{Head: "from"}, {Head: "to"}, {Head: metric.Label, Number: true}, {Head: "of the median", Number: true}}}
	for _, p := range shown {
		t.Rows = append(t.Rows, []page.Field{page.Text(p.Client), page.Text(p.Server), {Text: metric.Format(p.Value.Value, report.Halfwidth(p.Value)), Value: &p.Value.Value},
			{Text: share(p.OfMedian), Value: &p.OfMedian, Shade: page.ShadeOf(p.OfMedian)}})
	}
	return t
}
