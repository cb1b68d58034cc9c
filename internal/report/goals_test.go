package report

import (
	"html"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// goalsOf are goals as stat gives them of the fixtures' networks; base tells
// whether there is a baseline.
func goalsOf(networks []fixtureNetwork, base bool) []stat.GoalRanking {
	var out []stat.GoalRanking
	for k, goal := range []stat.Goal{stat.Bandwidth, stat.Latency, stat.CPU} {
		g := stat.GoalRanking{Goal: goal}
		from := [][]int{{1, 2}, {0}, {1, 2}}[k]
		for _, i := range from {
			c := cellOf("", fixtureTraffics[i].workload, fixtureTraffics[i].bytes)
			c.Profile = ""
			g.Settings = append(g.Settings, stat.Setting{Cell: c, Metric: []string{"throughput_bits_per_second", "latency_mean_seconds", "instructions_per_byte"}[k]})
		}
		if base {
			g.Base = &stat.Option{Network: result.HostNetwork, Profile: stat.DefaultProfile}
		}
		sorted := slices.Clone(networks)
		slices.SortFunc(sorted, func(a, b fixtureNetwork) int { return a.from[from[0]] - b.from[from[0]] })
		mean := func(n fixtureNetwork) float64 {
			sum := 0.0
			for _, i := range from {
				sum += math.Log(n.eff[i])
			}
			return math.Exp(sum / float64(len(from)))
		}
		for i, n := range sorted {
			r := stat.GoalRanked{Option: stat.Option{Network: n.name, Profile: stat.DefaultProfile}, Rank: n.from[from[0]], RankTo: n.to[from[0]]}
			if len(networks) < len(fixtureNetworks()) { // their places are among all
				r.Rank, r.RankTo = i+1, i+1
			}
			if base {
				e := estimated(mean(n), 0.01, 12, stat.MeanOverSettings)
				r.Efficiency = &e
			}
			if i > 0 {
				e := estimated(mean(n)/mean(sorted[0]), 0.01, 12, stat.MeanOverSettings)
				r.AgainstFirst = &e
			}
			g.Ranked = append(g.Ranked, r)
		}
		out = append(out, g)
	}
	return out
}

// TestShortFits: the answer takes one screen of 80 columns, however large the
// campaign, and says the figures of the JSON.
func TestShortFits(t *testing.T) {
	cases := inputs()
	cases["analysed"], cases["hostile"] = analysed(), hostile()
	many := normal()
	var networks []fixtureNetwork
	for i := range 40 {
		networks = append(networks, fixtureNetwork{"a-rather-long-network-name/" + strings.Repeat("x", i), [3]float64{0.9, 0.9, 0.9}, [3]int{1, 1, 1}, [3]int{40, 40, 40}})
	}
	many.Analysis.Goals = goalsOf(networks, true)
	for i := range 30 {
		many.Analysis.Warnings = append(many.Analysis.Warnings, stat.Warning{Code: stat.Code(strings.Repeat("w", i+1)), Message: "doubt", Cure: "none"})
	}
	cases["many"] = many
	for name, in := range cases {
		for _, uni := range []bool{true, false} {
			out := render(t, "terminal", in, Options{Width: 80, Unicode: uni})
			if n := strings.Count(out, "\n"); n > shortLines {
				t.Errorf("%s: %d lines:\n%s", name, n, out)
			}
		}
		if name == "many" {
			continue // not all networks have room
		}
		out := render(t, "terminal", in, Options{Width: 200, Unicode: true})
		d := newDocument(in)
		for _, g := range in.Analysis.Goals {
			for _, r := range g.Ranked {
				e := shownGoal(g, r)
				line := lineOf(out, newScreen(Options{Unicode: true}).say(d.option(r.Option)))
				if e != nil && !strings.Contains(line, change(g.Goal, *e)) {
					t.Errorf("%s, %s: the line of %s lacks %s: %q", name, g.Goal, r.Option, change(g.Goal, *e), line)
				}
			}
			if !strings.Contains(out, headOfGoal(g)) {
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

// TestNaturalDirection: less throughput is a minus, longer round trips and more
// CPU are a plus, with the interval in the figure's own direction.
func TestNaturalDirection(t *testing.T) {
	half := estimated(0.5, 0.02, 12, stat.GeometricMean) // 0.49 to 0.51
	for goal, want := range map[stat.Goal]string{stat.Bandwidth: "-50 % ±1", stat.Latency: "+100 % ±4", stat.CPU: "+100 % ±4"} {
		if got := change(goal, half); got != want {
			t.Errorf("%s: %q, want %q", goal, got, want)
		}
	}
}

func TestOrdinals(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	if got := ranks(2, 3); got != "2nd–3rd" {
		t.Error(got)
	}
}

func TestGoalSentences(t *testing.T) {
	networks := fixtureNetworks()
	with := func(goals ...stat.GoalRanking) *document {
		in := normal()
		in.Analysis.Goals = goals
		return newDocument(in)
	}
	g := goalsOf(networks, true)
	bound := goalsOf(networks, true)
	bound[0].LinkBound = true
	all := goalsOf(networks, true)[:1]
	for i := range all[0].Ranked {
		all[0].Ranked[i].Rank, all[0].Ranked[i].RankTo = 1, len(networks)
	}
	for name, c := range map[string]struct {
		d    *document
		want string
	}{
		"other ranks": {with(g...), "Ranked by throughput. The ranks by CPU per byte are the same. By round trip, calico/direct* and macvlan are tied for 1st."},
		"same ranks":  {with(g[0], g[2]), "Ranked by throughput. The ranks by CPU per byte are the same. Round trips were not measured; add tcp_rr to the workloads."},
		"tied":        {with(all...), "Ranked by throughput. All are tied: no significant difference. Round trips were not measured; add tcp_rr to the workloads."},
		"link":        {with(bound...), "All networks fill the link, so throughput cannot rank them; ranked by round trip."},
	} {
		if got := strings.Join(c.d.goalSentences(), " "); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q lacks %q", name, got, c.want)
		}
	}
	d := newDocument(noBaseline())
	if got := d.headline(); !strings.Contains(got, "3 pod networks compared with macvlan") {
		t.Errorf("without a baseline: %q", got)
	}
}

// TestOtherPaths: a path that the headline does not cover has a line of its own
// in the terminal and a table in the HTML report.
func TestOtherPaths(t *testing.T) {
	in := normal()
	other := goalsOf(fixtureNetworks(), true)[0]
	for i := range other.Settings {
		other.Settings[i].Cell.Placement = result.IntraHost
	}
	in.Analysis.OtherPaths = []stat.GoalRanking{other}
	out := render(t, "terminal", in, Options{Width: 200, Unicode: true})
	if want := "Inside a node, pod-to-pod, MTU 1500: tcp_stream 1472 and 9000 B: throughput calico/direct* -3 % ±1 (1st)"; !strings.Contains(out, want) {
		t.Errorf("no line %q:\n%s", want, out)
	}
	if n := len(goals(newDocument(in))); n != len(goals(newDocument(normal())))+1 {
		t.Errorf("%d blocks", n)
	}
}

// TestHeadAgrees: the head of the HTML page and of Markdown says what the
// terminal says: the headline, the sentences and every row.
func TestHeadAgrees(t *testing.T) {
	in := normal()
	d := newDocument(in)
	terminal := render(t, "terminal", in, Options{Width: 400, Unicode: true})
	_, page, _ := strings.Cut(html.UnescapeString(render(t, "html", in, Options{})), ">In short<")
	page, _, _ = strings.Cut(page, "</section>")
	page = strings.ReplaceAll(page, "\u00a0", " ") // no line ends inside a figure
	for _, s := range append([]string{d.headline(), d.settingLine()}, d.goalSentences()...) {
		if !strings.Contains(terminal, s) || !strings.Contains(page, s) {
			t.Errorf("%q: terminal %t, HTML %t", s, strings.Contains(terminal, s), strings.Contains(page, s))
		}
	}
	for _, r := range d.goalTable(in.Analysis.Goals).Rows {
		line, row := lineOf(terminal, r[0].Text), "<tr><th scope=\"row\">"+r[0].Text+"</th>"
		for _, c := range r[1:] {
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
	in := keep(normal(), "host")
	better := estimated(1.25, 0.02, 12, stat.GeometricMean)
	cell := cellOf("host", "tcp_stream", 1472)
	in.Analysis.Factors = []stat.FactorRanking{
		{Factor: "profile", Network: "host", Goal: stat.Bandwidth, Settings: []stat.Setting{{Cell: cell, Metric: "throughput_bits_per_second"}},
			Levels: []stat.Level{{Level: "default_settings", Rank: 2, RankTo: 2}, {Level: "kernel_optimizations", Rank: 1, RankTo: 1, AgainstReference: &better}}},
	}
	out := render(t, "terminal", in, Options{Width: 80, Unicode: true})
	for _, want := range []string{"Profile compared with default_settings (host, between nodes", "default_settings       reference  2nd", "kernel_optimizations    +25 % ±2  1st", "2 profiles compared on the bare host"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "nothing to compare") {
		t.Errorf("the terminal denies its answer:\n%s", out)
	}
}
