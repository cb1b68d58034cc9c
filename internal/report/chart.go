package report

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/flame"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// The kinds of charts. drawnHeat and drawnIntervals are tables as charts.
const (
	drawnLines     = "lines"  // a line for each series over numbers
	drawnBars      = "bars"   // a bar for each series in each category
	drawnStack     = "stack"  // a bar for each category, a part for each series
	drawnFlame     = "flame"  // functions below their callers, as wide as their CPU time
	drawnHeat      = "heat"   // rows × columns, coloured by efficiency
	drawnIntervals = "ranges" // a bar and its interval for each row
)

// The scales of an axis; "" is linear, from 0 where the values are amounts.
const (
	scaleLog   = "log"
	scaleLog2  = "log2"
	scaleNines = "nines" // shares beyond, 0.1 for 90 %: 90, 99 and 99.9 % are equally far apart
	scaleFree  = "free"  // linear, from the least value
)

// chart is a drawing of numbers, free of any format that draws.
type chart struct {
	Kind, Title string
	// Words say what is drawn, for those who cannot see it.
	Words string
	X, Y  axis
	// Categories are the places along a chart of bars.
	Categories []category
	Series     []series
	// Limit is a line across the chart; nil: none.
	Limit *limit
	// Missing says why there is nothing to draw; Series is then empty.
	Missing string
	// Of are the factors that all of the chart has in common; nil: none.
	Of *result.Cell
}

// axis is what an axis is of, with its base unit.
type axis struct{ Title, Unit, Scale string }

// category is a place for bars.
type category struct {
	Name string
	Of   *result.Cell
}

// series is what is drawn in one colour: X or a category for each Y. NaN is a
// value that was not measured. Low and High bound Y; both nil: nothing does.
type series struct {
	Name         string
	Network      string // whose colour it has; "": one of its own
	Of           *result.Cell
	X            []float64
	Y, Low, High []float64
	// Tint is the place of its colour among those of stacks, from 1; 0 is its own
	// place in the chart.
	Tint int
	// Stacks is what a flame graph draws; nil in other charts.
	Stacks *flame.Graph
}

type limit struct {
	Value float64
	Label string
}

// missing is a chart that cannot be drawn, and why.
func missing(title, why string, of *result.Cell) *chart {
	return &chart{Title: title, Missing: why, Of: of}
}

// orMissing are the blocks of a section, or where it has none, why.
func (d *document) orMissing(why string, blocks []block) []block {
	if len(blocks) == 0 && len(d.Analysis.Cells) > 0 {
		return []block{drawing(missing("", why, nil))}
	}
	return blocks
}

// without says which networks a chart lacks, and why; "" where it has all.
func without(rows []entry, has func(entry) bool, why string) string {
	var names []string
	for _, r := range rows {
		if !has(r) {
			names = append(names, r.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " Not drawn: " + and(names) + ", " + why + "."
}

// series is an empty one of a network or the baseline.
func (e entry) series() series {
	of := e.of()
	return series{Name: e.name, Network: of.Network, Of: &of}
}

// add appends a value with its interval.
func (s *series) add(e stat.Estimate) {
	low, high, ok := e.Interval()
	if !ok {
		low, high = math.NaN(), math.NaN()
	}
	s.Y, s.Low, s.High = append(s.Y, e.Value), append(s.Low, low), append(s.High, high)
}

// addNothing appends a value that was not measured.
func (s *series) addNothing() {
	nan := math.NaN()
	s.Y, s.Low, s.High = append(s.Y, nan), append(s.Low, nan), append(s.High, nan)
}

// mapText is the chart with all of its text changed by f.
func (c *chart) mapText(f func(string) string) *chart {
	out := *c
	out.Title, out.Words, out.Missing = f(c.Title), f(c.Words), f(c.Missing)
	out.X.Title, out.Y.Title = f(c.X.Title), f(c.Y.Title)
	out.Categories, out.Series = slices.Clone(c.Categories), slices.Clone(c.Series)
	for i, x := range c.Categories {
		out.Categories[i].Name = f(x.Name)
	}
	for i, s := range c.Series {
		out.Series[i].Name = f(s.Name)
	}
	if c.Limit != nil {
		out.Limit = &limit{c.Limit.Value, f(c.Limit.Label)}
	}
	return &out
}
