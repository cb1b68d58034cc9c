package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/job"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/unit"
)

// Schema is the version of the JSON of Explain.
const Schema = 1

// explained is the JSON of Explain.
type explained struct {
	Schema   int    `json:"schema"`
	Campaign string `json:"campaign"`
	// Missing says what the campaign lacks for a full explanation.
	Missing  []string      `json:"missing,omitempty"`
	Networks []Explanation `json:"networks"`
	// Messages are models of what messages cost, Jobs what these predict.
	Messages []job.Hockney    `json:"messages,omitempty"`
	Jobs     []job.Prediction `json:"jobs,omitempty"`
	// ProbeCost is what reading the probes took; nil where no sample tells it.
	ProbeCost *stat.ProbeCost `json:"probe_cost,omitempty"`
}

// WriteJSON writes where the cost of each network goes, for programs.
func WriteJSON(w io.Writer, in report.Input) error {
	d := report.New(in)
	out := explained{Schema: Schema, Campaign: d.Title(), Missing: section.Unexplained(d), Networks: []Explanation{}, ProbeCost: d.Analysis.ProbeCost, Messages: d.Analysis.Hockneys, Jobs: d.Analysis.Jobs}
	out.Networks = append(out.Networks, explanations(d)...)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// Write writes, for each network, one paragraph and one table of where its
// cost goes, and what other choices of the same campaign came to.
func Write(w io.Writer, in report.Input, opt screen.Options) error {
	d, sc := report.New(in), screen.New(opt)
	lines := sc.Title(d.Title())
	lines = append(lines, sc.Wrap(d.Summary(), "", "")...)
	for _, m := range section.Unexplained(d) {
		lines = append(lines, sc.Wrap(m, "! ", "  ")...)
	}
	all := explanations(d)
	if len(all)+len(d.Analysis.Hockneys) == 0 {
		lines = append(lines, sc.Wrap("Nothing to explain: no network has a cost that was measured.", "", "")...)
	}
	for _, e := range all {
		lines = append(append(lines, ""), sc.Title(fmt.Sprintf("%s, %s", d.Name(e.Network), e.Where))...)
		lines = append(lines, sc.Wrap(e.Words, "", "")...)
		if t := explainTable(e); t != nil {
			lines = append(append(lines, ""), sc.Table(*t)...)
		}
		for _, x := range e.Traffics {
			lines = append(lines, ladderLines(sc, x)...)
		}
		for _, t := range []*page.Table{nodeTable(e), setUpTable(e)} {
			if t != nil {
				lines = append(append(lines, ""), sc.Table(*t)...)
			}
		}
		if words := append(otherChoiceWords(e), sweepWords(e)...); len(words) > 0 {
			lines = append(lines, "", "What would change it:")
			for _, w := range words {
				lines = append(lines, sc.Wrap(w, "- ", "  ")...)
			}
		}
	}
	lines = append(lines, messageLines(sc, d)...)
	if words := probeCostWords(d.Analysis.ProbeCost); words != "" && len(all) > 0 {
		lines = append(append(lines, ""), sc.Wrap(words, "", "")...)
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
	plain := func(e estimate.Estimate, of string) string { return unit.Estimate(e.Value, math.NaN(), of) }
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

// explainTable is components × traffics: what each takes, and what of it is more
// than the baseline's.
func explainTable(e Explanation) *page.Table {
	tab := &page.Table{Columns: []page.Column{{Head: "component"}}}
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
		sub := "per " + section.PerWorkOf(x.Attribution.Work).Name
		tab.Columns = append(tab.Columns, page.Column{Head: x.Traffic, Sub: sub, Number: true}, page.Column{Head: "share", Number: true, Joined: true}, page.Column{Head: "more than host", Number: true, Joined: true})
	}
	row := func(name string, of func(*summary.Attribution) (estimate.Estimate, *estimate.Estimate, *float64)) {
		cells := []page.Field{page.Text(name)}
		for _, x := range shown {
			p := section.PerWorkOf(x.Attribution.Work)
			seconds, more, share := of(x.Attribution)
			difference := page.Text("not measured")
			if more != nil {
				difference = page.Field{Text: p.Plus(*more), Value: &more.Value}
			}
			part := page.Text("not known")
			if share != nil {
				part = page.Text(section.PartOf(*share))
			}
			cells = append(cells, p.Field(seconds), part, difference)
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
		row(c.Label, func(a *summary.Attribution) (estimate.Estimate, *estimate.Estimate, *float64) {
			part, _ := a.Component(c.Name)
			return part.Seconds, part.More, part.Share
		})
	}
	row("total", func(a *summary.Attribution) (estimate.Estimate, *estimate.Estimate, *float64) {
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
