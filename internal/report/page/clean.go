package page

import (
	"strings"
	"unicode"
)

// Clean makes a string from outside harmless on a terminal and in a line of
// text: no control characters, no reordering of what is written.
func Clean(s string) string {
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
