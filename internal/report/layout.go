package report

import (
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// screen is what a terminal can show.
type screen struct {
	columns int
	color   bool
	unicode bool
}

func newScreen(opt Options) screen {
	if opt.Width == 0 {
		opt.Width = 80
	}
	return screen{columns: max(opt.Width, leastColumns), color: opt.Color, unicode: opt.Unicode}
}

// The least width that a report is laid out for.
const leastColumns = 40

// condition counts columns as a terminal with a western font does: ambiguous
// characters are one wide, whatever the locale of the writer says.
func condition() *runewidth.Condition {
	return &runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}
}

// width is the number of columns that s takes.
func width(s string) int { return condition().StringWidth(s) }

// clip shortens s to n columns.
func (sc screen) clip(s string, n int) string {
	if width(s) <= n {
		return s
	}
	tail := sc.say("…")
	if n < 3 {
		tail = ""
	}
	return condition().Truncate(s, n, tail)
}

// pad fills s with spaces to n columns, on the left where right is wanted.
func pad(s string, n int, right bool) string {
	fill := strings.Repeat(" ", max(0, n-width(s)))
	if right {
		return fill + s
	}
	return s + fill
}

// clean makes a string from outside harmless on a terminal and in a line of
// text: no control characters, no reordering of what is written.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r), r == unicode.ReplacementChar, unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			return '?'
		}
		return r
	}, s)
}

// say makes s showable: clean, and in ASCII where the screen has no more.
func (sc screen) say(s string) string {
	s = clean(s)
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

// wrap breaks s into lines of at most the screen's width; the first begins
// with first, the others with indent. A word longer than a line is broken.
func (sc screen) wrap(s, first, indent string) []string {
	var lines []string
	line, empty := first, true
	flush := func() {
		lines = append(lines, line)
		line, empty = indent, true
	}
	for _, word := range joinFigures(strings.Fields(sc.say(s))) {
		if !empty && width(line)+1+width(word) > sc.columns {
			flush()
		}
		for width(line)+width(word) > sc.columns {
			head := condition().Truncate(word, sc.columns-width(line), "")
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
