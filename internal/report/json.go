package report

import (
	"encoding/json"
	"io"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// JSONSchema is the version of the JSON report. A field's meaning never
// changes within a version.
const JSONSchema = 1

// jsonReport is the JSON report; report.schema.json describes it.
type jsonReport struct {
	Schema    int    `json:"schema"`
	Version   string `json:"version,omitempty"`
	Campaign  string `json:"campaign"`
	Directory string `json:"directory,omitempty"`
	// Complete tells that the run came to its end.
	Complete bool   `json:"complete"`
	Summary  string `json:"summary"`
	// Missing says what the campaign lacks for a full answer.
	Missing []string     `json:"missing,omitempty"`
	Answer  []jsonAnswer `json:"answer"`
	// TargetNotReached says which cells need more blocks, in words.
	TargetNotReached []string      `json:"target_not_reached,omitempty"`
	Analysis         stat.Analysis `json:"analysis"`
	// NotMeasured are planned cells without any record.
	NotMeasured []result.Cell       `json:"not_measured,omitempty"`
	Models      []string            `json:"models,omitempty"`
	Environment *result.Environment `json:"environment,omitempty"`
	Seed        *uint64             `json:"seed,omitempty"`
	// SampleWarnings maps what samples say of themselves to how many say so.
	SampleWarnings map[string]int `json:"sample_warnings,omitempty"`
}

// jsonAnswer is the answer for one traffic at one place.
type jsonAnswer struct {
	Where   string     `json:"where"`
	Traffic string     `json:"traffic"`
	Metric  string     `json:"metric,omitempty"`
	Words   string     `json:"words,omitempty"`
	Ties    [][]string `json:"ties,omitempty"`
}

func writeJSON(w io.Writer, d *document, _ Options) error {
	r := jsonReport{
		Schema: JSONSchema, Version: d.Version, Campaign: d.title(), Directory: d.Dir, Summary: d.summary(), Missing: d.missing(),
		Answer: []jsonAnswer{}, TargetNotReached: d.progress(), Analysis: d.Analysis, NotMeasured: d.unmeasured, Models: d.models(),
		Environment: d.Environment, Complete: d.Environment != nil && !d.Environment.Finished.IsZero(),
	}
	if r.Analysis.Cells == nil {
		r.Analysis.Cells = []stat.CellSummary{}
	}
	if len(d.Plan.Cells) > 0 {
		r.Seed = &d.Plan.Seed
	}
	for _, g := range d.groups {
		for _, t := range g.traffics {
			m, _ := g.primary(t)
			a := jsonAnswer{Where: g.title(), Traffic: t.Traffic(), Metric: m.Name, Words: d.sentence(g, t)}
			for _, k := range g.rankings[t] {
				a.Ties = append(a.Ties, ties(k)...)
				break
			}
			r.Answer = append(r.Answer, a)
		}
	}
	for _, s := range d.sampleWarnings() {
		if r.SampleWarnings == nil {
			r.SampleWarnings = map[string]int{}
		}
		r.SampleWarnings[s.what] = s.n
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
