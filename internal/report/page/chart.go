package page

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/flame"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// The kinds of charts. DrawnHeat and DrawnIntervals are tables as charts.
const (
	DrawnLines     = "lines"  // a line for each series over numbers
	DrawnBars      = "bars"   // a bar for each series in each category
	DrawnStack     = "stack"  // a bar for each category, a part for each series
	DrawnFlame     = "flame"  // functions below their callers, as wide as their CPU time
	DrawnHeat      = "heat"   // rows × columns, coloured by efficiency
	DrawnIntervals = "ranges" // a bar and its interval for each row
)

// The scales of an axis; "" is linear, from 0 where the values are amounts.
const (
	ScaleLog   = "log"
	ScaleLog2  = "log2"
	ScaleNines = "nines" // shares beyond, 0.1 for 90 %: 90, 99 and 99.9 % are equally far apart
	ScaleFree  = "free"  // linear, from the least value
)

// Chart is a drawing of numbers, free of any format that draws.
type Chart struct {
	Kind, Title string
	// Words say what is drawn, for those who cannot see it.
	Words string
	X, Y  Axis
	// Categories are the places along a chart of bars.
	Categories []Category
	Series     []Series
	// Limit is a line across the chart; nil: none.
	Limit *Limit
	// Missing says why there is nothing to draw; Series is then empty.
	Missing string
	// Of are the factors that all of the chart has in common; nil: none.
	Of *result.Cell
}

// Axis is what an axis is of, with its base unit.
type Axis struct{ Title, Unit, Scale string }

// Category is a place for bars.
type Category struct {
	Name string
	Of   *result.Cell
}

// Series is what is drawn in one colour: X or a category for each Y. NaN is a
// value that was not measured. Low and High bound Y; both nil: nothing does.
type Series struct {
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

// Limit is a value that a line across a chart shows, and its words.
type Limit struct {
	Value float64
	Label string
}

// Missing is a chart that cannot be drawn, and why.
func Missing(title, why string, of *result.Cell) *Chart {
	return &Chart{Title: title, Missing: why, Of: of}
}

// Add appends a value with its interval.
func (s *Series) Add(e estimate.Estimate) {
	low, high, ok := e.Interval()
	if !ok {
		low, high = math.NaN(), math.NaN()
	}
	s.Y, s.Low, s.High = append(s.Y, e.Value), append(s.Low, low), append(s.High, high)
}

// AddNothing appends a value that was not measured.
func (s *Series) AddNothing() {
	nan := math.NaN()
	s.Y, s.Low, s.High = append(s.Y, nan), append(s.Low, nan), append(s.High, nan)
}

// mapText is the chart with all of its text changed by f.
func (c *Chart) mapText(f func(string) string) *Chart {
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
		out.Limit = &Limit{c.Limit.Value, f(c.Limit.Label)}
	}
	return &out
}
