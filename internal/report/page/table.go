package page

import (
	"github.com/cnibench/cnibench/internal/result"
)

// Table is rows under named columns. The first field of a row names the row.
type Table struct {
	Caption string
	Columns []Column
	Rows    [][]Field
	// Notes explain the marks in the table.
	Notes []string
	// Legend asks for the colour scale of efficiency below the table.
	Legend bool
	// Of are the factors that all of the table has in common; nil: none.
	Of *result.Cell
	// Drawn is the kind of chart that the table can be saved as; "": none.
	Drawn string
}

// Column is a column's heading, and the smaller words below it.
type Column struct {
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

// Field is what is in one column of a row.
type Field struct {
	Text string
	// Value is the number behind Text, in base units; nil where Text is no number.
	Value *float64
	// Rank is the network's rank in this column: "2nd", "2nd–4th" when tied, "link" where
	// all networks fill the link; or "".
	Rank string
	// Shade is the step of the efficiency scale, 1 (lowest) to Shades; 0: none.
	Shade int
	// Bar draws an interval; nil: none.
	Bar *Bar
	// Of, of the first field of a row, are the factors that the row is about,
	// beside the table's; nil: none.
	Of *result.Cell
}

// Text is a field of words alone.
func Text(s string) Field { return Field{Text: s} }

// NameOf is the first field of a row that is about some factors.
func NameOf(s string, of result.Cell) Field { return Field{Text: s, Of: &of} }

// Bar is an interval on a scale that all bars of a table share; the figures
// are shares of the scale, 0 to 1.
type Bar struct {
	Low, Mid, High float64
	// Label says the bar in words, for those who cannot see it.
	Label string
}
