package paper

import "github.com/cnibench/cnibench/internal/stat"

// Reproduction is all that results say of a paper.
type Reproduction struct {
	Publication Publication `json:"publication"`
	// Cut tells that the results are of the paper's quick cut.
	Cut        bool    `json:"quick,omitempty"`
	Confidence float64 `json:"confidence"`
	// Blocks is the largest number of blocks of any cell.
	Blocks   int          `json:"blocks"`
	Verdicts []Verdict    `json:"verdicts"`
	Tables   []Comparison `json:"tables"`
	Setup    []Difference `json:"setup"`
	// Warnings are those of the results themselves.
	Warnings []stat.Warning `json:"warnings,omitempty"`
	// Dir is the result directory; Version that of this program.
	Dir     string `json:"dir,omitempty"`
	Version string `json:"version,omitempty"`
}

// Reproduce holds results against a paper.
func Reproduce(p Paper, r *Results) Reproduction {
	out := Reproduction{Publication: p.Publication, Cut: r.Cut, Confidence: r.confidence(), Warnings: r.Analysis.Warnings,
		Verdicts: Verdicts(p, r), Tables: Tables(p, r), Setup: Differences(p, r)}
	for _, s := range r.Analysis.Cells {
		out.Blocks = max(out.Blocks, s.OK)
	}
	return out
}

// Count is how many claims have a verdict.
func (r Reproduction) Count(w Word) int {
	n := 0
	for _, v := range r.Verdicts {
		if v.Word == w {
			n++
		}
	}
	return n
}
