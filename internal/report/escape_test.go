package report

import (
	"encoding/csv"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

const evil = `<script>document.title="pwned"</script>"'=` + "`|@all\x1b[31m\u202e"

// hostile has evil in every string that comes from outside.
func hostile() Input {
	in := normal()
	in.Campaign.Name, in.Campaign.Testbed, in.Dir, in.Version = evil, evil, evil, evil
	poison := func(c result.Cell) result.Cell {
		if !c.IsBaseline() {
			c.Network = evil + c.Network
		}
		c.Placement, c.Link, c.Profile, c.Family = evil, evil, evil, evil
		c.Workload, c.Test, c.Protocol, c.Direction = evil+c.Workload, evil, evil, evil
		return c
	}
	for i := range in.Analysis.Cells {
		s := &in.Analysis.Cells[i]
		if s.OK > 0 {
			s.Shape = shapeOf(*s, rand.New(rand.NewPCG(1, uint64(i))), 3)
		}
		s.Cell = poison(s.Cell)
		if s.Baseline != nil {
			b := poison(*s.Baseline)
			s.Baseline = &b
		}
		s.Reasons = []stat.Reason{{Reason: evil, Count: 2}}
		s.NoEfficiency, s.Progress.Why = evil, evil
		if s.Unsupported != "" {
			s.Unsupported = evil
		}
	}
	for i := range in.Analysis.Rankings {
		r := &in.Analysis.Rankings[i]
		r.Group = poison(r.Group)
		r.Group.Network = ""
		for k := range r.Ranked {
			r.Ranked[k].Network = evil + r.Ranked[k].Network
		}
		for k := range r.Pairs {
			r.Pairs[k].Better, r.Pairs[k].Worse, r.Pairs[k].Why = evil+r.Pairs[k].Better, evil+r.Pairs[k].Worse, evil
		}
	}
	for i := range in.Analysis.Warnings {
		w := &in.Analysis.Warnings[i]
		w.Code, w.Message, w.Cure = evil, evil, evil
		for k := range w.Cells {
			w.Cells[k] = poison(w.Cells[k])
		}
	}
	sortCells(&in)
	in.Tally.Warnings = map[string]int{evil: in.Tally.OK}
	in.Environment = hostileEnvironment()
	for _, s := range in.Analysis.Cells {
		in.Environment.Networks[s.Cell.Network] = result.NetworkFacts{Model: evil, LeavesOut: evil, Encapsulation: evil}
	}
	in = burnt(in, evil)
	in.Flames.Trouble = evil
	return in
}

func hostileEnvironment() *result.Environment {
	m := map[string]string{evil: evil}
	return &result.Environment{Version: evil, Testbed: evil, Host: result.Host{Kernel: evil, OS: evil, CPUModel: evil, Sysctls: m}, Tools: m,
		Places:   map[string]result.PlaceFacts{evil: {Node: evil, MTUs: map[string]int{evil: 1}, Sysctls: m, Offloads: m}},
		Networks: map[string]result.NetworkFacts{}, Changed: []string{evil}}
}

// loads matches whatever makes a browser fetch something.
var loads = regexp.MustCompile(`(?i)https?://|<script|<link[^>]*href="[^d]|<img|<iframe|<object|<embed|@import|url\(|srcset|\son\w+=`)

func TestHTMLIsSelfContainedAndEscaped(t *testing.T) {
	cases := inputs()
	cases["hostile"] = hostile()
	for name, in := range cases {
		out := render(t, "html", in, Options{})
		style := regexp.MustCompile(`(?s)<style>.*?</style>`).FindString(out)
		out = dataScript.ReplaceAllString(ownScript.ReplaceAllString(out, ""), "")
		if m := loads.FindString(out); m != "" {
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
	out := ownScript.ReplaceAllString(render(t, "html", hostile(), Options{}), "")
	if !strings.Contains(out, "&lt;script&gt;") || strings.ContainsAny(out, "\x1b\u202e") {
		t.Error("the hostile names are not there, or not harmless")
	}
}

func TestTerminalIsHarmless(t *testing.T) {
	for _, uni := range []bool{true, false} {
		if out := render(t, "terminal", hostile(), Options{Unicode: uni}); strings.ContainsAny(out, "\x1b\u202e") {
			t.Error("an escape sequence or a change of direction came through")
		}
	}
}

func TestMarkdownIsHarmless(t *testing.T) {
	out := render(t, "markdown", hostile(), Options{})
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
	in := hostile()
	for i := range in.Analysis.Cells {
		in.Analysis.Cells[i].Cell.Test = `=HYPERLINK("x")`
		in.Analysis.Cells[i].Cell.Link = "-1+1"
	}
	sortCells(&in)
	rows, err := csv.NewReader(strings.NewReader(render(t, "csv", in, Options{}))).ReadAll()
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
