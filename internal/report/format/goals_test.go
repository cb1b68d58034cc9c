package format

import (
	"html"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/warning"
)

// TestShortFits: the answer takes one screen of 80 columns, however large the
// campaign, and says the figures of the JSON.
func TestShortFits(t *testing.T) {
	cases := reporttest.Inputs()
	cases["analysed"], cases["hostile"] = reporttest.Analysed(), reporttest.Hostile()
	many := reporttest.Normal()
	var networks []reporttest.FixtureNetwork
	for i := range 40 {
		networks = append(networks, reporttest.FixtureNetwork{Name: "a-rather-long-network-name/" + strings.Repeat("x", i), Eff: [3]float64{0.9, 0.9, 0.9}, From: [3]int{1, 1, 1}, To: [3]int{40, 40, 40}})
	}
	many.Analysis.Goals = reporttest.GoalsOf(networks, true)
	for i := range 30 {
		many.Analysis.Warnings = append(many.Analysis.Warnings, warning.Warning{Code: warning.Code(strings.Repeat("w", i+1)), Message: "doubt", Cure: "none"})
	}
	cases["many"] = many
	for name, in := range cases {
		for _, uni := range []bool{true, false} {
			out := render(t, "terminal", in, screen.Options{Width: 80, Unicode: uni})
			if n := strings.Count(out, "\n"); n > shortLines {
				t.Errorf("%s: %d lines:\n%s", name, n, out)
			}
		}
		if name == "many" {
			continue // not all networks have room
		}
		out := render(t, "terminal", in, screen.Options{Width: 200, Unicode: true})
		d := report.New(in)
		for _, g := range in.Analysis.Goals {
			for _, r := range g.Ranked {
				e := section.ShownGoal(g, r)
				line := lineOf(out, screen.New(screen.Options{Unicode: true}).Say(d.Option(r.Option)))
				if e != nil && !strings.Contains(line, section.Change(g.Goal, *e)) {
					t.Errorf("%s, %s: the line of %s lacks %s: %q", name, g.Goal, r.Option, section.Change(g.Goal, *e), line)
				}
			}
			if !strings.Contains(out, section.HeadOfGoal(g)) {
				t.Errorf("%s: no column for %s", name, g.Goal)
			}
		}
	}
}

// lineOf is the line that begins with a name.
func lineOf(text, name string) string {
	for _, l := range strings.Split(text, "\n") {
		if strings.HasPrefix(l, name+"  ") {
			return l
		}
	}
	return ""
}

func TestGoalSentences(t *testing.T) {
	networks := reporttest.FixtureNetworks()
	with := func(goals ...rank.GoalRanking) *report.Document {
		in := reporttest.Normal()
		in.Analysis.Goals = goals
		return report.New(in)
	}
	g := reporttest.GoalsOf(networks, true)
	bound := reporttest.GoalsOf(networks, true)
	bound[0].LinkBound = true
	all := reporttest.GoalsOf(networks, true)[:1]
	for i := range all[0].Ranked {
		all[0].Ranked[i].Rank, all[0].Ranked[i].RankTo = 1, len(networks)
	}
	for name, c := range map[string]struct {
		d    *report.Document
		want string
	}{
		"other ranks": {with(g...), "Ranked by throughput. The ranks by CPU per byte are the same. By round trip, calico/direct* and macvlan are tied for 1st."},
		"same ranks":  {with(g[0], g[2]), "Ranked by throughput. The ranks by CPU per byte are the same. Round trips were not measured; add tcp_rr to the workloads."},
		"tied":        {with(all...), "Ranked by throughput. All are tied: no significant difference. Round trips were not measured; add tcp_rr to the workloads."},
		"link":        {with(bound...), "All networks fill the link, so throughput cannot rank them; ranked by round trip."},
	} {
		if got := strings.Join(section.GoalSentences(c.d), " "); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q lacks %q", name, got, c.want)
		}
	}
	d := report.New(reporttest.NoBaseline())
	if got := section.Headline(d); !strings.Contains(got, "3 pod networks compared with macvlan") {
		t.Errorf("without a baseline: %q", got)
	}
}

// TestOtherPaths: a path that the headline does not cover has a line of its own
// in the terminal.
func TestOtherPaths(t *testing.T) {
	in := reporttest.Normal()
	other := reporttest.GoalsOf(reporttest.FixtureNetworks(), true)[0]
	for i := range other.Settings {
		other.Settings[i].Cell.Placement = result.IntraHost
	}
	in.Analysis.OtherPaths = []rank.GoalRanking{other}
	out := render(t, "terminal", in, screen.Options{Width: 200, Unicode: true})
	if want := "Inside a node, pod-to-pod, MTU 1500: tcp_stream 1472 and 9000 B: throughput calico/direct* -3 % ±1 (1st)"; !strings.Contains(out, want) {
		t.Errorf("no line %q:\n%s", want, out)
	}
}

// TestHeadAgrees: the head of the HTML page and of Markdown says what the
// terminal says: the headline, the sentences and every row.
func TestHeadAgrees(t *testing.T) {
	in := reporttest.Normal()
	d := report.New(in)
	terminal := render(t, "terminal", in, screen.Options{Width: 400, Unicode: true})
	_, page, _ := strings.Cut(html.UnescapeString(render(t, "html", in, screen.Options{})), ">In short<")
	page, _, _ = strings.Cut(page, "</section>")
	page = strings.ReplaceAll(page, "\u00a0", " ") // no line ends inside a figure
	for _, s := range append([]string{section.Headline(d), section.SettingLine(d)}, section.GoalSentences(d)...) {
		if !strings.Contains(terminal, s) || !strings.Contains(page, s) {
			t.Errorf("%q: terminal %t, HTML %t", s, strings.Contains(terminal, s), strings.Contains(page, s))
		}
	}
	for _, r := range section.GoalTable(d, in.Analysis.Goals).Rows {
		// The page has the rank, which the terminal has last, next to the name.
		rank := len(r) - 1
		line, row := lineOf(terminal, r[0].Text), "<tr><th scope=\"row\">"+r[0].Text+"</th>"
		for _, c := range slices.Concat(r[rank:], r[1:rank]) {
			row += "<td>" + c.Text + "</td>"
			if !strings.Contains(line, c.Text) {
				t.Errorf("the terminal lacks %q of %s: %q", c.Text, r[0].Text, line)
			}
		}
		if !strings.Contains(page, row) {
			t.Errorf("the page lacks %q", row)
		}
	}
}

// TestFactorTable: a campaign without networks to compare answers with the
// levels that it varies.
func TestFactorTable(t *testing.T) {
	in := reporttest.Keep(reporttest.Normal(), "host")
	better := reporttest.Estimated(1.25, 0.02, 12, estimate.GeometricMean)
	cell := reporttest.CellOf("host", "tcp_stream", 1472)
	in.Analysis.Factors = []rank.FactorRanking{
		{Factor: "profile", Network: "host", Goal: rank.Bandwidth, Settings: []rank.Setting{{Cell: cell, Metric: "throughput_bits_per_second"}},
			Levels: []rank.Level{{Level: "default_settings", Rank: 2, RankTo: 2}, {Level: "kernel_optimizations", Rank: 1, RankTo: 1, AgainstReference: &better}}},
	}
	out := render(t, "terminal", in, screen.Options{Width: 80, Unicode: true})
	for _, want := range []string{"Profile compared with default_settings (host, between nodes", "default_settings       reference  2nd", "kernel_optimizations    +25 % ±2  1st", "2 profiles compared on the bare host"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "nothing to compare") {
		t.Errorf("the terminal denies its answer:\n%s", out)
	}
}
