package main

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// The recorded terminal.
const (
	columns     = 80
	rows        = 34
	cellWidth   = 8.4  // pixels
	cellHeight  = 18.0 // pixels
	margin      = 16.0 // pixels
	typeSeconds = 0.25 // for each word of a command
	readSeconds = 9.0  // for the output of a command
)

// run is a piece of a line in one style.
type run struct {
	text, style string
}

// record is an SVG that shows commands being typed and their outputs, one after
// another, in a loop. It has colours for light and dark, and shows the first command
// without motion where a reader asks for less motion.
func record(commands []string, show command) ([]byte, error) {
	var body, rules strings.Builder
	total := 0.0
	for _, c := range commands {
		total += typeSeconds*float64(len(strings.Fields(c))) + readSeconds
	}
	begin, n := 0.0, 0
	// appear makes a class that is visible between two times.
	appear := func(from, to float64) string {
		n++
		fmt.Fprintf(&rules, "@keyframes k%d{0%%,%.2f%%{visibility:hidden}%.2f%%,%.2f%%{visibility:visible}%.2f%%,100%%{visibility:hidden}}.k%d{visibility:hidden;animation:k%d %.2fs step-end infinite}\n",
			n, 100*from/total, 100*from/total, 100*to/total-0.01, 100*to/total, n, n, total)
		return fmt.Sprintf("k%d", n)
	}
	for i, c := range commands {
		text, err := show(append(strings.Fields(c)[1:], "--color", "always")...)
		if err != nil {
			return nil, err
		}
		words := strings.Fields(c)
		typed := begin + typeSeconds*float64(len(words))
		end := typed + readSeconds
		group := "still"
		if i > 0 {
			group = "later"
		}
		fmt.Fprintf(&body, "<g class=\"%s\">\n", group)
		column := 2
		fmt.Fprintf(&body, "<g class=\"%s\">%s</g>\n", appear(begin, end), textAt(0, 0, run{"$", "dim"}))
		for w, word := range words {
			fmt.Fprintf(&body, "<g class=\"%s\">%s</g>\n", appear(begin+typeSeconds*float64(w), end), textAt(0, column, run{word, "bold"}))
			column += utf8.RuneCountInString(word) + 1
		}
		fmt.Fprintf(&body, "<g class=\"%s\">\n%s</g>\n</g>\n", appear(typed, end), screenOf(text))
		begin = end
	}
	width, height := columns*cellWidth+2*margin, (rows+1)*cellHeight+2*margin
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" aria-label="A terminal that shows %s">
<style>
text{font:14px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;white-space:pre;fill:#1f2328}
.back{fill:#f6f8fa;stroke:#d0d7de}.bold{font-weight:700}.dim{fill:#656d76}
.c31{fill:#b42318}.c33{fill:#8a5a00}.c34{fill:#0550ae}.c36{fill:#0b6b76}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.back{fill:#0d1117;stroke:#30363d}.dim{fill:#8b949e}
.c31{fill:#ff7b72}.c33{fill:#e3b341}.c34{fill:#79c0ff}.c36{fill:#56d4dd}}
%s@media (prefers-reduced-motion:reduce){.still g{animation:none;visibility:visible}.later{display:none}}
</style>
<rect class="back" x="0.5" y="0.5" width="%.0f" height="%.0f" rx="8"/>
%s</svg>
`, width, height, width, height, html.EscapeString(strings.Join(commands, ", ")), rules.String(), width-1, height-1, body.String())
	return []byte(out.String()), nil
}

// screenOf is an output below the command, as far as it fits; a longer one ends with an
// ellipsis.
func screenOf(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > rows {
		lines = append(lines[:rows-1:rows-1], elided)
	}
	var b strings.Builder
	for i, line := range lines {
		column := 0
		for _, r := range runs(line) {
			if strings.TrimSpace(r.text) != "" {
				b.WriteString(textAt(i+1, column, r) + "\n")
			}
			column += utf8.RuneCountInString(r.text)
		}
	}
	return b.String()
}

// textAt is a run at a row and column. Its length is given, so that columns stay in
// place whatever font a reader has.
func textAt(row, column int, r run) string {
	trimmed := strings.TrimLeft(r.text, " ")
	column += utf8.RuneCountInString(r.text) - utf8.RuneCountInString(trimmed)
	trimmed = strings.TrimRight(trimmed, " ")
	class := ""
	if r.style != "" {
		class = ` class="` + r.style + `"`
	}
	return fmt.Sprintf(`<text%s x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs">%s</text>`, class,
		margin+float64(column)*cellWidth, margin+float64(row+1)*cellHeight-4, float64(utf8.RuneCountInString(trimmed))*cellWidth, html.EscapeString(trimmed))
}

// runs splits a line at the escapes for colours.
func runs(line string) []run {
	var out []run
	style := ""
	for line != "" {
		begin := strings.Index(line, "\x1b[")
		if begin < 0 {
			return append(out, run{line, style})
		}
		if begin > 0 {
			out = append(out, run{line[:begin], style})
		}
		code, rest, _ := strings.Cut(line[begin+2:], "m")
		switch code {
		case "0", "":
			style = ""
		case "1":
			style = "bold"
		default:
			style = "c" + code
		}
		line = rest
	}
	return out
}
