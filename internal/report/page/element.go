// Package page is what a page of a report is made of: elements (headings, words,
// tables, charts) that know no format and no campaign.
package page

import (
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// Element is one piece of a section, free of any format: exactly one of its
// fields is set. A format writes every kind of element, so a section is written
// once and says the same everywhere.
type Element struct {
	Head  string // a heading inside the section
	Para  string
	List  []string
	Table *Table
	Code  string // a command to paste
	// Chart is drawn; formats that cannot draw leave it out.
	Chart *Chart
	// Of is what a heading is about, and ListOf what each item of List is; nil
	// is the whole campaign. Tables and charts say it themselves. A report that
	// can be filtered hides what is about something else.
	Of     *result.Cell
	ListOf []*result.Cell
}

// Head is a heading.
func Head(s string) Element { return Element{Head: s} }

// Para is a paragraph.
func Para(s string) Element { return Element{Para: s} }

// List is a list of items.
func List(items []string) Element { return Element{List: items} }

// Code is a command to paste.
func Code(s string) Element { return Element{Code: s} }

// Drawing is a chart.
func Drawing(c *Chart) Element { return Element{Chart: c} }

// HeadOf is a heading that is about a cell's factors.
func HeadOf(s string, of result.Cell) Element { return Element{Head: s, Of: &of} }

// MapText is the element with all of its text changed by f.
func (b Element) MapText(f func(string) string) Element {
	b.Head, b.Para, b.Code, b.List = f(b.Head), f(b.Para), f(b.Code), MapAll(b.List, f)
	if b.Chart != nil {
		b.Chart = b.Chart.mapText(f)
	}
	if b.Table == nil {
		return b
	}
	t := *b.Table
	t.Caption, t.Notes, t.Columns, t.Rows = f(t.Caption), MapAll(t.Notes, f), slices.Clone(t.Columns), slices.Clone(t.Rows)
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

// MapAll changes each text by f.
func MapAll(in []string, f func(string) string) []string {
	var out []string
	for _, s := range in {
		out = append(out, f(s))
	}
	return out
}
