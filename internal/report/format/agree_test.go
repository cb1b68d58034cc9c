package format

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/unit"
)

// figures are the texts of a report's tables by section or caption, row and column.
type figures map[[3]string]string

func TestFormatsAgree(t *testing.T) {
	cases := reporttest.Inputs()
	cases["analysed"], cases["crossed"], cases["stacked"] = reporttest.Analysed(), reporttest.Crossed(), reporttest.Stacked()
	if n := len(cases["crossed"].Analysis.CrossChecks); n != 6 {
		t.Errorf("%d cross-checks, want one for each network and the host", n)
	}
	for name, in := range cases {
		t.Run(name, func(t *testing.T) {
			var fromJSON jsonReport
			if err := json.Unmarshal([]byte(render(t, "json", in, screen.Options{})), &fromJSON); err != nil {
				t.Fatal(err)
			}
			checkCSV(t, fromJSON, render(t, "csv", in, screen.Options{}))
			page, exacts := readHTML(t, render(t, "html", in, screen.Options{}))
			checkPage(t, fromJSON, page, exacts)
			checkCross(t, report.New(in), fromJSON, page, exacts, render(t, "terminal", in, screen.Options{Width: 400, Unicode: true, Long: true}))
			markdown := readMarkdown(render(t, "markdown", in, screen.Options{}))
			for k, v := range markdown {
				if page[k] != v {
					t.Errorf("%v: Markdown has %q, HTML %q", k, v, page[k])
				}
			}
			for k := range page {
				if _, ok := markdown[k]; !ok && k[2] != "drawn from 0" {
					t.Errorf("%v: HTML has it, Markdown not", k)
				}
			}
			long := render(t, "terminal", in, screen.Options{Width: 400, Unicode: true, Long: true})
			checkTerminal(t, report.New(in), page, long)
			checkLadders(t, report.New(in), fromJSON, page, exacts, render(t, "html", in, screen.Options{})+render(t, "markdown", in, screen.Options{}), explainText(t, in, screen.Options{Width: 400, Unicode: true}))
			checkTerminalCosts(t, report.New(in), fromJSON, long)
			checkScreen(t, report.New(in), fromJSON, render(t, "terminal", in, screen.Options{Width: 200, Unicode: true}))
		})
	}
}

// checkCSV compares every figure of the JSON with the CSV, and back.
func checkCSV(t *testing.T, r jsonReport, text string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	got := map[string]bool{}
	for _, row := range rows[1:] {
		if row[column["state"]] == goalState {
			continue // TestExportsAgree
		}
		key := strings.Join(row[:len(csvFactors())], "|")
		for _, f := range []string{"value", "low", "high", "blocks"} {
			if v := row[column[f]]; v != "" {
				got[strings.Join([]string{key, row[column["metric"]], row[column["statistic"]], f, v}, "|")] = true
			}
		}
		for _, f := range []string{"efficiency_ratio", "efficiency_low_ratio", "efficiency_high_ratio"} {
			if v := row[column[f]]; v != "" {
				got[strings.Join([]string{key, row[column["metric"]], f, v}, "|")] = true
			}
		}
	}
	want := map[string]bool{}
	for _, s := range r.Analysis.Cells {
		var factors []string
		for _, f := range csvFactors() {
			factors = append(factors, f.value(s.Cell))
		}
		key := strings.Join(factors, "|")
		for _, from := range []map[string]estimate.Estimate{s.Absolute, s.Latency} {
			for metric, e := range from {
				add := func(f, v string) {
					want[strings.Join([]string{key, metric, string(e.Method), f, v}, "|")] = true
				}
				add("value", Exact(e.Value))
				add("blocks", strconv.Itoa(e.N))
				if low, high, ok := e.Interval(); ok {
					add("low", Exact(low))
					add("high", Exact(high))
				}
			}
		}
		for _, x := range ladderFigures(s.Ladder) {
			want[strings.Join([]string{key, x.metric, string(x.e.Method), "value", Exact(x.e.Value)}, "|")] = true
			want[strings.Join([]string{key, x.metric, string(x.e.Method), "blocks", strconv.Itoa(x.e.N)}, "|")] = true
			if low, high, ok := x.e.Interval(); ok {
				want[strings.Join([]string{key, x.metric, string(x.e.Method), "low", Exact(low)}, "|")] = true
				want[strings.Join([]string{key, x.metric, string(x.e.Method), "high", Exact(high)}, "|")] = true
			}
		}
		for metric, e := range s.EfficiencyByMetric {
			if _, ok := s.Absolute[metric]; !ok && s.Latency[metric].N == 0 {
				continue // the fixtures have some without a value
			}
			add := func(f, v string) { want[strings.Join([]string{key, metric, f, v}, "|")] = true }
			add("efficiency_ratio", Exact(e.Value))
			if low, high, ok := e.Interval(); ok {
				add("efficiency_low_ratio", Exact(low))
				add("efficiency_high_ratio", Exact(high))
			}
		}
	}
	for cell, checks := range checkEstimates(r) {
		var factors []string
		for _, f := range csvFactors() {
			factors = append(factors, f.value(cell))
		}
		for _, x := range checks {
			add := func(f, v string) {
				want[strings.Join([]string{strings.Join(factors, "|"), x.metric, string(x.e.Method), f, v}, "|")] = true
			}
			add("value", Exact(x.e.Value))
			add("blocks", strconv.Itoa(x.e.N))
			if low, high, ok := x.e.Interval(); ok {
				add("low", Exact(low))
				add("high", Exact(high))
			}
		}
	}
	for k := range want {
		if !got[k] {
			t.Errorf("JSON has %s, CSV not", k)
		}
	}
	for k := range got {
		if !want[k] {
			t.Errorf("CSV has %s, JSON not", k)
		}
	}
}

// checked is a cross-check's figure as the CSV names it.
type checked struct {
	metric string
	e      estimate.Estimate
}

func checkEstimates(r jsonReport) map[result.Cell][]checked {
	out := map[result.Cell][]checked{}
	for _, x := range r.Analysis.CrossChecks {
		if x.Ratio != nil {
			out[x.Native] = append(out[x.Native], checked{"native_over_classic_ratio", *x.Ratio})
		}
	}
	for _, x := range r.Analysis.RoundTrips {
		out[x.Cell] = append(out[x.Cell], checked{"round_trip_product_ratio", x.Product})
	}
	return out
}

// checkCross compares every cross-check of the JSON with the page and the
// terminal.
func checkCross(t *testing.T, d *report.Document, r jsonReport, page figures, exacts map[[3]string]string, terminal string) {
	t.Helper()
	for _, x := range r.Analysis.CrossChecks {
		m, _ := report.FindMetric(x.Metric)
		caption := x.Native.Traffic() + " / " + x.Classic.Traffic() + ": " + m.Label
		key := [3]string{caption, section.CellAt(d, x.Native), x.Native.Workload + " / " + x.Classic.Workload}
		want, value := "none", ""
		if x.Ratio != nil {
			want, value = unit.Percent(x.Ratio.Value, report.Halfwidth(*x.Ratio)), behind(x.Ratio.Value)
		}
		if page[key] != want || exacts[key] != value {
			t.Errorf("%v: page has %q (%s), JSON %s", key, page[key], exacts[key], want)
		}
		_, line, found := strings.Cut(terminal, "\n  "+caption+": ")
		line, _, _ = strings.Cut(line, "\n")
		if !found || !strings.Contains(line, section.CellAt(d, x.Native)+" "+want) {
			t.Errorf("%v: the terminal has %q, JSON %s", key, line, want)
		}
	}
	for _, x := range r.Analysis.RoundTrips {
		key := [3]string{"Rate × mean round trip ÷ number under way: 100 % in a closed loop", x.Cell.Traffic() + ", " + section.CellAt(d, x.Cell), "product"}
		if want := unit.Percent(x.Product.Value, report.Halfwidth(x.Product)); page[key] != want || exacts[key] != behind(x.Product.Value) {
			t.Errorf("%v: page has %q, JSON %s", key, page[key], want)
		}
		key[2] = "check"
		if want := section.RoundTripVerdict(x); page[key] != want {
			t.Errorf("%v: page has %q, want %q", key, page[key], want)
		}
	}
}

// checkPage compares every efficiency and every value that cells are judged by
// with the page.
func checkPage(t *testing.T, r jsonReport, page figures, exacts map[[3]string]string) {
	t.Helper()
	name := func(n string) string {
		if r.Environment != nil && r.Environment.Networks[n].Model != "" {
			return n + report.ModelMark
		}
		return n
	}
	for _, s := range r.Analysis.Cells {
		if s.OK == 0 || s.Cell.IsBaseline() {
			continue
		}
		m, _ := report.FindMetric(s.Primary)
		key := [3]string{report.SituationOf(s.Cell).String(), name(s.Cell.Network), strings.TrimSpace(s.Cell.Traffic() + " " + m.Label)}
		if e := s.Efficiency; e != nil {
			text, _, _ := strings.Cut(page[key], " rank ")
			text, _, _ = strings.Cut(text, " (n=")
			if want := unit.Percent(e.Value, report.Halfwidth(*e)); text != want {
				t.Errorf("%v: page has %q, JSON %s", key, page[key], want)
			}
			if exacts[key] != behind(e.Value) {
				t.Errorf("%v: page has the value %s, JSON %v", key, exacts[key], e.Value)
			}
		}
		e := s.Absolute[s.Primary]
		key = [3]string{report.SituationOf(s.Cell).String() + "; " + s.Cell.Traffic() + ": " + m.Label, name(s.Cell.Network), m.Label}
		if want := m.Format(e.Value, report.Halfwidth(e)); page[key] != want || exacts[key] != behind(e.Value) {
			t.Errorf("%v: page has %q (%s), JSON %s", key, page[key], exacts[key], want)
		}
		checkCosts(t, s, name(s.Cell.Network), page, exacts)
		checkRest(t, s, name(s.Cell.Network), page, exacts)
	}
}

// checkCosts compares the CPU costs of a cell with the page.
func checkCosts(t *testing.T, s summary.Cell, row string, page figures, exacts map[[3]string]string) {
	t.Helper()
	caption := report.SituationOf(s.Cell).String() + "; " + s.Cell.Traffic() + ": "
	for _, w := range section.CostsByWork() {
		for _, c := range w.Costs {
			key := [3]string{caption + "CPU cost per " + w.Name, row, c.Label}
			e, ok := s.Absolute[c.Name]
			if want := c.Format(c.Factor*e.Value, c.Factor*report.Halfwidth(e)); ok && (page[key] != want || exacts[key] != behind(e.Value)) {
				t.Errorf("%v: page has %q (%s), JSON %s", key, page[key], exacts[key], want)
			}
		}
	}
	for _, at := range s.CoresAt {
		key := [3]string{caption + "cores needed", row, "at " + unit.Round(at.BitsPerSecond, "bit/s")}
		if exacts[key] != behind(at.Cores.Value) {
			t.Errorf("%v: page has %s, JSON %v", key, exacts[key], at.Cores.Value)
		}
	}
}

// checkTerminal looks for each row of the efficiency tables.
func checkTerminal(t *testing.T, d *report.Document, page figures, text string) {
	t.Helper()
	for _, g := range d.Groups {
		_, rest, ok := strings.Cut(text, "\n"+g.Title()+"\n")
		if !ok {
			t.Errorf("the terminal has no table %s", g.Title())
			continue
		}
		lines := strings.Split(rest, "\n")
		for _, n := range d.Names(g.Networks) {
			i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, n+"  ") })
			if i < 0 {
				t.Errorf("%s: no line for %s", g.Title(), n)
				continue
			}
			line := lines[i]
			for _, traffic := range g.Traffics {
				label := traffic.Traffic()
				if m, ok := g.Primary(traffic); ok {
					label += " " + m.Label
				}
				value, rank, _ := strings.Cut(page[[3]string{g.Title(), n, label}], " rank ")
				for _, want := range []string{value, rank} {
					_, after, ok := strings.Cut(line, want)
					if !ok {
						t.Errorf("%s, %s: the terminal lacks %q of %q", g.Title(), n, want, lines[i])
					}
					line = after
				}
			}
		}
	}
}

// content is the text of a node with single spaces.
func content(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data + " ")
		}
	}
	return spaced(b.String())
}

// spaced is text with single, plain spaces.
func spaced(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "\u00a0", " ")), " ")
}

// readMarkdown reads all tables in the same way.
func readMarkdown(text string) figures {
	plain := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "<br>", " ", `\`, "", "\u00a0", " ")
	out := figures{}
	heading, caption := "", ""
	var columns []string
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "#### "):
			heading = plain.Replace(line[5:]) + "; "
		case strings.HasPrefix(line, "### "), strings.HasPrefix(line, "<details>"):
			heading = ""
		case strings.HasPrefix(line, "**"):
			caption, columns = heading+plain.Replace(strings.Trim(line, "*")), nil
			if strings.HasSuffix(line, `\***`) {
				caption += "*"
			}
		case strings.HasPrefix(line, "|"):
			fields := strings.Split(strings.Trim(line, "|"), " | ")
			for i := range fields {
				fields[i] = strings.TrimSpace(plain.Replace(fields[i]))
			}
			switch {
			case columns == nil:
				columns = fields
			case !strings.HasPrefix(fields[0], "---"):
				for i := 1; i < len(fields); i++ {
					v := fields[i]
					if value, rank, ok := strings.Cut(strings.TrimSuffix(v, ")"), " ("); ok && strings.Contains(value, "%") && !strings.HasPrefix(rank, "n=") {
						v = value + " rank " + rank
					}
					out[[3]string{caption, fields[0], columns[i]}] = v
				}
			}
		}
	}
	return out
}
