package format

import (
	"encoding/csv"
	"regexp"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
)

func TestHTMLIsSelfContainedAndEscaped(t *testing.T) {
	cases := reporttest.Inputs()
	cases["hostile"] = reporttest.Hostile()
	for name, in := range cases {
		out := render(t, "html", in, screen.Options{})
		style := regexp.MustCompile(`(?s)<style>.*?</style>`).FindString(out)
		out = reporttest.DataScript.ReplaceAllString(reporttest.OwnScript.ReplaceAllString(out, ""), "")
		if m := reporttest.Loads.FindString(out); m != "" {
			t.Errorf("%s: the page has %q", name, m)
		}
		for _, want := range []string{`<html lang="en">`, `class="skip"`, "prefers-color-scheme", "Content-Security-Policy"} {
			if !strings.Contains(out+style, want) {
				t.Errorf("%s: the page has no %s", name, want)
			}
		}
		for _, th := range regexp.MustCompile(`<th[ >][^>]*`).FindAllString(out, -1) {
			if !strings.HasPrefix(th, "<thead") && !strings.Contains(th, `scope="`) {
				t.Errorf("%s: header without scope: %s", name, th)
			}
		}
		if strings.Count(out, "<table>") != strings.Count(out, "<caption>") {
			t.Errorf("%s: a table without caption", name)
		}
	}
	out := reporttest.OwnScript.ReplaceAllString(render(t, "html", reporttest.Hostile(), screen.Options{}), "")
	if !strings.Contains(out, "&lt;script&gt;") || strings.ContainsAny(out, "\x1b\u202e") {
		t.Error("the hostile names are missing, or not harmless")
	}
}

func TestTerminalIsHarmless(t *testing.T) {
	for _, uni := range []bool{true, false} {
		if out := render(t, "terminal", reporttest.Hostile(), screen.Options{Unicode: uni}); strings.ContainsAny(out, "\x1b\u202e") {
			t.Error("an escape sequence or a change of direction came through")
		}
	}
}

func TestMarkdownIsHarmless(t *testing.T) {
	out := render(t, "markdown", reporttest.Hostile(), screen.Options{})
	for _, bad := range []string{"<script", "@all", "\x1b", "\u202e"} {
		for _, line := range strings.Split(out, "\n") {
			// An indented line is a block of code, in which nothing is read.
			if strings.Contains(line, bad) && (!strings.HasPrefix(line, "    ") || bad == "\x1b" || bad == "\u202e") {
				t.Errorf("%q came through: %s", bad, line)
			}
		}
	}
	columns := 0
	for _, line := range strings.Split(out, "\n") {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if columns != 0 && n != columns {
			t.Errorf("a table row of %d edges after one of %d: %s", n, columns, line)
		}
		columns = n
	}
}

func TestCSVIsHarmless(t *testing.T) {
	in := reporttest.Hostile()
	for i := range in.Analysis.Cells {
		in.Analysis.Cells[i].Cell.Test = `=HYPERLINK("x")`
		in.Analysis.Cells[i].Cell.Link = "-1+1"
	}
	reporttest.SortCells(&in)
	rows, err := csv.NewReader(strings.NewReader(render(t, "csv", in, screen.Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`^[-+]?[0-9.]+(e[-+]?[0-9]+)?$`)
	for _, row := range rows {
		for _, field := range row {
			if field != "" && strings.ContainsRune("=+-@\t\r", rune(field[0])) && !number.MatchString(field) {
				t.Errorf("a spreadsheet takes %q for a formula", field)
			}
		}
	}
}
