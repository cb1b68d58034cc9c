package paper

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// Outcome is the verdict on a claim.
type Outcome string

// The verdicts.
const (
	// Reproduced: every pair that the claim is about shows what it says.
	Reproduced Outcome = "reproduced"
	// ReproducedInPart: what could be measured shows it, and the other pairs need what
	// this testbed lacks.
	ReproducedInPart Outcome = "reproduced in part"
	// Contradicted: a pair shows that it is not so.
	Contradicted Outcome = "contradicted"
	// Undecided: neither is shown.
	Undecided Outcome = "undecided"
	// NotMeasured: a time budget left out what the claim is about. A run without one may
	// decide it.
	NotMeasured Outcome = "not measured"
	// NotMeasurable: this testbed could not measure what the claim is about.
	NotMeasurable Outcome = "not measurable here"
)

// Outcomes are all verdicts, in the order in which reports show them.
func Outcomes() []Outcome {
	return []Outcome{Reproduced, ReproducedInPart, Contradicted, Undecided, NotMeasured, NotMeasurable}
}

// Compared reports whether a claim with this verdict was compared with records.
func (o Outcome) Compared() bool { return o != NotMeasured && o != NotMeasurable }

// Verdict is what results say of a claim.
type Verdict struct {
	Claim   Claim   `json:"claim"`
	Outcome Outcome `json:"verdict"`
	// Pairs are the comparisons that it rests on.
	Pairs []Pair `json:"pairs,omitempty"`
	// Deciding is the index of the pair that the verdict depends on; 0 without pairs.
	Deciding int `json:"deciding,omitempty"`
	// Missing is what the claim is about and the results do not have.
	Missing []Missing `json:"missing,omitempty"`
	// MoreBlocks is how many more would decide it, if mean and spread stay what
	// they are; 0 where that is not known or none would.
	MoreBlocks int `json:"more_blocks,omitempty"`
	// Leans is what an undecided claim would be if the means were the truth; absent
	// where that is nothing either, or the claim is not undecided.
	Leans Outcome `json:"leans,omitempty"`
}

// Pair is one comparison.
type Pair struct {
	Left result.Cell `json:"left"`
	// Right is nil where the claim is about a number.
	Right  *result.Cell `json:"right,omitempty"`
	Metric string       `json:"metric"`
	// Factor is that of Value = left − factor × right, where a value is 0; else 0.
	Factor float64 `json:"factor,omitempty"`
	// Value is left / right, left − right, the share of the link, or the metric itself.
	Value estimate.Estimate `json:"value"`
	// Arithmetic tells that Value is the metric itself, in base units.
	Arithmetic bool `json:"arithmetic,omitempty"`
	// Outcome is what this pair alone shows.
	Outcome Outcome `json:"shows"`
}

// Missing is what could not be compared, and why.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// leftOut reports whether nothing but a time budget is why.
func (m Missing) leftOut() bool { return strings.Contains(m.Why, leftOut) }

// lacking reports whether this testbed cannot measure it: a feature is missing, or a profile
// did not take effect.
func (m Missing) lacking() bool {
	return strings.HasPrefix(m.Why, unsupportedHere) || strings.Contains(m.Why, notInForce)
}

// Verdicts says of each claim what the results show.
//
// A claim is about all of its pairs. It is reproduced where each pair's interval
// shows it: then no correction is needed, since all must be wrong together
// (Berger 1982, intersection-union). If some of its pairs need what the testbed lacks, and all
// others show it, it is reproduced in part. It is contradicted where any pair shows the
// opposite, each at a confidence corrected for their number (Bonferroni). So the
// probability of a false decision is at most 1 − confidence for each claim.
//
// Claims about the networks' own agents are judged on the results of a Kubernetes, and all
// others on the first.
func Verdicts(p Paper, results ...*Results) []Verdict {
	cases := p.askedAll(results...)
	out := make([]Verdict, len(cases))
	for i, of := range cases {
		out[i] = of.judged()
	}
	return out
}

// askedAll makes the comparisons of all claims.
func (p Paper) askedAll(results ...*Results) []*resolver {
	cases := make([]*resolver, len(p.Claims))
	on := p.judges(results)
	for i, c := range p.Claims {
		r := on.of(c)
		if r == nil {
			cases[i] = p.withoutAgents(c)
			continue
		}
		of := left{}
		if r.Cut && i < len(p.uses) && len(p.uses[i]) > 0 {
			var cells []result.Cell
			out := r.leftOut(p.uses[i])
			if len(out) > 0 {
				cells = r.leftOut(p.comparedOf(i, r.within))
			}
			if of.cut, of.some = true, len(cells) > 0; len(out) < len(p.uses[i]) { // else it is another campaign's
				of.cells, of.none = cells, len(cells) == 0
			}
		}
		cases[i] = asked(p.Publication.Cells, c, r, of)
	}
	for _, r := range []*Results{on.first, on.agents} {
		moderate(slices.DeleteFunc(slices.Clone(cases), func(c *resolver) bool { return c.Results != r }))
	}
	return cases
}

// judge judges a claim on its own.
func judge(common Selector, claim Claim, results *Results, out left) Verdict {
	return asked(common, claim, results, out).judged()
}

// asked makes the comparisons of a claim in results of which a time budget left out a part.
func asked(common Selector, claim Claim, results *Results, out left) *resolver {
	if claim.NotYet != "" {
		return &resolver{claim: claim}
	}
	r := resolve(results, common, claim)
	r.out = out
	for _, c := range out.cells { // in how many pairs is not known
		r.miss(name(c), leftOut)
		r.uncounted = true
	}
	return r
}

// judged is the verdict on the comparisons of a claim.
func (r *resolver) judged() Verdict {
	v := r.verdict()
	if r.out.cut && !v.Outcome.Compared() {
		v.without(r.out.some)
	}
	return v
}

// decision decides the claim, of whose verdict it is known what is missing.
func (r *resolver) decision(v Verdict) decision {
	return decision{
		comparisons: r.comparisons, confidence: r.confidence(), enough: r.claim.Holds, lost: r.lost, uncounted: r.uncounted && r.lost > 0,
		lacking: !slices.ContainsFunc(v.Missing, func(m Missing) bool { return !m.lacking() }),
	}
}

// verdict is that on what was compared.
func (r *resolver) verdict() Verdict {
	v := Verdict{Claim: r.claim}
	if r.claim.NotYet != "" {
		v.Outcome, v.Missing = NotMeasurable, []Missing{{What: "not yet", Why: r.claim.NotYet}}
		return v
	}
	for _, m := range r.missing {
		if r.out.none && m.why == leftOut {
			m.why = noOtherSide
		}
		v.Missing = append(v.Missing, Missing{m.what, m.why})
	}
	// What this testbed cannot measure is named before what a time budget left out.
	v.Missing = append(slices.DeleteFunc(slices.Clone(v.Missing), Missing.leftOut), slices.DeleteFunc(v.Missing, func(m Missing) bool { return !m.leftOut() })...)
	if len(r.comparisons) == 0 {
		v.without(len(v.Missing) > 0 && v.Missing[0].leftOut()) // and so are all after it
		return v
	}
	j := r.decision(v)
	v.Outcome = j.verdict(0)
	for _, c := range r.comparisons {
		v.Pairs = append(v.Pairs, c.pair(j))
	}
	v.Deciding = j.deciding(v)
	if v.Outcome == Undecided {
		v.MoreBlocks = j.more()
		v.Leans = j.leans()
	}
	return v
}
