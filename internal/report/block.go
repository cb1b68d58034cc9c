package report

import (
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// block is one piece of a section, free of any format: exactly one of its
// fields is set. A format writes every kind of block, so a section is written
// once and says the same everywhere.
type block struct {
	Head  string // a heading inside the section
	Para  string
	List  []string
	Table *table
	Code  string // a command to paste
	// Chart is drawn; formats that cannot draw leave it out.
	Chart *chart
	// Of is what a heading is about, and ListOf what each item of List is; nil
	// is the whole campaign. Tables and charts say it themselves. A report that
	// can be filtered hides what is about something else.
	Of     *result.Cell
	ListOf []*result.Cell
}

func head(s string) block       { return block{Head: s} }
func para(s string) block       { return block{Para: s} }
func list(items []string) block { return block{List: items} }
func code(s string) block       { return block{Code: s} }
func drawing(c *chart) block    { return block{Chart: c} }

// headOf is a heading that is about a cell's factors.
func headOf(s string, of result.Cell) block { return block{Head: s, Of: &of} }

// mapText is the block with all of its text changed by f.
func (b block) mapText(f func(string) string) block {
	b.Head, b.Para, b.Code, b.List = f(b.Head), f(b.Para), f(b.Code), mapAll(b.List, f)
	if b.Chart != nil {
		b.Chart = b.Chart.mapText(f)
	}
	if b.Table == nil {
		return b
	}
	t := *b.Table
	t.Caption, t.Notes, t.Columns, t.Rows = f(t.Caption), mapAll(t.Notes, f), slices.Clone(t.Columns), slices.Clone(t.Rows)
	for i, c := range t.Columns {
		t.Columns[i].Head, t.Columns[i].Sub = f(c.Head), f(c.Sub)
	}
	for i, r := range t.Rows {
		t.Rows[i] = slices.Clone(r)
		for k := range r {
			t.Rows[i][k].Text = f(r[k].Text)
		}
	}
	b.Table = &t
	return b
}

func mapAll(in []string, f func(string) string) []string {
	var out []string
	for _, s := range in {
		out = append(out, f(s))
	}
	return out
}

// table is rows under named columns. The first cell of a row names the row.
type table struct {
	Caption string
	Columns []column
	Rows    [][]cell
	// Notes explain the marks in the table.
	Notes []string
	// Legend asks for the colour scale of efficiency below the table.
	Legend bool
	// Of are the factors that all of the table has in common; nil: none.
	Of *result.Cell
	// Drawn is the kind of chart that the table can be saved as; "": none.
	Drawn string
}

// column is a column's heading, and the smaller words below it.
type column struct {
	Head, Sub string
	// Number aligns the column to the right.
	Number bool
	// Wide columns hold sentences.
	Wide bool
	// Joined columns stay beside the one before them, where a table is broken.
	Joined bool
	// Of are the factors that the column is about, beside the table's; nil: none.
	Of *result.Cell
}

// cell is what one place of a table says.
type cell struct {
	Text string
	// Value is the number behind Text, in base units; nil where Text is no number.
	Value *float64
	// Rank is the network's rank in this column: "2", "=2" when shared; or "".
	Rank string
	// Shade is the step of the efficiency scale, 1 (lowest) to Shades; 0: none.
	Shade int
	// Bar draws an interval; nil: none.
	Bar *bar
	// Of, of the first cell of a row, are the factors that the row is about,
	// beside the table's; nil: none.
	Of *result.Cell
}

func text(s string) cell { return cell{Text: s} }

// nameOf is the first cell of a row that is about some factors.
func nameOf(s string, of result.Cell) cell { return cell{Text: s, Of: &of} }

// ofNetwork is a network of a cluster alone; "" where the testbed is none.
func ofNetwork(name, cluster string) result.Cell { return result.Cell{Network: name, Cluster: cluster} }

// bar is an interval on a scale that all bars of a table share; the figures
// are shares of the scale, 0 to 1.
type bar struct {
	Low, Mid, High float64
	// Label says the bar in words, for those who cannot see it.
	Label string
}
