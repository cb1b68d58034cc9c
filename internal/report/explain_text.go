package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// ExplainSchema is the version of the JSON of Explain.
const ExplainSchema = 1

// explained is the JSON of Explain.
type explained struct {
	Schema   int    `json:"schema"`
	Campaign string `json:"campaign"`
	// Missing says what the campaign lacks for a full explanation.
	Missing  []string      `json:"missing,omitempty"`
	Networks []Explanation `json:"networks"`
	// Messages are models of what messages cost, Jobs what these predict.
	Messages []stat.Hockney       `json:"messages,omitempty"`
	Jobs     []stat.JobPrediction `json:"jobs,omitempty"`
	// ProbeCost is what reading the probes took; nil where no sample tells it.
	ProbeCost *stat.ProbeCost `json:"probe_cost,omitempty"`
}

// ExplainJSON writes where the cost of each network goes, for programs.
func ExplainJSON(w io.Writer, in Input) error {
	d := newDocument(in)
	out := explained{Schema: ExplainSchema, Campaign: d.title(), Missing: d.unexplained(), Networks: []Explanation{}, ProbeCost: d.Analysis.ProbeCost, Messages: d.Analysis.Hockneys, Jobs: d.Analysis.Jobs}
	out.Networks = append(out.Networks, d.explanations()...)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// Explain writes, for each network, one paragraph and one table of where its
// cost goes, and what other choices of the same campaign came to.
func Explain(w io.Writer, in Input, opt Options) error {
	d, sc := newDocument(in), newScreen(opt)
	lines := sc.wrap(d.title(), "", "")
	lines[0] = sc.bold(lines[0])
	lines = append(lines, sc.wrap(d.summary(), "", "")...)
	for _, m := range d.unexplained() {
		lines = append(lines, sc.wrap(m, "! ", "  ")...)
	}
	all := d.explanations()
	if len(all)+len(d.Analysis.Hockneys) == 0 {
		lines = append(lines, sc.wrap("Nothing to explain: no network has a cost that was measured.", "", "")...)
	}
	for _, e := range all {
		lines = append(lines, "")
		title := sc.wrap(fmt.Sprintf("%s, %s", d.name(e.Network), e.Where), "", "")
		for _, l := range title {
			lines = append(lines, sc.bold(l))
		}
		lines = append(lines, sc.wrap(e.Words, "", "")...)
		if t := explainTable(e); t != nil {
			lines = append(append(lines, ""), sc.textTable(*t)...)
		}
		for _, x := range e.Traffics {
			lines = append(lines, sc.ladderLines(x)...)
		}
		for _, t := range []*table{nodeTable(e), setUpTable(e)} {
			if t != nil {
				lines = append(append(lines, ""), sc.textTable(*t)...)
			}
		}
		if words := append(otherChoiceWords(e), sweepWords(e)...); len(words) > 0 {
			lines = append(lines, "", "What would change it:")
			for _, w := range words {
				lines = append(lines, sc.wrap(w, "- ", "  ")...)
			}
		}
	}
	lines = append(lines, sc.messageLines(d)...)
	if words := probeCostWords(d.Analysis.ProbeCost); words != "" && len(all) > 0 {
		lines = append(append(lines, ""), sc.wrap(words, "", "")...)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// probeCostWords says what reading the probes took, as the samples tell it; "" where
// they do not.
func probeCostWords(p *stat.ProbeCost) string {
	if p == nil {
		return ""
	}
	plain := func(e stat.Estimate, of string) string { return unit.Estimate(e.Value, math.NaN(), of) }
	out := fmt.Sprintf("The probes of a sample began with %s of CPU time inside its window, both ends together, %s of one core's",
		plain(p.FirstEdge, "s"), unit.Percent(p.Share.Value, math.NaN()))
	if e := p.StacksPerSecond; e != nil {
		out += fmt.Sprintf(", and took %s kernel stacks a second in it (docs/probes.md counts what one takes)", unit.Estimate(math.Round(e.Value), math.NaN(), ""))
	}
	if e := p.NodeRead; e != nil {
		out += fmt.Sprintf("; rules and memory of the nodes were read outside it, in %s", plain(*e, "s"))
	}
	return out + "."
}

func otherChoiceWords(e Explanation) []string {
	var words []string
	for _, c := range e.Changes {
		words = append(words, c.Words)
	}
	return words
}

// unexplained begins the sentence of a campaign without stacks.
const unexplained = "Where in the kernel the time goes is not known: "

// unexplained says what the campaign lacks for a full explanation.
func (d *document) unexplained() []string {
	out := d.missing()
	sampled := false
	for _, s := range d.Analysis.Cells {
		sampled = sampled || s.Attribution != nil
	}
	if sampled {
		return out
	}
	why := "no stacks were sampled: name stacks in the campaign's probes"
	if d.Environment != nil {
		for _, a := range d.Environment.Absent {
			if strings.HasPrefix(a, "probe stacks:") {
				why = "no stacks were sampled: " + strings.TrimSpace(strings.TrimPrefix(a, "probe stacks:"))
			}
		}
	}
	return append(out, sentenceEnd(unexplained+why))
}

// explainTable is components × traffics: what each takes, and what of it is more
// than the baseline's.
func explainTable(e Explanation) *table {
	tab := &table{Columns: []column{{Head: "component"}}}
	var shown []ExplainedTraffic
	for _, x := range e.Traffics {
		if x.Attribution != nil {
			shown = append(shown, x)
		}
	}
	if len(shown) == 0 {
		return nil
	}
	for _, x := range shown {
		sub := "per " + perWorkOf(x.Attribution.Work).name
		tab.Columns = append(tab.Columns, column{Head: x.Traffic, Sub: sub, Number: true}, column{Head: "share", Number: true, Joined: true}, column{Head: "more than host", Number: true, Joined: true})
	}
	row := func(name string, of func(*stat.Attribution) (stat.Estimate, *stat.Estimate, *float64)) {
		cells := []cell{text(name)}
		for _, x := range shown {
			p := perWorkOf(x.Attribution.Work)
			seconds, more, share := of(x.Attribution)
			difference := text("not measured")
			if more != nil {
				difference = cell{Text: p.plus(*more), Value: &more.Value}
			}
			part := text("not known")
			if share != nil {
				part = text(partOf(*share))
			}
			cells = append(cells, p.cell(seconds), part, difference)
		}
		tab.Rows = append(tab.Rows, cells)
	}
	for _, c := range unit.Components() {
		zero := func(x ExplainedTraffic) bool {
			part, _ := x.Attribution.Component(c.Name)
			return part.Seconds.Value == 0 && (part.More == nil || part.More.Value == 0)
		}
		if !c.Charged || !slices.ContainsFunc(shown, func(x ExplainedTraffic) bool { return !zero(x) }) {
			continue // no sample of it in any traffic
		}
		row(c.Label, func(a *stat.Attribution) (stat.Estimate, *stat.Estimate, *float64) {
			part, _ := a.Component(c.Name)
			return part.Seconds, part.More, part.Share
		})
	}
	row("total", func(a *stat.Attribution) (stat.Estimate, *stat.Estimate, *float64) {
		var whole *float64
		for _, c := range a.Components {
			if one := 1.0; c.Share != nil {
				whole = &one
			}
		}
		return a.Total, a.More, whole
	})
	return tab
}

// partOf says a share of a total: "12.3 %".
func partOf(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
