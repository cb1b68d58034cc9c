package campaign

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Error is one thing that is wrong in a campaign file, and where.
type Error struct {
	File string
	// Line and Column count from 1; a column is a character, not a byte.
	Line, Column int
	// Message says what is wrong and what was expected; Hint how to fix it.
	Message, Hint string
	// Source is the line of the file.
	Source string
}

// Error is one line to read (and for editors to jump to), then the line of the
// file with a caret under the position.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	if source, caret := excerpt(e.Source, e.Column); source != "" {
		fmt.Fprintf(&b, "\n%5d | %s\n      | %s", e.Line, source, caret)
	}
	return b.String()
}

// excerptWidth is how much of a long line is shown.
const excerptWidth = 100

// excerpt cuts a long line around the column and gives the line below it that
// has the caret. What a terminal would obey is shown as a dot.
func excerpt(source string, column int) (line, caret string) {
	text := []rune(source)
	at := min(max(column-1, 0), len(text))
	if from := at - excerptWidth/2; len(text) > excerptWidth && from > 0 {
		text, at = append([]rune("…"), text[from:]...), at-from+1
	}
	if len(text) > excerptWidth {
		text = append(slices.Clone(text[:excerptWidth]), '…')
	}
	pad := make([]rune, at)
	for i, r := range text {
		if r != '\t' && !unicode.IsPrint(r) {
			text[i] = '·'
		}
		if i < at {
			pad[i] = ' '
			if r == '\t' {
				pad[i] = '\t'
			}
		}
	}
	if strings.TrimSpace(string(text)) == "" {
		return "", ""
	}
	return string(text), string(pad) + "^"
}

// maxErrors is how many errors are reported: a file with more is no campaign.
const maxErrors = 100

// inOrder sorts the errors by their position in the file and keeps the first.
func inOrder(errs []*Error) []*Error {
	slices.SortStableFunc(errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if more := len(errs) - maxErrors; more > 0 {
		errs = errs[:maxErrors+1]
		errs[maxErrors] = &Error{Line: errs[maxErrors].Line, Column: errs[maxErrors].Column,
			Message: fmt.Sprintf("%d more errors from here on", more), Hint: "is this a campaign file?"}
	}
	return errs
}
