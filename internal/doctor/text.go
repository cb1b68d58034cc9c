package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// width is that of a terminal as it opens.
const width = 80

// WriteText shows the checks to people, grouped by area: one line for what is
// there; for what is not, also what it is needed for and what mends it. A cure
// is never broken over lines, so that it can be pasted.
func WriteText(w io.Writer, checks []Check, color bool) error {
	var b strings.Builder
	names := 0
	for _, c := range checks {
		names = max(names, utf8.RuneCountInString(c.Name))
	}
	area := ""
	for _, c := range checks {
		if c.Area != area {
			if area != "" {
				b.WriteByte('\n')
			}
			area = c.Area
			b.WriteString(area + "\n")
		}
		writeCheck(&b, c, names, color)
	}
	b.WriteString("\n" + verdict(checks))
	_, err := io.WriteString(w, b.String())
	return err
}

func writeCheck(b *strings.Builder, c Check, names int, color bool) {
	indent := 2 + len(Missing) + 2 + names + 2
	status := fmt.Sprintf("%-*s", len(Missing), c.Status)
	if color {
		status = paint(c.Status) + status + "\x1b[0m"
	}
	fmt.Fprintf(b, "  %s  %s%s", status, c.Name, strings.Repeat(" ", names+2-utf8.RuneCountInString(c.Name)))
	writeWrapped(b, c.Detail, indent)
	if c.Status == OK {
		return
	}
	if c.NeededFor != "" {
		b.WriteString(strings.Repeat(" ", indent))
		writeWrapped(b, "needed for: "+c.NeededFor, indent)
	}
	if c.Cure != "" {
		fmt.Fprintf(b, "%smend: %s\n", strings.Repeat(" ", indent), c.Cure)
	}
}

func paint(s Status) string {
	switch s {
	case OK:
		return "\x1b[32m"
	case Limited:
		return "\x1b[33m"
	default:
		return "\x1b[31m"
	}
}

// writeWrapped writes words on lines of the width, from the column indent on.
func writeWrapped(b *strings.Builder, text string, indent int) {
	column := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
}

func verdict(checks []Check) string {
	counts := map[Status]int{}
	for _, c := range checks {
		counts[c.Status]++
	}
	text := fmt.Sprintf("%d ok, %d limited, %d missing\n", counts[OK], counts[Limited], counts[Missing])
	if CanRunLab(checks) != nil {
		return text + "The lab cannot run here.\n"
	}
	return text + "The lab can run here: cnibench run examples/quickstart.yaml\n"
}

// WriteJSON writes the checks for programs.
func WriteJSON(w io.Writer, checks []Check) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Schema    int     `json:"schema"`
		CanRunLab bool    `json:"can_run_lab"`
		Checks    []Check `json:"checks"`
	}{1, CanRunLab(checks) == nil, checks})
}
