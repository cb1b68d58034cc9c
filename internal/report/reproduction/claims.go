package reproduction

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/paper"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
)

// RecordedWords say when, by which version and on which kernel records were made; ""
// where none of it is known.
func RecordedWords(r paper.Recording) string {
	var parts []string
	for _, p := range []struct{ before, what string }{{"", r.Started}, {"by version ", r.Version}, {"on kernel ", r.Kernel}} {
		if p.what != "" {
			parts = append(parts, p.before+p.what)
		}
	}
	return strings.Join(parts, " ")
}

// publishedClaim is what a claim says, the words that it quotes, and what counts as that.
func publishedClaim(c paper.Claim) string {
	s := report.SentenceEnd(c.Published)
	if c.Quote != "" {
		s += fmt.Sprintf(" “%s”.", c.Quote)
	}
	if c.CountsAs != "" {
		s += " Counts: " + report.SentenceEnd(c.CountsAs)
	}
	return s
}

// stoodIn says of each model what it leaves out.
func stoodIn(r paper.Reproduction) []page.Element {
	var items []string
	for _, network := range report.SortedKeys(r.Models) {
		items = append(items, fmt.Sprintf("%s is a model without %s", network, report.SentenceEnd(r.Models[network])))
	}
	if len(items) == 0 {
		return nil
	}
	return []page.Element{page.List(items)}
}

// AgentsWords say how many claims were judged on a Kubernetes, and when, by which version and on
// which kernel its records were made.
func AgentsWords(a paper.Agents) string {
	s := report.Count(len(a.Claims), "claim about the networks' own agents was", "claims about the networks' own agents were") + " judged on a real Kubernetes. Its records have up to " + report.Count(a.Blocks, "block", "blocks")
	if words := RecordedWords(a.Recorded); words != "" {
		s += " and were made " + words
	}
	if a.Cut {
		s += ", for a time budget"
	}
	if a.Dir != "" {
		s += ". They are in " + a.Dir
	}
	return s + "."
}

// agentsBlock says which claims records of a Kubernetes judge, which clusters these are of, and
// what went wrong on them.
func agentsBlock(r paper.Reproduction) []page.Element {
	a := r.Agents
	if a == nil {
		return nil
	}
	out := []page.Element{page.Para("The records of a Kubernetes judge these claims: " + report.And(a.Claims) + ".")}
	var items []string
	for _, name := range report.SortedKeys(a.Clusters) {
		items = append(items, fmt.Sprintf("Cluster %s: %s", name, report.SentenceEnd(a.Clusters[name])))
	}
	if len(items) > 0 {
		out = append(out, page.List(items))
	}
	return slices.Concat(out, untakenSettings(a.Untaken), reproductionWarnings(a.Warnings))
}

// untakenSettings are those of profiles that were not in force while measuring.
func untakenSettings(untaken map[string][]string) []page.Element {
	var items []string
	for _, profile := range report.SortedKeys(untaken) {
		items = append(items, fmt.Sprintf("%s: %s", profile, report.SentenceEnd(strings.Join(untaken[profile], "; "))))
	}
	if len(items) == 0 {
		return nil
	}
	return []page.Element{page.Para("A claim about a profile that did not take effect is not measurable here."), page.List(items)}
}

// verdictPairs is a table for each claim that rests on several pairs.
func verdictPairs(r paper.Reproduction, narrow bool) []page.Element {
	if narrow {
		return nil
	}
	var out []page.Element
	for _, v := range r.Verdicts {
		if len(v.Pairs) < 2 {
			continue
		}
		t := &page.Table{Columns: []page.Column{{Head: "left", Wide: true}, {Head: "right", Wide: true}, {Head: "ours"}, {Head: "shows"}}}
		for _, p := range v.Pairs {
			right := ""
			if p.Right != nil {
				right = p.Right.Describe()
			}
			t.Rows = append(t.Rows, []page.Field{page.Text(p.Left.Describe()), page.Text(right), page.Text(pairValue(p)), page.Text(string(p.Outcome))})
		}
		out = append(out, page.Head(v.Claim.ID+": "+string(v.Outcome)), page.Element{Table: t})
	}
	return out
}

// judgedWords say how claims are judged.
func judgedWords(r paper.Reproduction) []string {
	return []string{
		fmt.Sprintf("Each pair of cells is compared inside blocks: the mean of the logarithms of left / right, with Student's interval at %g %%. Where at least 20 pairs of one kind were compared, in three blocks or more, the variance of each is a mean of its own and theirs. Where a claim is about a difference, it is the mean of left minus right.", 100*r.Confidence),
		"Reproduced: every pair's interval shows what is claimed. Reproduced in part: all that could be measured shows it, and the rest needs what this testbed lacks. Contradicted: a pair's interval, corrected for the number of pairs, shows the opposite, or a difference below 3 % where one is claimed. Undecided: neither. Not measurable here: there is nothing to compare, for the reason that is given. Only findings and numbers of the study count; questions, related work and settings are shown.",
		fmt.Sprintf("Each claim is judged on its own: of the decided ones, at most about %.0f in 100 are expected to be wrong by chance.", 100*(1-r.Confidence)),
		"Absolute values are shown and not judged: machines differ. In brackets: the share of the row marked = 100 %.",
	}
}
