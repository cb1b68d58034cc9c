// Package recommend says which network to take.
package recommend

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/format"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/unit"
)

// jsonRecommendation is the JSON form of a recommendation.
type jsonRecommendation struct {
	Schema         int                 `json:"schema"`
	Words          []string            `json:"words"`
	Recommendation rank.Recommendation `json:"recommendation"`
	Models         []string            `json:"models,omitempty"`
}

// Write says what to take: for a terminal, or as JSON.
func Write(w io.Writer, r rank.Recommendation, env *result.Environment, asJSON bool, opt screen.Options) error {
	d := &report.Document{Input: report.Input{Environment: env, Analysis: stat.Analysis{Goals: r.Goals}}}
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(jsonRecommendation{Schema: format.JSONSchema, Words: recommendation(d, r), Recommendation: r, Models: recommendedModels(d, r)})
	}
	sc := screen.New(opt)
	var lines []string
	for i, s := range recommendation(d, r) {
		if i == 0 {
			lines = sc.Title(s)
			continue
		}
		lines = append(lines, sc.Wrap(s, "", "")...)
	}
	lines = append(append(lines, ""), sc.Table(*recommendTable(d, r))...)
	lines = append(lines, sc.Wrap(recommendNote(d, r), "", "")...)
	for _, t := range jobCosts(d, r) {
		lines = append(append(lines, ""), sc.Table(t)...)
	}
	for _, g := range r.Goals {
		for _, l := range g.LeftOut {
			lines = append(lines, sc.Wrap(fmt.Sprintf("left out of %s: %s: %s", goalName(g.Goal), d.Option(l.Option), l.Why), "x ", "  ")...)
		}
	}
	for _, m := range recommendedModels(d, r) {
		lines = append(lines, sc.Wrap("datapath rebuilt by cnibench: "+m, report.ModelMark+" ", "  ")...)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// recommendation is the answer in words: what to take, who is tied
// with it, what it costs to be wrong, what would settle it.
func recommendation(d *report.Document, r rank.Recommendation) []string {
	take := d.Option(r.Take)
	if !d.SeveralProfiles() && r.Take.Profile != "" {
		take += " (with " + r.Take.Profile + ", the only profile measured)"
	}
	var out []string
	if r.Sure {
		out = append(out, fmt.Sprintf("For %s, take %s: all others are worse, with %g %% confidence.", goalWords(r.Question.Goal), take, 100*r.Confidence))
	} else {
		best := "the best figure"
		if r.Question.Goal == rank.Balanced {
			best = "the least of the largest losses"
		}
		out = append(out, fmt.Sprintf("For %s: undecided. %s has %s, but is tied with %s at %g %% confidence.",
			goalWords(r.Question.Goal), take, best, report.And(runnersUp(d, r)), 100*r.Confidence))
	}
	if r.Job != nil {
		out = append(out, jobWords(*r.Job)...)
	} else {
		out = append(out, "Judged by "+judgedBy(r)+".")
	}
	if r.WorstLoss != nil {
		out = append(out, fmt.Sprintf("It loses most in %s: %s compared with the best.", goalName(r.WorstLoss.Goal), lossWords(*r.WorstLoss)))
	}
	return append(append(out, costOfError(d, r)...), settleWords(d, r)...)
}

// runnersUp are those tied with what to take.
func runnersUp(d *report.Document, r rank.Recommendation) []string {
	var out []string
	for _, o := range r.Others {
		if !o.Significant {
			out = append(out, d.Option(o.Option))
		}
	}
	return out
}

// judgedBy says which figures of which settings count.
func judgedBy(r rank.Recommendation) string {
	var parts []string
	for _, g := range r.Goals {
		var metrics []string
		seen := map[string]bool{}
		for _, s := range g.Settings {
			if m, _ := report.FindMetric(s.Metric); !seen[m.Label] {
				seen[m.Label] = true
				metrics = append(metrics, m.Label)
			}
		}
		s := report.And(metrics) + " in "
		if len(g.Settings) == 1 {
			s += g.Settings[0].Cell.Traffic()
		} else {
			s += fmt.Sprintf("%d settings, each counting the same", len(g.Settings))
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// costOfError says what is lost if the answer is wrong.
func costOfError(d *report.Document, r rank.Recommendation) []string {
	switch {
	case r.Sure && r.Question.Goal == rank.Balanced:
		return []string{"Every other network loses more in the goal that suits it least."}
	case r.Sure && r.Job != nil:
		next := r.Others[0]
		return []string{fmt.Sprintf("On the second, %s, the job runs at %s of that speed.", d.Option(next.Option), report.Ratio(*next.Behind))}
	case r.Sure:
		next := r.Others[0]
		return []string{fmt.Sprintf("The second, %s, reaches %s of the first.", d.Option(next.Option), report.Ratio(*next.Behind))}
	case r.LossAtMost == nil:
		return []string{"What you lose if this is wrong is unknown: an estimate needs 2 blocks of each network."}
	case r.Job != nil:
		return []string{fmt.Sprintf("If this is wrong, the job still runs at %s of the best speed, or faster.", sharePercent(1-*r.LossAtMost))}
	case r.Question.Goal == rank.Balanced:
		return []string{fmt.Sprintf("If this is wrong, its largest loss is at most %s above the smallest possible.", sharePercent(*r.LossAtMost))}
	}
	return []string{fmt.Sprintf("If this is wrong, you lose at most %s of what the best would give.", sharePercent(*r.LossAtMost))}
}

// settleWords says which measurement would make the answer sure.
func settleWords(d *report.Document, r rank.Recommendation) []string {
	if r.Settle == nil {
		return nil
	}
	var names []string
	for _, o := range r.Settle.Options {
		names = append(names, d.Option(o))
	}
	if r.Settle.Why != "" {
		s := "What would settle it: " + r.Settle.Why + "."
		if strings.HasPrefix(r.Settle.Why, "link-bound") {
			s += " Use --for cpu, or measure on a faster link."
		}
		return []string{s}
	}
	return []string{fmt.Sprintf("What would settle it: a campaign with only %s (and host), this traffic, and sampling.min_blocks and max_blocks set to %d. If the difference and the noise are as estimated, 4 of 5 such campaigns decide.",
		report.And(names), r.Settle.Blocks)}
}

// recommendTable is what was measured of each candidate.
func recommendTable(d *report.Document, r rank.Recommendation) *page.Table {
	t := &page.Table{Columns: []page.Column{{Head: "network"}}}
	for _, g := range r.Goals {
		sub := "of host"
		if g.Base == nil {
			sub = "of the first"
		}
		t.Columns = append(t.Columns, page.Column{Head: goalName(g.Goal), Sub: sub, Number: true})
	}
	last := page.Column{Head: "compared with the first", Number: true}
	if r.Question.Goal == rank.Balanced {
		last = page.Column{Head: "largest loss", Number: true}
	}
	t.Columns = append(t.Columns, last, page.Column{Head: "worse"})
	row := func(o rank.Option, last, worse string) {
		cells := []page.Field{page.Text(d.Option(o))}
		for _, g := range r.Goals {
			cells = append(cells, efficiencyField(g, o))
		}
		t.Rows = append(t.Rows, append(cells, page.Text(last), page.Text(worse)))
	}
	first := ""
	if r.WorstLoss != nil {
		first = lossWords(*r.WorstLoss)
	}
	row(r.Take, first, "")
	for _, o := range r.Others {
		last, worse := "", "tied"
		if o.WorstLoss != nil {
			last = lossWords(*o.WorstLoss)
		} else {
			last = report.Ratio(*o.Behind)
		}
		if o.Significant {
			worse = "yes"
		}
		row(o.Option, last, worse)
	}
	return t
}

// efficiencyField is an option's efficiency in a goal.
func efficiencyField(g rank.GoalRanking, o rank.Option) page.Field {
	for _, r := range g.Ranked {
		if r.Option != o {
			continue
		}
		switch e := section.ShownGoal(g, r); {
		case e != nil:
			return page.Field{Text: report.Ratio(*e), Value: &e.Value}
		case g.Base == nil && r.AgainstFirst == nil:
			return page.Text("100 %")
		}
		return page.Text("no block in common")
	}
	return page.Text("not ranked")
}

// recommendNote says what the last columns' intervals are.
func recommendNote(d *report.Document, r rank.Recommendation) string {
	if r.Question.Goal == rank.Balanced {
		return fmt.Sprintf("Losses are compared with the best of each goal; all bounds hold at once with %g %% confidence. The rules: docs/recommend.md.", 100*r.Confidence)
	}
	return fmt.Sprintf("All intervals of the comparison hold at once with %g %% confidence; more is better. The rules: docs/recommend.md.", 100*r.Confidence)
}

// recommendedModels names the models among the candidates.
func recommendedModels(d *report.Document, r rank.Recommendation) []string {
	var out []string
	seen := map[string]bool{}
	for _, g := range r.Goals {
		for _, o := range g.Ranked {
			if d.Rebuilt(o.Network) && !seen[o.Network] {
				seen[o.Network] = true
				out = append(out, o.Network+" after "+d.Model(o.Network))
			}
		}
	}
	return out
}

func goalName(g rank.Goal) string {
	if g == rank.CPU {
		return "CPU cost"
	}
	return string(g)
}

// goalWords is the goal after "for".
func goalWords(g rank.Goal) string {
	switch g {
	case rank.Balanced:
		return "a balance of all goals"
	case rank.HPC:
		return "a parallel job"
	}
	return goalName(g)
}

// lossWords says a loss with its bounds.
func lossWords(l rank.Regret) string {
	if l.Low == nil || l.High == nil {
		return sharePercent(l.Share)
	}
	return fmt.Sprintf("%s (%s to %s)", sharePercent(l.Share), sharePercent(*l.Low), sharePercent(*l.High))
}

// sharePercent is a share to three figures.
func sharePercent(share float64) string {
	if share == 0 {
		return "0 %"
	}
	return unit.Percent(share, math.NaN())
}
