package paper

import (
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

// Prospect is what a testbed can say of a claim, before anything is measured.
type Prospect struct {
	Claim Claim `json:"claim"`
	// Why says why the testbed cannot decide it; "" where it can.
	Why string `json:"why,omitempty"`
	// Part tells that it has some of the cells: the claim may be contradicted, or reproduced
	// in part.
	Part bool `json:"part,omitempty"`
	// Cells are those of the claim that the testbed has.
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
}

// Prospects say of each claim whether a testbed can decide it.
func (p Paper) Prospects(t Testbed) []Prospect {
	var out []Prospect
	for i, c := range p.Claims {
		one := Prospect{Claim: c, Why: c.NotYet}
		if one.Why == "" && len(p.uses[i]) == 0 {
			one.Why = "this cnibench does not have what it is about"
		}
		for _, cell := range p.uses[i] {
			why := t.Lacks(cell, c.Metric)
			if why == "" {
				one.Cells = append(one.Cells, cell)
			} else if one.Why == "" {
				one.Why = why
			}
		}
		one.Part = one.Why != "" && len(one.Cells) > 1
		out = append(out, one)
	}
	return out
}

// Within chooses the cells of as many claims as one block of a length can hold, the
// cheapest first, findings and numbers before the rest, and claims that it can only
// contradict last. Cells that claims share are measured once.
func (p Paper) Within(block time.Duration, t Testbed) (cells []result.Cell, claims int) {
	open := slices.DeleteFunc(p.Prospects(t), func(x Prospect) bool { return x.Why != "" && !x.Part })
	chosen := map[result.Cell]bool{}
	cost := func(x Prospect) (sum time.Duration) {
		for _, c := range x.Cells {
			if !chosen[c] {
				sum += t.Cost(c)
			}
		}
		return sum
	}
	for spent := time.Duration(0); len(open) > 0; claims++ {
		best := 0
		for i, x := range open {
			if a, b := x.rank(), open[best].rank(); a < b || a == b && cost(x) < cost(open[best]) {
				best = i
			}
		}
		if spent += cost(open[best]); spent > block && claims > 0 {
			break
		}
		for _, c := range open[best].Cells {
			chosen[c] = true
		}
		open = slices.Delete(open, best, best+1)
	}
	for _, c := range p.Used { // in the order of the plan
		if chosen[c] {
			cells = append(cells, c)
		}
	}
	return cells, claims
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
// others. It is stricter than that of verdicts, as it is asked after every block: of 20
// looks at 99.75 % at most one in 20 claims on a boundary is decided falsely.
const openConfidence = 0.9975

// rank is lower for claims that are measured first.
func (x Prospect) rank() int {
	rank := 0
	if x.Part {
		rank += 2
	}
	if !x.Claim.Counts() {
		rank++
	}
	return rank
}

// Open gives the cells that need no more blocks: those of which every claim is decided.
// opt are the options of the analysis.
func (p Paper) Open(opt dataset.Options, known Known) func([]result.Sample) map[result.Cell]bool {
	opt.Confidence = openConfidence
	return func(samples []result.Sample) map[result.Cell]bool {
		k := stat.NewCollector(opt)
		done, settings := map[result.Cell]bool{}, Untaken{}
		for i := range samples {
			k.Add(&samples[i])
			settings.Add(&samples[i])
			done[samples[i].Cell] = true
		}
		r := &Results{Analysis: k.Analyse(), Collector: k, Known: known.Names, Untaken: settings.List()}
		for i, v := range Verdicts(p, r) {
			if v.Outcome != Undecided || v.MoreBlocks == 0 && len(v.Missing) > 0 {
				continue
			}
			for _, c := range p.uses[i] {
				done[c] = len(r.Untaken[c.Profile]) > 0 // more samples would say no more
			}
		}
		return done
	}
}
