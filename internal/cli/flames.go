package cli

import (
	"github.com/cnibench/cnibench/internal/flame"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
)

// burning gathers the stacks of a result directory for the report's flame graphs.
type burning struct {
	dir     string
	graphs  *flame.Graphs
	trouble error // the first; a report is made all the same
}

func newFlames(dir string, cells []result.Cell) *burning {
	b := &burning{dir: dir}
	rules, err := probe.NewRules()
	if err != nil {
		b.trouble = err
		return b
	}
	b.graphs = flame.NewGraphs(cells, rules.AttributeFolded)
	return b
}

func (b *burning) add(s *result.Sample) {
	if b.graphs == nil || s.Status != result.StatusOK || !hasStacks(s) || !b.graphs.Sample(s.Cell) {
		return
	}
	if err := result.EachStack(b.dir, s, func(x result.Stack) { b.graphs.Add(s.Cell, x) }); err != nil && b.trouble == nil {
		b.trouble = err
	}
}

// hasStacks reports whether stacks were sampled during a sample.
func hasStacks(s *result.Sample) bool {
	for _, values := range s.Probes {
		if values["stack_samples"] > 0 {
			return true
		}
	}
	return false
}

func (b *burning) all() report.Flames {
	var out report.Flames
	if b.graphs != nil {
		out.Graphs, out.Alike = b.graphs.All(), b.graphs.Alike
	}
	if b.trouble != nil {
		out.Trouble = b.trouble.Error()
	}
	return out
}
