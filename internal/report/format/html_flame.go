package format

import (
	"slices"

	"github.com/cnibench/cnibench/internal/flame"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/unit"
)

// dataStacks is a flame graph as the page's script reads it: an entry for each
// function, each behind its caller.
type dataStacks struct {
	Samples int `json:"samples"`
	// Total is the CPU time in microseconds.
	Total     int64 `json:"total"`
	Function  []int `json:"f"` // indexes in pageData.Functions
	Component []int `json:"c"` // indexes in pageData.Components
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
			w.data.Functions = append(w.data.Functions, page.Clean(n.Function))
		}
		out.Function = append(out.Function, at)
		out.Component = append(out.Component, slices.IndexFunc(components, func(c unit.Component) bool { return c.Name == n.Component }))
		out.Depth = append(out.Depth, n.Depth)
		out.Times = append(out.Times, n.Microseconds, n.Own)
	}
	return out
}
