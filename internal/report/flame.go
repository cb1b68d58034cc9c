package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/flame"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// Flames is the kernel's stacks of a campaign.
type Flames struct {
	Graphs []flame.Graph
	// Alike says what the cells of one graph do not have in common; "" where each
	// is of one cell.
	Alike string
	// Trouble says why some stacks are not in the graphs; "" where all are.
	Trouble string
}

// flames draws, for each traffic, the stacks of every network: one chart, in
// which the reader chooses the network.
func flames(d *document) []block {
	var out []block
	if d.Flames.Alike != "" {
		out = d.flamesAlike()
	} else {
		for _, g := range d.groups {
			var own []block
			for _, t := range g.traffics {
				own = append(own, d.flameChart(t.Traffic(), g.of(t), d.entries(g, t))...)
			}
			if len(own) > 0 {
				out = append(append(out, headOf(g.title(), g.at("", result.Cell{}))), own...)
			}
		}
	}
	if len(out) > 0 {
		out = slices.Insert(out, 0, para("Each function stands below the one that called it and is as wide as the CPU time that it and all below it took, both ends together. "+
			"Its colour is the component that its own time belongs to. What is at the same place and as wide in all networks is not the network. "+
			"Choose a function to look into it; with the keyboard the arrows go from function to function, Enter looks into one and Escape back. "+
			"Time of other programs is left out."))
	} else {
		out = d.orMissing(d.noFlames(), nil)
	}
	if d.Flames.Trouble != "" {
		out = append(out, para("Stacks that could not be read are not drawn: "+sentenceEnd(d.Flames.Trouble)))
	}
	return out
}

// noFlames says why there are no graphs.
func (d *document) noFlames() string {
	for _, why := range d.unexplained() {
		if rest, ok := strings.CutPrefix(why, unexplained); ok {
			return "No flame graph: " + rest
		}
	}
	return "No flame graph: this report was made without the recorded stacks."
}

// flamesAlike are the charts of graphs that many cells share: one for each kind.
func (d *document) flamesAlike() []block {
	kinds := map[result.Cell][]entry{}
	var order []result.Cell
	for _, n := range d.networks() {
		for _, x := range d.Flames.Graphs {
			if x.Cell.Network != n {
				continue
			}
			kind, name := x.Cell, d.name(n)
			kind.Network, kind.Cluster = "", ""
			if n == result.HostNetwork {
				name = hostOf(x.Cell.Cluster) + " (baseline)"
			}
			if kinds[kind] == nil {
				order = append(order, kind)
			}
			kinds[kind] = append(kinds[kind], entry{name, stat.CellSummary{Cell: x.Cell}})
		}
	}
	out := []block{para("A campaign of so many cells has " + d.Flames.Alike + " in one graph.")}
	slices.SortFunc(order, result.Cell.Compare)
	for _, kind := range order {
		title := kind.Traffic()
		if kind.Workload == "" {
			title = "All traffics"
		}
		out = append(out, d.flameChart(title, nil, kinds[kind])...)
	}
	return out
}

// flameChart is the graphs of some rows' cells; none where no row has any.
func (d *document) flameChart(traffic string, of *result.Cell, rows []entry) []block {
	c := &chart{Kind: drawnFlame, Title: traffic + ": where in the kernel", Of: of, X: axis{Title: "CPU time", Unit: "s"}}
	unread := 0
	for _, r := range rows {
		i := slices.IndexFunc(d.Flames.Graphs, func(x flame.Graph) bool { return x.Cell == r.summary.Cell })
		if i < 0 {
			continue
		}
		s := r.series()
		s.Stacks = &d.Flames.Graphs[i]
		c.Series = append(c.Series, s)
		unread = max(unread, s.Stacks.Unread)
	}
	if len(c.Series) == 0 {
		return nil
	}
	if unread > 0 {
		c.Words = fmt.Sprintf("Of the first samples alone: the stacks of up to %d more of a network were not read.", unread)
	}
	return []block{drawing(c)}
}

// dataStacks is a flame graph as the page's script reads it: a place for each
// function, each behind its caller.
type dataStacks struct {
	Samples int `json:"samples"`
	// Total is the CPU time in microseconds.
	Total     int64 `json:"total"`
	Function  []int `json:"f"` // places in pageData.Functions
	Component []int `json:"c"` // places in pageData.Components
	Depth     []int `json:"d"`
	// Times are, for each, what it and all below it took, and what it took itself,
	// in microseconds.
	Times []int64 `json:"t"`
}

// stacks puts a graph where the script finds it.
func (w *dataWriter) stacks(g *flame.Graph) *dataStacks {
	if g == nil {
		return nil
	}
	components := unit.Components()
	if w.data.Components == nil {
		for _, c := range components {
			w.data.Components = append(w.data.Components, c.Label)
		}
	}
	out := &dataStacks{Samples: g.Samples, Total: g.Microseconds}
	for _, n := range g.Nodes {
		at, ok := w.functions[n.Function]
		if !ok {
			at = len(w.data.Functions)
			w.functions[n.Function] = at
			w.data.Functions = append(w.data.Functions, clean(n.Function))
		}
		out.Function = append(out.Function, at)
		out.Component = append(out.Component, slices.IndexFunc(components, func(c unit.Component) bool { return c.Name == n.Component }))
		out.Depth = append(out.Depth, n.Depth)
		out.Times = append(out.Times, n.Microseconds, n.Own)
	}
	return out
}
