// Package screen lays text, tables and pages out for a terminal: its width, its
// colours, and the characters that it can show.
package screen

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"

	"github.com/cnibench/cnibench/internal/report/page"
)

// Options are what the terminal format may use. The zero value is 80 columns
// of plain ASCII.
type Options struct {
	Width   int // in columns; 0 means 80, and less than 40 is laid out as 40
	Color   bool
	Unicode bool
	// Long asks for the tables and remarks in full, in place of one screen.
	Long bool
}

// Screen is what a terminal can show.
type Screen struct {
	Columns int
	color   bool
	unicode bool
}

// New is the screen that opt describes.
func New(opt Options) Screen {
	if opt.Width == 0 {
		opt.Width = 80
	}
	return Screen{Columns: max(opt.Width, leastColumns), color: opt.Color, unicode: opt.Unicode}
}

// The least width that a report is laid out for.
const leastColumns = 40

// condition counts columns as a terminal with a western font does: ambiguous
// characters are one wide, whatever the locale of the writer says.
func condition() *runewidth.Condition {
	return &runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}
}

// Width is the number of columns that s takes.
func Width(s string) int { return condition().StringWidth(s) }

// Clip shortens s to n columns.
func (sc Screen) Clip(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	tail := sc.Say("…")
	if n < 3 {
		tail = ""
	}
	return condition().Truncate(s, n, tail)
}

// pad fills s with spaces to n columns, on the left where right is wanted.
func pad(s string, n int, right bool) string {
	fill := strings.Repeat(" ", max(0, n-Width(s)))
	if right {
		return fill + s
	}
	return s + fill
}

// Say makes s showable: clean, and in ASCII where the screen has no more.
func (sc Screen) Say(s string) string {
	s = page.Clean(s)
	if sc.unicode {
		return s
	}
	s = strings.NewReplacer("±", "+-", "µ", "u", "×", "x", "…", "..", "–", "-", "→", "->", "≥", ">=", "≤", "<=", "·", "-", "≠", "!=", "’", "'", "α", "alpha", "β", "beta", "“", `"`, "”", `"`).Replace(s)
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return '?'
		}
		return r
	}, s)
}

// joinFigures joins the words of a figure, so that no line ends inside it: 97.1 % ± 0.3.
func joinFigures(words []string) []string {
	var out []string
	for i, w := range words {
		sign := func(w string) bool { return w == "±" || w == "+-" }
		if i > 0 && (strings.HasPrefix(w, "%") || strings.HasPrefix(w, "±") || strings.HasPrefix(w, "+-") || sign(w) || sign(words[i-1])) {
			out[len(out)-1] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}

// Wrap breaks s into lines of at most the screen's width; the first begins
// with first, the others with indent. A word longer than a line is broken.
func (sc Screen) Wrap(s, first, indent string) []string {
	var lines []string
	line, empty := first, true
	flush := func() {
		lines = append(lines, line)
		line, empty = indent, true
	}
	for _, word := range joinFigures(strings.Fields(sc.Say(s))) {
		if !empty && Width(line)+1+Width(word) > sc.Columns {
			flush()
		}
		for Width(line)+Width(word) > sc.Columns {
			head := condition().Truncate(word, sc.Columns-Width(line), "")
			if head == "" {
				break
			}
			line += head
			word = word[len(head):]
			flush()
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	return append(lines, line)
}

// Fit wraps s into at most n lines; what is left over is cut.
func (sc Screen) Fit(s, mark string, n int) []string {
	lines := sc.Wrap(s, mark, strings.Repeat(" ", len(mark)))
	if len(lines) <= n {
		return lines
	}
	cut := sc.Say("…")
	return append(lines[:n-1], sc.clipTo(lines[n-1], sc.Columns-Width(cut))+cut)
}

// FitLines is at most n of some lines; what is left over is counted.
func (sc Screen) FitLines(lines []string, n int) []string {
	if len(lines) <= max(n, 2) {
		return lines
	}
	kept := max(n, 2) - 1
	return append(lines[:kept:kept], fmt.Sprintf("and %d more lines: see the long form", len(lines)-kept))
}

// clipTo cuts s at n columns.
func (sc Screen) clipTo(s string, n int) string { return condition().Truncate(s, n, "") }
