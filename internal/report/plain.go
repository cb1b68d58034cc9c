package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// writePlainTerminal writes a page's blocks for a terminal.
func writePlainTerminal(w io.Writer, p page, opt Options) error {
	sc := newScreen(opt)
	lines := sc.wrap(p.Title, "", "")
	lines[0] = sc.bold(lines[0])
	lines = append(lines, sc.wrap(p.Summary, "", "")...)
	for _, s := range p.Sections {
		lines = append(lines, "", sc.bold(sc.say(s.Title)))
		for _, b := range s.Blocks {
			lines = append(lines, sc.plainBlock(b.mapText(clean))...)
		}
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

func (sc screen) plainBlock(b block) []string {
	switch {
	case b.Head != "":
		return append([]string{""}, sc.wrap(b.Head, "", "")...)
	case b.Table != nil:
		var lines []string
		if b.Table.Caption != "" {
			lines = sc.wrap(b.Table.Caption, "", "")
		}
		if last := len(b.Table.Columns) - 1; b.Table.Columns[last].Wide {
			lines = append(lines, sc.sentences(*b.Table)...)
		} else {
			lines = append(lines, sc.textTable(*b.Table)...)
		}
		for _, n := range b.Table.Notes {
			lines = append(lines, sc.wrap(n, "  ", "  ")...)
		}
		return lines
	case len(b.List) > 0:
		var lines []string
		for _, item := range b.List {
			lines = append(lines, sc.wrap(item, "- ", "  ")...)
		}
		return lines
	case b.Code != "":
		return []string{"  " + sc.say(b.Code)}
	}
	return sc.wrap(b.Para, "", "")
}

// sentences writes a table whose last column is a sentence: each row is its
// other cells in a line, and the sentence below.
func (sc screen) sentences(t table) []string {
	var lines []string
	last := len(t.Columns) - 1
	for _, r := range t.Rows {
		var names []string
		for _, c := range r[:last] {
			names = append(names, c.Text)
		}
		lines = append(lines, sc.wrap(strings.Join(names, ": "), "", "  ")...)
		if r[last].Text != "" {
			lines = append(lines, sc.wrap(r[last].Text, "    ", "    ")...)
		}
	}
	return lines
}

// writePlainMarkdown writes a page's blocks as Markdown, nothing folded.
func writePlainMarkdown(w io.Writer, p page) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "## %s\n\n%s\n", markdownText(p.Title), markdownText(p.Summary))
	for _, s := range p.Sections {
		fmt.Fprintf(b, "\n### %s\n", markdownText(s.Title))
		for _, bl := range s.Blocks {
			b.WriteString("\n" + markdownBlock(bl))
		}
	}
	return b.Flush()
}
