package report

import "slices"

// block is one piece of a section, free of any format: exactly one of its
// fields is set. A format writes every kind of block, so a section is written
// once and says the same everywhere.
type block struct {
	Head  string // a heading inside the section
	Para  string
	List  []string
	Table *table
	Code  string // a command to paste
}

func head(s string) block       { return block{Head: s} }
func para(s string) block       { return block{Para: s} }
func list(items []string) block { return block{List: items} }
func code(s string) block       { return block{Code: s} }

// mapText is the block with all of its text changed by f.
func (b block) mapText(f func(string) string) block {
	b.Head, b.Para, b.Code, b.List = f(b.Head), f(b.Para), f(b.Code), mapAll(b.List, f)
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
}

// column is a column's heading, and the smaller words below it.
type column struct {
	Head, Sub string
	// Number aligns the column to the right.
	Number bool
	// Wide columns hold sentences.
	Wide bool
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
}

func text(s string) cell { return cell{Text: s} }

// bar is an interval on a scale that all bars of a table share; the figures
// are shares of the scale, 0 to 1.
type bar struct {
	Low, Mid, High float64
	// Label says the bar in words, for those who cannot see it.
	Label string
}
