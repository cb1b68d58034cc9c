package report

import (
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
		from := [][]int{{1, 2}, {0}, {0, 1, 2}}[k]
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
				if e != nil && !strings.Contains(line, ratio(*e)) {
					t.Errorf("%s, %s: the line of %s lacks %s: %q", name, g.Goal, r.Option, ratio(*e), line)
				}
			}
			if want := goalName(g.Goal) + ": "; !strings.Contains(out, "\n"+want) {
				t.Errorf("%s: no sentence about %s", name, g.Goal)
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
	d := newDocument(normal())
	networks := fixtureNetworks()
	g := goalsOf(networks, true)
	for _, c := range []struct {
		name string
		g    stat.GoalRanking
		want string
	}{
		{"first", g[0], "calico/direct* (97.1 % ± 1.0) is first; flannel/vxlan* is last (52.6 % ± 0.5)."},
		{"tie", g[1], "calico/direct* (92.1 % ± 0.9) and macvlan share the first place; flannel/vxlan* is last (68.4 % ± 0.7)."},
		{"one", goalsOf(networks[:1], true)[0], "only calico/direct* (97.1 % ± 1.0): nothing to rank."},
		{"none", stat.GoalRanking{}, "no network was measured in every setting."},
		{"link", stat.GoalRanking{LinkBound: true, Ranked: make([]stat.GoalRanked, 2)}, "link-bound, cannot rank: all of them fill the link."},
	} {
		if got := d.goalSentence(c.g); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	d = newDocument(noBaseline())
	d.Analysis.Goals = goalsOf(networks[:2], false)
	if got := strings.Join(d.goalTable().Notes, " "); !strings.Contains(got, "no baseline; 100 % is the first.") {
		t.Errorf("notes %q", got)
	}
}
