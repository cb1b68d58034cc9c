package screen

import (
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/report/page"
)

// WritePage writes a page for a terminal.
func WritePage(w io.Writer, p page.Page, opt Options) error {
	sc := New(opt)
	lines := sc.Title(p.Title)
	lines = append(lines, sc.Wrap(p.Summary, "", "")...)
	for _, s := range p.Sections {
		lines = append(lines, "", sc.Bold(sc.Say(s.Title)))
		for _, b := range s.Elements {
			lines = append(lines, sc.element(b.MapText(page.Clean))...)
		}
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// element is an element as lines.
func (sc Screen) element(b page.Element) []string {
	switch {
	case b.Head != "":
		return append([]string{""}, sc.Wrap(b.Head, "", "")...)
	case b.Table != nil:
		var lines []string
		if b.Table.Caption != "" {
			lines = sc.Wrap(b.Table.Caption, "", "")
		}
		if last := len(b.Table.Columns) - 1; b.Table.Columns[last].Wide {
			lines = append(lines, sc.sentences(*b.Table)...)
		} else {
			lines = append(lines, sc.Table(*b.Table)...)
		}
		for _, n := range b.Table.Notes {
			lines = append(lines, sc.Wrap(n, "  ", "  ")...)
		}
		return lines
	case len(b.List) > 0:
		var lines []string
		for _, item := range b.List {
			lines = append(lines, sc.Wrap(item, "- ", "  ")...)
		}
		return lines
	case b.Code != "":
		return []string{"  " + sc.Say(b.Code)}
	}
	return sc.Wrap(b.Para, "", "")
}

// sentences writes a table whose last column is a sentence: each row is its
// other fields in a line, and the sentence below.
func (sc Screen) sentences(t page.Table) []string {
	var lines []string
	last := len(t.Columns) - 1
	for _, r := range t.Rows {
		var names []string
		for _, c := range r[:last] {
			names = append(names, c.Text)
		}
		lines = append(lines, sc.Wrap(strings.Join(names, ": "), "", "  ")...)
		if r[last].Text != "" {
			lines = append(lines, sc.Wrap(r[last].Text, "    ", "    ")...)
		}
	}
	return lines
}
