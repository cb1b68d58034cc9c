package paper

import (
	"cmp"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

// Prospect is what a testbed can say of a claim, before anything is measured.
type Prospect struct {
	Claim Claim `json:"claim"`
	// Why says why the testbed cannot decide it; "" where it can.
	Why string `json:"why,omitempty"`
	// Part tells that it has the cells of some of the pairs: the claim may be contradicted, or
	// reproduced in part.
	Part bool `json:"part,omitempty"`
	// Cells are those of the claim's pairs that the testbed has.
	Cells []result.Cell `json:"-"`
}

// Testbed is what is known of a testbed before it measures.
type Testbed struct {
	// Lacks says why a cell, or a metric of it, cannot be had; "" where it can.
	Lacks func(c result.Cell, metric string) string
	// Refuses says why a cell cannot be built or driven at all, so that it takes no time:
	// a run records it once, with the reason. Nil where nothing is refused.
	Refuses func(c result.Cell) string
	// Cost is what one sample of a cell takes.
	Cost func(result.Cell) time.Duration
	// Profile is what changing from one profile to the next takes, once for each in a block; 0
	// where that is nothing.
	Profile time.Duration
}

// Prospects say of each claim whether a testbed can decide it.
func (p Paper) Prospects(t Testbed) []Prospect {
	var out []Prospect
	for i, c := range p.Claims {
		one := Prospect{Claim: c, Why: c.NotYet}
		if p.elsewhere(c) {
			one.Why = p.whereAgentsAre()
			out = append(out, one)
			continue
		}
		if one.Why == "" && len(p.uses[i]) == 0 {
			one.Why = "this cnibench does not have what it is about"
		}
		for _, cell := range p.uses[i] {
			one.Why = cmp.Or(one.Why, t.Lacks(cell, c.Metric))
		}
		one.Cells = p.comparedOf(i, func(cell result.Cell, metric string) bool { return t.Lacks(cell, metric) == "" })
		one.Part = one.Why != "" && len(one.Cells) > 0
		out = append(out, one)
	}
	return out
}

// comparedOf are the cells of a claim's pairs of which a testbed has both sides. A cell whose
// every other side is missing is none of them: it would be measured for nothing.
func (p Paper) comparedOf(i int, has func(c result.Cell, metric string) bool) []result.Cell {
	claim := p.Claims[i]
	var cells []result.Cell
	for _, c := range p.uses[i] {
		if has(c, claim.Metric) {
			cells = append(cells, c)
		}
	}
	compared := map[result.Cell]bool{}
	for _, pair := range resolve(invent(claim, cells, p.known).results(), p.Publication.Cells, claim).comparisons {
		for _, c := range slices.Concat(pair.over, pair.under) {
			compared[c] = true
		}
	}
	return slices.DeleteFunc(cells, func(c result.Cell) bool { return !compared[c] })
}

// Refused are the cells of a paper that a testbed refuses.
func (p Paper) Refused(t Testbed) []result.Cell {
	var cells []result.Cell
	for _, c := range p.Used {
		if t.Refuses != nil && t.Refuses(c) != "" {
			cells = append(cells, c)
		}
	}
	return cells
}

// openConfidence is that at which a run takes a claim for decided and spends its time on
// others. It is stricter than that of verdicts, as it is asked after every block. Of claims on a
// boundary, looks from the third block on decide 3 % falsely in 200 blocks (TestManyLooks), and
// with others' spreads 2 to 3 % in 60 (TestManyLooksWithOthers).
const openConfidence = 0.9975

// Open gives the cells that need no more blocks: those of which every claim is decided.
// opt are the options of the analysis.
func (p Paper) Open(opt dataset.Options) func([]result.Sample) map[result.Cell]bool {
	opt.Confidence = openConfidence
	return func(samples []result.Sample) map[result.Cell]bool {
		done, r := map[result.Cell]bool{}, p.resultsOf(samples, opt)
		for i := range samples {
			done[samples[i].Cell] = true
		}
		for i, of := range p.askedAll(r) {
			v := of.judged()
			if v.Outcome != Undecided || v.MoreBlocks == 0 && len(v.Missing) > 0 {
				continue
			}
			cells := p.uses[i]
			if p.agentsOnly { // a cluster has its own MTU and conditions
				cells = of.compared()
			}
			for _, c := range cells {
				done[c] = len(r.Untaken[c.Profile]) > 0 // more samples would say no more
			}
		}
		return done
	}
}

// compared are the cells of a claim's comparisons.
func (r *resolver) compared() []result.Cell {
	var cells []result.Cell
	for _, c := range r.comparisons {
		cells = slices.Concat(cells, c.over, c.under)
	}
	return cells
}

// resultsOf are the results of a run that goes on.
func (p Paper) resultsOf(samples []result.Sample, opt dataset.Options) *Results {
	k, settings := stat.NewCollector(opt), Untaken{}
	for i := range samples {
		k.Add(&samples[i])
		settings.Add(&samples[i])
	}
	r := &Results{Analysis: k.Analyse(), Collector: k, Known: p.known.Names, Untaken: settings.List()}
	if p.agentsOnly {
		r.Environment = &result.Environment{Testbed: campaign.Kubernetes}
	}
	return r
}
