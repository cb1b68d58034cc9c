// Package explain says where the cost of each network goes, and what other choices
// of the same campaign cost.
package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/unit"
)

// Explanation is where the cost of one network arises, in one situation.
type Explanation struct {
	Network string `json:"network"`
	Where   string `json:"where"`
	// Words is the paragraph: each of its figures is one of those below.
	Words    string             `json:"words"`
	Traffics []ExplainedTraffic `json:"traffics"`
	Changes  []Change           `json:"changes,omitempty"`
	// Sweeps are what each further policy and rule costs, SetUps what it takes to
	// add pods.
	Sweeps []stat.PolicySweep `json:"policy_sweeps,omitempty"`
	SetUps []SetUp            `json:"set_ups,omitempty"`

	situation report.Situation
}

// ExplainedTraffic is what one traffic costs on a network.
type ExplainedTraffic struct {
	Traffic string `json:"traffic"`
	// Cost is a metric's name, or that of Attribution; Now its value per unit of
	// work in seconds (or instructions), Baseline that of the bare network.
	Cost     string             `json:"cost"`
	Now      estimate.Estimate  `json:"now"`
	Baseline *estimate.Estimate `json:"baseline,omitempty"`
	// Attribution is where that goes; nil where no stacks were sampled.
	Attribution *summary.Attribution `json:"attribution,omitempty"`
	// Ladder is what it costs more than the baseline in steps; nil where none of
	// the networks between was measured.
	Ladder *summary.Ladder `json:"ladder,omitempty"`
	// Node is what one node held, by the names of unit.NodeMetrics; nil where it was
	// not read.
	Node map[string]estimate.Estimate `json:"node,omitempty"`

	cell result.Cell
	shown
}

// Change is what another choice, measured in the same campaign, came to.
type Change struct {
	// What is the choice in words: "native routing".
	What string `json:"what"`
	// Network and MTU are those measured.
	Network string `json:"network"`
	MTU     int    `json:"mtu"`
	Traffic string `json:"traffic"`
	// Now and Then are the costs without and with it, of the same metric.
	Now  estimate.Estimate `json:"now"`
	Then estimate.Estimate `json:"then"`
	// Significant tells that their intervals do not overlap.
	Significant bool   `json:"significant"`
	Words       string `json:"words"`
}

// costByStacks is ExplainedTraffic.Cost where it is the sum of sampled stacks.
const costByStacks = "component_cpu_seconds"

// shown formats a cost.
type shown struct {
	label string // "CPU time per transaction"
	say   func(estimate.Estimate) string
}

// explanations are those of every network in every situation, the baseline not.
func explanations(d *report.Document) []Explanation {
	var out []Explanation
	for _, g := range d.Groups {
		for _, n := range g.Networks {
			if n == result.HostNetwork || result.IsLadderOnly(n) {
				continue
			}
			e := Explanation{Network: n, Where: g.Title(), situation: g.Situation}
			for _, t := range g.Traffics {
				if x, ok := explainTraffic(d, g, n, t); ok {
					e.Traffics = append(e.Traffics, x)
				}
			}
			e.SetUps = setUps(d, e)
			if len(e.Traffics) == 0 && len(e.SetUps) == 0 {
				continue
			}
			e.Changes, e.Sweeps = changes(d, e), sweeps(d, e)
			e.Words = paragraph(d, e)
			out = append(out, e)
		}
	}
	return out
}

// explainTraffic finds the cost that tells most among those measured of both
// the network and its baseline.
func explainTraffic(d *report.Document, g *report.Group, network string, t result.Cell) (ExplainedTraffic, bool) {
	s, ok := g.Cell(network, t)
	if !ok || s.OK == 0 {
		return ExplainedTraffic{}, false
	}
	x := ExplainedTraffic{Traffic: t.Traffic(), Ladder: s.Ladder, Node: s.Node, cell: s.Cell}
	base, hasBase := g.Baselines[report.InCluster(t, s.Cell.Cluster)]
	if a := s.Attribution; a != nil {
		x.Cost, x.Now, x.Attribution = costByStacks, a.Total, a
		p := section.PerWorkOf(a.Work)
		x.shown = shown{"CPU time per " + p.Name, p.Say}
		if hasBase && base.Attribution != nil && base.Attribution.Work == a.Work {
			x.Baseline = &base.Attribution.Total
		}
		return x, true
	}
	c, ok := section.MainCost([]report.Entry{{Name: network, Summary: s}})
	if !ok {
		return x, false
	}
	x.Cost, x.Now, x.shown = c.Name, s.Absolute[c.Name], shownOf(c)
	if e, ok := report.AbsoluteOf(base, c.Name); ok {
		x.Baseline = &e
	}
	return x, true
}

func shownOf(c section.CostShown) shown {
	return shown{c.Label, func(e estimate.Estimate) string { return c.Format(c.Factor*e.Value, c.Factor*report.Halfwidth(e)) }}
}

// paragraph says in words what a network costs, of which how much where.
func paragraph(d *report.Document, e Explanation) string {
	var out []string
	for _, x := range e.Traffics {
		out = append(out, costSentence(d, x), whereSentence(x))
	}
	out = append(append(out, nodeWords(e)...), setUpWords(e))
	return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), " ")
}

// costSentence compares a cost with the baseline's.
func costSentence(d *report.Document, x ExplainedTraffic) string {
	s := fmt.Sprintf("%s takes %s of %s", x.Traffic, x.say(x.Now), x.label)
	switch {
	case x.Baseline == nil:
		return s + "; the bare network was not measured with it."
	case x.Attribution != nil && x.Attribution.More != nil:
		p := section.PerWorkOf(x.Attribution.Work)
		more := *x.Attribution.More
		if !report.Apart(more) {
			return fmt.Sprintf("%s, not significantly different from the bare network's %s (%s).", s, x.say(*x.Baseline), p.Plus(more))
		}
		return fmt.Sprintf("%s, %s (%s) against the bare network's %s.", s, p.Plus(more), percentMore(more.Value, x.Baseline.Value), x.say(*x.Baseline))
	case overlap(x.Now, *x.Baseline):
		return fmt.Sprintf("%s, not significantly different from the bare network's %s.", s, x.say(*x.Baseline))
	}
	return fmt.Sprintf("%s, %s against the bare network's %s.", s, percentMore(x.Now.Value-x.Baseline.Value, x.Baseline.Value), x.say(*x.Baseline))
}

// whereSentence names the components that differ from the baseline's, or where
// there is none, the largest ones.
func whereSentence(x ExplainedTraffic) string {
	if x.Attribution == nil {
		return ""
	}
	const most = 5
	p := section.PerWorkOf(x.Attribution.Work)
	labels := section.ComponentLabels()
	var parts []summary.Component
	compared := false
	for _, c := range x.Attribution.Components {
		compared = compared || c.More != nil
		if c.More != nil && report.Apart(*c.More) && math.Abs(c.More.Value) >= section.LeastShare*x.Now.Value {
			parts = append(parts, c)
		}
	}
	if !compared {
		parts = slices.Clone(x.Attribution.Components)
		slices.SortStableFunc(parts, func(a, b summary.Component) int { return descending(a.Seconds.Value, b.Seconds.Value) })
		var words []string
		for _, c := range parts[:min(most, len(parts))] {
			word := labels[c.Name] + " " + p.Say(c.Seconds)
			if c.Share != nil {
				word += " (" + unit.Share(*c.Share) + ")"
			}
			words = append(words, word)
		}
		return "Most of it is in " + report.And(words) + "."
	}
	if len(parts) == 0 {
		return "No component differs from the bare network's by more than its noise."
	}
	slices.SortStableFunc(parts, func(a, b summary.Component) int { return descending(math.Abs(a.More.Value), math.Abs(b.More.Value)) })
	var words []string
	for _, c := range parts[:min(most, len(parts))] {
		words = append(words, labels[c.Name]+" "+p.Plus(*c.More))
	}
	s := "What differs: " + report.And(words)
	if n := len(parts) - most; n > 0 {
		s += fmt.Sprintf("; and %s with less", report.Count(n, "component", "components"))
	}
	return s + "."
}

// overlap reports whether the intervals of two estimates overlap. An estimate
// without one overlaps with all.
func overlap(a, b estimate.Estimate) bool {
	al, ah, okA := a.Interval()
	bl, bh, okB := b.Interval()
	return !okA || !okB || (al <= bh && bl <= ah)
}

// percentMore says a difference as a share of the baseline: "12 % more".
func percentMore(more, base float64) string {
	if base <= 0 {
		return "more"
	}
	word := "more"
	if more < 0 {
		word = "less"
	}
	return unit.Share(math.Abs(more)/base) + " " + word
}

func descending(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}
