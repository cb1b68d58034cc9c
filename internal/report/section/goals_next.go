package section

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/rank"
)

// otherScopes are the rankings that the headline does not cover, those of one
// path, link, MTU … and workload together.
func otherScopes(d *report.Document) [][]rank.GoalRanking {
	var out [][]rank.GoalRanking
	at := map[string]int{}
	for _, g := range d.Analysis.OtherPaths {
		words := scopeWords(g.Settings)
		i, ok := at[words]
		if !ok {
			i, at[words] = len(out), len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], g)
	}
	return out
}

// OtherLines are the rankings that the headline does not cover, one line each.
func OtherLines(d *report.Document) []string {
	var out []string
	for _, scope := range otherScopes(d) {
		for _, g := range scope {
			var parts []string
			for _, r := range g.Ranked {
				s := d.Option(r.Option)
				if e := ShownGoal(g, r); e != nil {
					s += " " + Change(g.Goal, *e)
				}
				if len(g.Ranked) > 1 && !g.LinkBound {
					s += " (" + ranks(r.Rank, r.RankTo) + ")"
				}
				parts = append(parts, s)
			}
			if len(parts) > 0 {
				out = append(out, report.Capital(scopeWords(g.Settings))+": "+HeadOfGoal(g)+" "+strings.Join(parts, ", ")+".")
			}
		}
	}
	return out
}

// Next names the commands that answer the next question; "" without a directory.
func Next(d *report.Document) string {
	if d.Dir == "" {
		return ""
	}
	say := func(argv ...string) string { return exec.Cmd{Argv: argv}.String() }
	first := ""
	for _, g := range []rank.Goal{rank.Latency, rank.Bandwidth, rank.CPU} {
		if first == "" && slices.ContainsFunc(d.Analysis.Goals, func(r rank.GoalRanking) bool { return r.Goal == g && len(r.Ranked) > 1 }) {
			first = say("cnibench", "recommend", d.Dir, "--for", string(g)) + ", "
		}
	}
	return "Next: " + first + say("cnibench", "report", d.Dir, "--long") + ", or open " + filepath.Join(d.Dir, result.ReportFile)
}
