package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// writeMarkdown writes GitHub's Markdown, for a pull request: the answer open,
// the rest folded.
func writeMarkdown(w io.Writer, d *document, _ Options) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "## %s\n\n%s\n", markdownText(d.title()), markdownText(d.summary()))
	for _, s := range sections() {
		blocks := s.blocks(d, false)
		if len(blocks) == 0 {
			continue
		}
		if s.Folded {
			fmt.Fprintf(b, "\n<details>\n<summary>%s</summary>\n", markdownText(s.Title))
		} else {
			fmt.Fprintf(b, "\n### %s\n", markdownText(s.Title))
		}
		for _, bl := range blocks {
			b.WriteString("\n" + markdownBlock(bl))
		}
		if s.Folded {
			b.WriteString("\n</details>\n")
		}
	}
	return b.Flush()
}

func markdownBlock(bl block) string {
	switch {
	case bl.Table != nil:
		return markdownTable(*bl.Table)
	case len(bl.List) > 0:
		s := ""
		for _, item := range bl.List {
			s += "- " + markdownText(item) + "\n"
		}
		return s
	case bl.Code != "":
		// An indented block cannot be left by anything in the text.
		return "    " + clean(bl.Code) + "\n"
	}
	if bl.Head != "" {
		return "#### " + markdownText(bl.Head) + "\n"
	}
	return markdownText(bl.Para) + "\n"
}

// markdownTable leaves out drawn columns, which are in the figures already.
func markdownTable(t table) string {
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
		s = "**" + markdownText(t.Caption) + "**\n\n|"
	}
	rule := "|"
	for _, i := range shown {
		c := t.Columns[i]
		head := markdownText(c.Head)
		if c.Sub != "" {
			head += "<br>" + markdownText(c.Sub)
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
			s += " " + markdownText(r[i].Text)
			if r[i].Rank != "" {
				s += " (" + markdownText(r[i].Rank) + ")"
			}
			s += " |"
		}
		s += "\n"
	}
	for _, n := range t.Notes {
		s += "\n" + markdownText(n) + "\n"
	}
	return s
}

// markdownText makes s plain text in Markdown: no markup, no HTML, no table
// edge, and nobody notified by an @.
func markdownText(s string) string {
	var b strings.Builder
	runes := []rune(clean(s))
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
