package paper

import (
	"fmt"
	"strings"
)

// ReadmeFile is the page of a paper's folder that is made from its claims.
const ReadmeFile = "README.md"

// Readme is every sentence of a paper that states a result, a question or a condition,
// with its claims, or with the reason why none tests it.
func Readme(p Paper) []byte {
	var b strings.Builder
	counted := 0
	for _, c := range p.Claims {
		if c.Counts() {
			counted++
		}
	}
	fmt.Fprintf(&b, "<!-- Made from claims.yaml: go test ./internal/paper -update -->\n# %s\n\n", p.Title)
	fmt.Fprintf(&b, "%s, %d. %s.\n\n> %s\n\n", strings.Join(p.Authors, ", "), p.Year, p.PublishedIn, p.Question)
	fmt.Fprintf(&b, "%d claims, of which %d are findings and numbers of the study and count in its tally; %d sentences without a claim, each with the reason.\n", len(p.Claims), counted, len(p.WithoutClaim))
	b.WriteString("[How a claim is judged](../../docs/adding-a-paper.md#how-it-is-judged), [what came out](../../docs/reproductions.md).\n")
	b.WriteString("\n## Sentences and their claims\n\n| where | the sentence | kind | claim | what is compared |\n|---|---|---|---|---|\n")
	for _, c := range p.Claims {
		fmt.Fprintf(&b, "| %s | “%s” | %s | `%s` | %s |\n", cellText(c.Where), cellText(c.Quote), c.Kind, c.ID, cellText(c.words()))
	}
	if len(p.WithoutClaim) > 0 {
		b.WriteString("\n## Sentences without a claim\n\n| where | the sentence | kind | why |\n|---|---|---|---|\n")
		for _, s := range p.WithoutClaim {
			fmt.Fprintf(&b, "| %s | “%s” | %s | %s |\n", cellText(s.Where), cellText(s.Quote), s.Kind, cellText(s.Reason))
		}
	}
	return []byte(b.String())
}

// cellText is text that may stand in a cell of a table.
func cellText(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(s)
}

// words say how a claim is tested: the relation with its thresholds, the cells on both
// sides, and which published words the thresholds stand for.
func (c Claim) words() string {
	if c.NotYet != "" {
		return "not yet: " + c.NotYet
	}
	s := fmt.Sprintf("%s of {%s} %s", c.Metric, c.Left, strings.ReplaceAll(c.Relation, "_", " "))
	if c.Measure != "" {
		s = c.Measure + " of " + s
	}
	if c.Right != nil {
		s += fmt.Sprintf(" {%s}", c.Right)
	}
	if c.Factor != "" {
		s += " " + c.Factor
	}
	if c.At != nil {
		s += fmt.Sprintf(" %g", *c.At)
	}
	if c.Holds != "" {
		s += ", in " + map[string]string{holdsMost: "most pairs", holdsAny: "at least one pair", "all": "all pairs"}[c.Holds]
	}
	if c.needsAgents() {
		s += ", on a Kubernetes"
	}
	if c.Except != nil {
		s += fmt.Sprintf(", except {%s}", c.Except)
	}
	if c.CountsAs != "" {
		s += ". " + c.CountsAs
	}
	return s
}
