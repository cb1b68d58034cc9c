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
// there; for what is not, also what it is needed for and what fixes it. A cure
// is never broken over lines, so that it can be pasted.
func WriteText(w io.Writer, checks []Check, color bool) error {
	var b strings.Builder
	names := 0
	for _, c := range checks {
		names = max(names, utf8.RuneCountInString(c.Name))
	}
	b.WriteString(verdict(checks) + "\n")
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
		fmt.Fprintf(b, "%sfix: %s\n", strings.Repeat(" ", indent), c.Cure)
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

// verdict is the answer in short: "ready: lab with 38 of 45 networks; missing:
// kernel features (ipip, gre), perf counters (cycles)".
func verdict(checks []Check) string {
	counts, missing, areas := map[Status]int{}, map[string][]string{}, []string{}
	networks := ""
	for _, c := range checks {
		counts[c.Status]++
		if c.Area == labArea {
			networks, _, _ = strings.Cut(c.Detail, " can be built")
		}
		if c.Status != Missing {
			continue
		}
		if missing[c.Area] == nil {
			areas = append(areas, c.Area)
		}
		missing[c.Area] = append(missing[c.Area], c.Name)
	}
	text := "ready: lab"
	switch {
	case CanRunLab(checks) != nil:
		text = "not ready: the lab cannot run on this machine"
	case networks != "":
		text += " with " + networks + " networks"
	}
	var parts []string
	for _, area := range areas {
		names := missing[area]
		if len(names) > namedMissing {
			names = append(names[:namedMissing:namedMissing], fmt.Sprintf("%d more", len(names)-namedMissing))
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", area, strings.Join(names, ", ")))
	}
	if len(parts) > 0 {
		text += "; missing: " + strings.Join(parts, ", ")
	}
	var b strings.Builder
	writeWrapped(&b, text, 0)
	fmt.Fprintf(&b, "%d ok, %d limited, %d missing. Next: ", counts[OK], counts[Limited], counts[Missing])
	if CanRunLab(checks) != nil {
		return b.String() + "run the commands after \"fix:\" below\n"
	}
	return b.String() + "cnibench run\n"
}

// namedMissing is how many missing things of an area the verdict names.
const namedMissing = 3

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
