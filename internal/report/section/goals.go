package section

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/unit"
)

// goals is the answer in short, as the terminal has it: what every network
// changes, its rank, and the sentences that explain them.
func goals(d *report.Document) []page.Element {
	if len(d.Analysis.Goals)+len(d.Analysis.Factors) == 0 {
		return nil
	}
	out := []page.Element{page.Para(Headline(d))}
	if s := SettingLine(d); s != "" {
		out = append(out, page.Para(s))
	}
	if t := GoalTable(d, d.Analysis.Goals); t != nil {
		out = append(out, page.Element{Table: rankSecond(t)})
	}
	for _, t := range FactorTables(d) {
		out = append(out, page.Element{Table: rankSecond(t)})
	}
	out = append(out, page.List(append(GoalSentences(d), leftOut(d)...)))
	for _, scope := range otherScopes(d) {
		t := GoalTable(d, scope)
		t.Caption = report.Capital(scopeWords(scope[0].Settings))
		out = append(out, page.Element{Table: rankSecond(t)})
	}
	return out
}

// rankSecond moves the ranks of a table from the last column to the one after the names:
// a phone shows it without scrolling.
func rankSecond(t *page.Table) *page.Table {
	last := len(t.Columns) - 1
	if t.Columns[last].Head != rankHead {
		return t
	}
	t.Columns = slices.Insert(t.Columns[:last:last], 1, t.Columns[last])
	for i, row := range t.Rows {
		t.Rows[i] = slices.Insert(row[:last:last], 1, row[last])
	}
	return t
}

// rankHead is the heading of a column of ranks.
const rankHead = "rank"

// natural is an efficiency as a ratio in the metric's own direction: a network
// with half the efficiency in latency has round trips twice as long.
func natural(g rank.Goal, e estimate.Estimate) estimate.Estimate {
	if g == rank.Bandwidth {
		return e
	}
	out := e
	out.Value = 1 / e.Value
	if low, high, ok := e.Interval(); ok {
		up, down := 1/low, 1/high
		out.Low, out.High = &down, &up
	}
	return out
}

// Change says what a goal's figure changes, in the figure's own direction:
// "-24 % ±2", "+31 % ±2".
func Change(g rank.Goal, e estimate.Estimate) string {
	n := natural(g, e)
	return unit.Change(n.Value, report.Halfwidth(n))
}

// changeField is a change in a table; its value is a ratio less one.
func changeField(g rank.Goal, e estimate.Estimate) page.Field {
	v := natural(g, e).Value - 1
	return page.Field{Text: Change(g, e), Value: &v}
}

// goalHead names the figure of a goal as a column.
func goalHead(g rank.Goal, settings []rank.Setting) string {
	switch g {
	case rank.Bandwidth:
		return "throughput"
	case rank.Latency:
		return "round trip"
	}
	if len(settings) > 0 {
		if _, work, ok := strings.Cut(settings[0].Metric, "_per_"); ok {
			return "CPU per " + work
		}
	}
	return "CPU"
}

// HeadOfGoal names the figure of a ranking as a column.
func HeadOfGoal(g rank.GoalRanking) string { return goalHead(g.Goal, g.Settings) }

// rankGoal is the goal whose ranks the table shows: the first that can rank;
// nil where none can.
func rankGoal(all []rank.GoalRanking) *rank.GoalRanking {
	for i, g := range all {
		if len(g.Ranked) > 1 && !g.LinkBound {
			return &all[i]
		}
	}
	return nil
}

// ordinal is a rank in words: "1st", "12th".
func ordinal(n int) string {
	ending := "th"
	if n%100 < 11 || n%100 > 13 {
		ending = map[int]string{1: "st", 2: "nd", 3: "rd"}[n%10]
		if ending == "" {
			ending = "th"
		}
	}
	return fmt.Sprint(n) + ending
}

// ranks says the ranks that something may hold: "2nd", "2nd–3rd".
func ranks(from, to int) string {
	if to > from {
		return ordinal(from) + "–" + ordinal(to)
	}
	return ordinal(from)
}

// goalOptions are the options of rankings, in the order of the one that ranks.
func goalOptions(all []rank.GoalRanking) []rank.Option {
	var out []rank.Option
	add := func(g rank.GoalRanking) {
		for _, r := range g.Ranked {
			if !slices.Contains(out, r.Option) {
				out = append(out, r.Option)
			}
		}
	}
	if by := rankGoal(all); by != nil {
		add(*by)
	}
	for _, g := range all {
		add(g)
	}
	for _, g := range all {
		for _, l := range g.LeftOut {
			if !slices.Contains(out, l.Option) {
				out = append(out, l.Option)
			}
		}
	}
	return out
}

// GoalTable is options × goals with one column of ranks; nil without goals.
func GoalTable(d *report.Document, all []rank.GoalRanking) *page.Table {
	if len(all) == 0 {
		return nil
	}
	t := &page.Table{Caption: "What each network changes", Columns: []page.Column{{Head: "network"}}}
	for _, g := range all {
		t.Columns = append(t.Columns, page.Column{Head: HeadOfGoal(g), Number: true})
	}
	by := rankGoal(all)
	if by != nil {
		t.Columns = append(t.Columns, page.Column{Head: rankHead})
	}
	for _, o := range goalOptions(all) {
		row := []page.Field{page.NameOf(d.Option(o), report.OfNetwork(o.Network, o.Cluster))}
		for _, g := range all {
			row = append(row, goalField(g, o))
		}
		if by != nil {
			row = append(row, page.Text(rankOf(*by, o)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func rankOf(g rank.GoalRanking, o rank.Option) string {
	for _, r := range g.Ranked {
		if r.Option == o {
			return ranks(r.Rank, r.RankTo)
		}
	}
	return "not ranked"
}

func goalField(g rank.GoalRanking, o rank.Option) page.Field {
	for _, r := range g.Ranked {
		if r.Option != o {
			continue
		}
		switch e := ShownGoal(g, r); {
		case e != nil:
			return changeField(g.Goal, *e)
		case g.Base == nil && r.AgainstFirst == nil:
			return page.Text("reference")
		}
		return page.Text("no block in common")
	}
	return page.Text("not measured")
}

// ShownGoal is the figure of a rank: against the base, or else the first.
func ShownGoal(g rank.GoalRanking, r rank.GoalRanked) *estimate.Estimate {
	if g.Base != nil {
		return r.Efficiency
	}
	return r.AgainstFirst
}

// GoalSentences explain the table: what is worse, what ± is, what the ranks are by.
func GoalSentences(d *report.Document) []string {
	all := d.Analysis.Goals
	var worse []string
	for _, g := range []rank.Goal{rank.Bandwidth, rank.Latency, rank.CPU} {
		shown := slices.ContainsFunc(all, func(r rank.GoalRanking) bool { return r.Goal == g }) ||
			slices.ContainsFunc(d.Analysis.Factors, func(r rank.FactorRanking) bool { return r.Goal == g })
		if shown {
			worse = append(worse, map[rank.Goal]string{rank.Bandwidth: "less throughput", rank.Latency: "longer round trips", rank.CPU: "more CPU"}[g])
		}
	}
	if len(worse) == 0 {
		return nil
	}
	s := "Worse means " + strings.Join(worse, ", ") + "."
	if d.Analysis.Confidence > 0 {
		s += fmt.Sprintf(" ± is the %g %% interval.", 100*d.Analysis.Confidence)
	}
	out := append([]string{s}, placementSentence(d)...)
	if by := rankGoal(all); by != nil {
		out = append(out, rankSentences(d, *by)...)
	}
	return append(out, absentGoals(d)...)
}

// placementSentence says what figures leave out because of where both ends ran; none
// where that is nothing, or differs from cell to cell.
func placementSentence(d *report.Document) []string {
	placed := map[string]bool{}
	for _, c := range d.Analysis.Cells {
		if c.OK > 0 {
			placed[c.Cell.CPUs] = true
		}
	}
	switch {
	case len(placed) != 1:
		return nil
	case placed[result.CPUsSame]:
		return []string{"Both ends ran on one CPU: neither was woken on another CPU, and no second CPU shared their work."}
	case placed[result.CPUsApart]:
		return []string{"Each end ran on a CPU of its own: wake-ups of the other CPU are in these figures, and both CPUs shared the work."}
	}
	return nil
}

// rankSentences say what the ranks are by, and where another figure ranks otherwise.
func rankSentences(d *report.Document, by rank.GoalRanking) []string {
	var out []string
	s := "Ranked by " + HeadOfGoal(by) + "."
	if d.Analysis.Goals[0].LinkBound && by.Goal != rank.Bandwidth {
		s = "All networks fill the link, so throughput cannot rank them; ranked by " + HeadOfGoal(by) + "."
	}
	var as []string
	for _, g := range d.Analysis.Goals {
		switch {
		case g.Goal == by.Goal || g.LinkBound || len(g.Ranked) < 2:
		case sameRanks(by, g):
			as = append(as, HeadOfGoal(g))
		default:
			out = append(out, "By "+HeadOfGoal(g)+", "+leaders(d, g))
		}
	}
	if len(as) > 0 {
		s += " The ranks by " + report.And(as) + " are the same."
	}
	if tied(by) {
		s += " All are tied: no significant difference."
	}
	return append([]string{s}, out...)
}

func sameRanks(a, b rank.GoalRanking) bool {
	for _, r := range a.Ranked {
		if rankOf(b, r.Option) != ranks(r.Rank, r.RankTo) {
			return false
		}
	}
	return len(a.Ranked) == len(b.Ranked)
}

// tied tells whether no option was shown to be better than another.
func tied(g rank.GoalRanking) bool {
	return !slices.ContainsFunc(g.Ranked, func(r rank.GoalRanked) bool { return r.Rank != 1 || r.RankTo != len(g.Ranked) })
}

// leaders says which options lead by a goal.
func leaders(d *report.Document, g rank.GoalRanking) string {
	if tied(g) {
		return "all are tied: no significant difference."
	}
	var first []string
	for _, r := range g.Ranked {
		if r.Rank == 1 {
			first = append(first, d.Option(r.Option))
		}
	}
	switch len(first) {
	case 0:
		return "the ranks contradict each other."
	case 1:
		return first[0] + " is 1st."
	}
	return fewNames(first) + " are tied for 1st."
}

// fewNames names the first two, and counts the rest.
func fewNames(names []string) string {
	if len(names) > 3 {
		names = append(slices.Clone(names[:2]), fmt.Sprintf("%d more", len(names)-2))
	}
	return report.And(names)
}

// leftOut says why options have no figure.
func leftOut(d *report.Document) []string {
	var out []string
	for _, g := range d.Analysis.Goals {
		for _, l := range g.LeftOut {
			out = append(out, d.Option(l.Option)+" has no figure for "+HeadOfGoal(g)+": "+l.Why)
		}
	}
	return out
}

// absentGoals names the figures that were not measured, with the cure.
func absentGoals(d *report.Document) []string {
	cure := map[rank.Goal]string{
		rank.Bandwidth: "Throughput was not measured; add tcp_stream to the workloads.",
		rank.Latency:   "Round trips were not measured; add tcp_rr to the workloads.",
		rank.CPU:       "CPU was not measured; cnibench doctor shows which probes work on this machine.",
	}
	var out []string
	for _, want := range []rank.Goal{rank.Bandwidth, rank.Latency, rank.CPU} {
		if len(d.Analysis.Goals) > 0 && !slices.ContainsFunc(d.Analysis.Goals, func(g rank.GoalRanking) bool { return g.Goal == want }) {
			out = append(out, cure[want])
		}
	}
	return out
}
