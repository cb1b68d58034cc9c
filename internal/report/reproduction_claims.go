package report

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/paper"
	"github.com/cnibench/cnibench/internal/result"
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
	s := sentenceEnd(c.Published)
	if c.Quote != "" {
		s += fmt.Sprintf(" “%s”.", c.Quote)
	}
	if c.CountsAs != "" {
		s += " Counts: " + sentenceEnd(c.CountsAs)
	}
	return s
}

// stoodIn says of each model what it leaves out.
func stoodIn(r paper.Reproduction) []block {
	var items []string
	for _, network := range sortedKeys(r.Models) {
		items = append(items, fmt.Sprintf("%s is a model without %s", network, sentenceEnd(r.Models[network])))
	}
	if len(items) == 0 {
		return nil
	}
	return []block{list(items)}
}

// untakenSettings are those of profiles that were not in force while measuring.
func untakenSettings(r paper.Reproduction) []block {
	var items []string
	for _, profile := range sortedKeys(r.Untaken) {
		items = append(items, fmt.Sprintf("%s: %s", profile, sentenceEnd(strings.Join(r.Untaken[profile], "; "))))
	}
	if len(items) == 0 {
		return nil
	}
	return []block{para("A claim about a profile that did not take effect is not measurable here."), list(items)}
}

// verdictPairs is a table for each claim that rests on several pairs.
func verdictPairs(r paper.Reproduction, narrow bool) []block {
	if narrow {
		return nil
	}
	var out []block
	for _, v := range r.Verdicts {
		if len(v.Pairs) < 2 {
			continue
		}
		t := &table{Columns: []column{{Head: "left", Wide: true}, {Head: "right", Wide: true}, {Head: "ours"}, {Head: "shows"}}}
		for _, p := range v.Pairs {
			right := ""
			if p.Right != nil {
				right = cellWords(*p.Right)
			}
			t.Rows = append(t.Rows, []cell{text(cellWords(p.Left)), text(right), text(pairValue(p)), text(string(p.Outcome))})
		}
		out = append(out, head(v.Claim.ID+": "+string(v.Outcome)), block{Table: t})
	}
	return out
}

// cellWords are a cell's factors in a line.
func cellWords(c result.Cell) string {
	return c.Describe()
}
