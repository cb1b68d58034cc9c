package format

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
)

var update = flag.Bool("update", false, "write the golden files")

func render(t *testing.T, format string, in report.Input, opt screen.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, format, in, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	endings := map[string]string{"terminal": "txt", "html": "html", "markdown": "md", "csv": "csv", "json": "json", "benchfmt": "bench", "prometheus": "prom"}
	for name, in := range reporttest.Inputs() {
		in = reporttest.WithBlocks(in)
		for _, format := range Names() {
			if format == "parquet" {
				continue // TestExportsAgree reads it back
			}
			got := render(t, format, in, screen.Options{Width: 80, Unicode: true})
			if format == "html" {
				got = reporttest.Bare(t, got)
			}
			reporttest.Golden(t, *update, name+"."+endings[format], got)
		}
		reporttest.Golden(t, *update, name+".long.txt", render(t, "terminal", in, screen.Options{Width: 80, Unicode: true, Long: true}))
	}
	reporttest.Golden(t, *update, "explain-where.md", render(t, "markdown", reporttest.Stacked(), screen.Options{}))
	reporttest.Golden(t, *update, "normal.ascii.txt", render(t, "terminal", reporttest.Normal(), screen.Options{}))
	reporttest.Golden(t, *update, "normal.color.txt", render(t, "terminal", reporttest.Normal(), screen.Options{Width: 120, Unicode: true, Color: true}))
	reporttest.Golden(t, *update, "normal.color.long.txt", render(t, "terminal", reporttest.Normal(), screen.Options{Width: 120, Unicode: true, Color: true, Long: true}))
}

// TestFormatsAreDocumented: docs/exports.md has a row for each format.
func TestFormatsAreDocumented(t *testing.T) {
	const path = "../../../docs/exports.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const header = "| format | content | for |\n|---|---|---|\n"
	head, rest, ok := strings.Cut(string(text), header)
	_, tail, ended := strings.Cut(rest, "\n\n")
	if !ok || !ended {
		t.Fatalf("%s has no table of formats", path)
	}
	var rows []string
	for _, f := range formats() {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", f.name, f.content, f.readers))
	}
	want := head + header + strings.Join(rows, "\n") + "\n\n" + tail
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("%s does not list the formats; run go test ./internal/report/format -update", path)
	}
}

func TestUnknownFormat(t *testing.T) {
	err := Write(&bytes.Buffer{}, "pdf", report.Input{}, screen.Options{})
	if err == nil || !strings.Contains(err.Error(), "known: terminal, html, markdown, csv, json, parquet, benchfmt, prometheus") {
		t.Errorf("got %v", err)
	}
}

func TestTerminalWidth(t *testing.T) {
	for name, in := range reporttest.Inputs() {
		for _, columns := range []int{40, 60, 80, 100, 132, 200} {
			for i := range 4 {
				uni, long := i%2 == 0, i < 2
				out := render(t, "terminal", in, screen.Options{Width: columns, Unicode: uni, Long: long})
				for i, line := range strings.Split(out, "\n") {
					if w := screen.Width(line); w > columns {
						t.Errorf("%s, %d columns: line %d is %d wide: %s", name, columns, i+1, w, line)
					}
					if !uni && strings.IndexFunc(line, func(r rune) bool { return r > 126 }) >= 0 {
						t.Errorf("%s: line %d is not ASCII: %s", name, i+1, line)
					}
					if strings.Contains(line, "\x1b") {
						t.Errorf("%s: line %d has an escape sequence: %q", name, i+1, line)
					}
				}
			}
		}
	}
}
