package paper

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/stat/warning"
)

// Reproduction is all that results say of a paper.
type Reproduction struct {
	Publication Publication `json:"publication"`
	// Cut tells that the results are of a part of the paper's campaign, made for a time
	// budget.
	Cut        bool    `json:"quick,omitempty"`
	Confidence float64 `json:"confidence"`
	// Blocks is the largest number of blocks of any cell.
	Blocks   int          `json:"blocks"`
	Verdicts []Verdict    `json:"verdicts"`
	Tables   []Comparison `json:"tables"`
	Setup    []Difference `json:"setup"`
	// Recorded says when, by which version of the program and on which kernel the records
	// were made, where that is known.
	Recorded Recording `json:"recorded"`
	// Agents are the records that the claims about the networks' own agents were judged on, and
	// nil where there are none. All else here is about the other claims' records.
	Agents *Agents `json:"agents,omitempty"`
	// Untaken maps a profile to its settings that did not take effect.
	Untaken map[string][]string `json:"untaken,omitempty"`
	// Models maps a network that is a model to what it leaves out.
	Models map[string]string `json:"models,omitempty"`
	// Warnings are those of the results themselves.
	Warnings []warning.Warning `json:"warnings,omitempty"`
	// Dir is the result directory; Version that of this program.
	Dir     string `json:"dir,omitempty"`
	Version string `json:"version,omitempty"`
}

// Recording is where and when records were made.
type Recording struct {
	// Started is a date, "2026-11-22"; Version that of the program that recorded.
	Started string `json:"started,omitempty"`
	Version string `json:"version,omitempty"`
	Kernel  string `json:"kernel,omitempty"`
}

// Reproduce compares results with a paper: those of a Kubernetes with its claims about the
// networks' own agents, and the first with everything else.
func Reproduce(p Paper, results ...*Results) Reproduction {
	r := results[0]
	out := Reproduction{Publication: p.Publication, Cut: r.Cut, Confidence: r.confidence(), Warnings: r.Analysis.Warnings, Blocks: r.blocks(),
		Verdicts: Verdicts(p, results...), Tables: Tables(p, r), Setup: Differences(p, r), Agents: p.judgedAgents(results), Untaken: r.Untaken}
	if e := r.Environment; e != nil {
		out.Recorded = recordingOf(e)
		for network, facts := range e.Networks {
			without := facts.LeavesOut
			if facts.Distance != nil {
				without = strings.TrimPrefix(without+"; "+facts.Distance.String(), "; ")
			}
			if facts.Model != "" && without != "" {
				if out.Models == nil {
					out.Models = map[string]string{}
				}
				out.Models[network] = without
			}
		}
	}
	return out
}

// Counted are the verdicts of the study's own findings and numbers.
func (r Reproduction) Counted() []Verdict {
	return slices.DeleteFunc(slices.Clone(r.Verdicts), func(v Verdict) bool { return !v.Claim.Counts() })
}

// Count is how many findings and numbers have a verdict.
func (r Reproduction) Count(w Outcome) int {
	n := 0
	for _, v := range r.Counted() {
		if v.Outcome == w {
			n++
		}
	}
	return n
}
