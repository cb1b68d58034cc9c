package format

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
)

// writeMarkdown writes GitHub's Markdown, for a pull request: the answer open,
// the rest folded.
func writeMarkdown(w io.Writer, d *report.Document, _ screen.Options) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "## %s\n\n%s\n", MarkdownText(d.Title()), MarkdownText(d.Summary()))
	for _, s := range section.List() {
		elements := s.Elements(d, false)
		if len(elements) == 0 {
			continue
		}
		if s.Folded {
			fmt.Fprintf(b, "\n<details>\n<summary>%s</summary>\n", MarkdownText(s.Title))
		} else {
			fmt.Fprintf(b, "\n### %s\n", MarkdownText(s.Title))
		}
		for _, e := range elements {
			b.WriteString("\n" + MarkdownElement(e))
		}
		if s.Folded {
			b.WriteString("\n</details>\n")
		}
	}
	return b.Flush()
}

// MarkdownElement is an element as Markdown.
func MarkdownElement(e page.Element) string {
	switch {
	case e.Table != nil:
		return MarkdownTable(*e.Table)
	case len(e.List) > 0:
		s := ""
		for _, item := range e.List {
			s += "- " + MarkdownText(item) + "\n"
		}
		return s
	case e.Code != "":
		// An indented block cannot be left by anything in the text.
		return "    " + page.Clean(e.Code) + "\n"
	}
	if e.Head != "" {
		return "#### " + MarkdownText(e.Head) + "\n"
	}
	return MarkdownText(e.Para) + "\n"
}

// MarkdownTable leaves out drawn columns, which are in the figures already.
func MarkdownTable(t page.Table) string {
	var shown []int
	for i := range t.Columns {
		drawn := false
		for _, r := range t.Rows {
			drawn = drawn || r[i].Bar != nil
		}
		if !drawn {
			shown = append(shown, i)
		}
	}
	s := "|"
	if t.Caption != "" {
		s = "**" + MarkdownText(t.Caption) + "**\n\n|"
	}
	rule := "|"
	for _, i := range shown {
		c := t.Columns[i]
		head := MarkdownText(c.Head)
		if c.Sub != "" {
			head += "<br>" + MarkdownText(c.Sub)
		}
		s += " " + head + " |"
		if c.Number {
			rule += " ---: |"
		} else {
			rule += " --- |"
		}
	}
	s += "\n" + rule + "\n"
	for _, r := range t.Rows {
		s += "|"
		for _, i := range shown {
			s += " " + MarkdownText(r[i].Text)
			if r[i].Rank != "" {
				s += " (" + MarkdownText(r[i].Rank) + ")"
			}
			s += " |"
		}
		s += "\n"
	}
	for _, n := range t.Notes {
		s += "\n" + MarkdownText(n) + "\n"
	}
	return s
}

// MarkdownText makes s plain text in Markdown: no markup, no HTML, no table
// edge, and nobody notified by an @.
func MarkdownText(s string) string {
	var b strings.Builder
	runes := []rune(page.Clean(s))
	word := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]))
	}
	for i, r := range runes {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@':
			b.WriteString("@<!-- -->")
		case r == '_' && word(i-1) && word(i+1): // tcp_stream: no markup
			b.WriteRune(r)
		case strings.ContainsRune("\\`*_[]|#~", r):
			b.WriteString("\\" + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}

// WriteMarkdownPage writes a page as Markdown, nothing folded.
func WriteMarkdownPage(w io.Writer, p page.Page) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "## %s\n\n%s\n", MarkdownText(p.Title), MarkdownText(p.Summary))
	for _, s := range p.Sections {
		fmt.Fprintf(b, "\n### %s\n", MarkdownText(s.Title))
		for _, e := range s.Elements {
			b.WriteString("\n" + MarkdownElement(e))
		}
	}
	return b.Flush()
}
