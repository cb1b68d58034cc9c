package format

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
)

// choice is a factor that readers can filter by, or several that belong together. Of
// a cell that says nothing of it, value is "".
type choice struct {
	name    string
	factors []result.Factor
}

// choices are those of the table of factors, in the order in which the filter has them.
func choices() []choice {
	var out []choice
	for _, f := range result.FactorsBy(func(o result.Order) int { return o.Filter }) {
		if last := len(out) - 1; last >= 0 && out[last].name == f.Filter {
			out[last].factors = append(out[last].factors, f)
			continue
		}
		out = append(out, choice{f.Filter, []result.Factor{f}})
	}
	return out
}

// value is what a cell says of a choice. A word for a cell without
// the factor is shown for cells with a workload only.
func (x choice) value(c result.Cell) string {
	unsaid := x.factors[0].Unsaid
	if unsaid != "" && c.Workload == "" {
		return ""
	}
	var words []string
	for _, f := range x.factors {
		if s := filterWords(f, c); s != "" {
			words = append(words, s)
		}
	}
	return cmp.Or(strings.Join(words, " "), unsaid)
}

// filterWords are a factor's value and its unit, or the name of a switch that is on.
func filterWords(f result.Factor, c result.Cell) string {
	text := f.Text(c)
	switch {
	case f.FilterWords != nil:
		return f.FilterWords(c)
	case text == "":
		return ""
	case f.IsSwitch():
		return f.Name
	}
	return strings.TrimSpace(text + " " + f.FilterUnit)
}

// factor is a choice with more than one value in the report.
type factor struct {
	choice
	Values []string
}

// filter tells what everything in a report is about, as indexes in lists.
type filter struct {
	factors []factor
	// abouts are factor and value in turns, each combination once.
	abouts  [][]int
	known   map[result.Cell]int
	indexes map[string]int // of each text in abouts
}

// newFilter gathers the factors that differ between the cells of a report.
func newFilter(d *report.Document) *filter {
	f := &filter{known: map[result.Cell]int{}, indexes: map[string]int{}, abouts: [][]int{}}
	for _, c := range choices() {
		x := factor{choice: c}
		add := func(cell result.Cell) {
			if v := page.Clean(c.value(cell)); v != "" && !slices.Contains(x.Values, v) {
				x.Values = append(x.Values, v)
			}
		}
		for _, g := range d.Groups {
			add(g.At("", result.Cell{}))
			for _, t := range g.Traffics {
				add(*g.Of(t))
			}
			for _, cluster := range g.BaseClusters() {
				add(report.OfNetwork(result.HostNetwork, cluster))
			}
			for _, n := range g.Networks {
				add(report.OfNetwork(n, g.Clusters[n]))
			}
		}
		if len(x.Values) > 1 {
			f.factors = append(f.factors, x)
		}
	}
	return f
}

// about is the index of what a cell says in the list of abouts; -1 where it says
// nothing that can be filtered by.
func (f *filter) about(c *result.Cell) int {
	if c == nil {
		return -1
	}
	if i, ok := f.known[*c]; ok {
		return i
	}
	var said []int
	for i, x := range f.factors {
		if v := slices.Index(x.Values, page.Clean(x.value(*c))); v >= 0 {
			said = append(said, i, v)
		}
	}
	at := -1
	if len(said) > 0 {
		key, found := fmt.Sprint(said), false
		if at, found = f.indexes[key]; !found {
			at = len(f.abouts)
			f.abouts, f.indexes[key] = append(f.abouts, said), at
		}
	}
	f.known[*c] = at
	return at
}
