package format

import (
	"encoding/json"
	"io"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// JSONSchema is the version of the JSON report. A field's meaning never
// changes within a version.
const JSONSchema = 2

// jsonReport is the JSON report; report.schema.json describes it.
type jsonReport struct {
	Schema    int    `json:"schema"`
	Version   string `json:"version,omitempty"`
	Campaign  string `json:"campaign"`
	Directory string `json:"directory,omitempty"`
	// Complete: the run finished.
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
	// SampleWarnings maps remarks of samples to the number of samples that have them.
	SampleWarnings map[string]int `json:"sample_warnings,omitempty"`
}

// jsonAnswer is the answer for one traffic in one situation.
type jsonAnswer struct {
	Where   string     `json:"where"`
	Traffic string     `json:"traffic"`
	Metric  string     `json:"metric,omitempty"`
	Words   string     `json:"words,omitempty"`
	Ties    [][]string `json:"ties,omitempty"`
}

func writeJSON(w io.Writer, d *report.Document, _ screen.Options) error {
	r := jsonReport{
		Schema: JSONSchema, Version: d.Version, Campaign: d.Title(), Directory: d.Dir, Summary: d.Summary(), Missing: section.Missing(d),
		Answer: []jsonAnswer{}, TargetNotReached: section.Progress(d), Analysis: d.Analysis, NotMeasured: d.Unmeasured, Models: d.Models(),
		Environment: d.Environment, Complete: d.Environment != nil && !d.Environment.Finished.IsZero(),
	}
	if r.Analysis.Cells == nil {
		r.Analysis.Cells = []summary.Cell{}
	}
	if len(d.Plan.Cells) > 0 {
		r.Seed = &d.Plan.Seed
	}
	for _, g := range d.Groups {
		for _, t := range g.Traffics {
			m, _ := g.Primary(t)
			a := jsonAnswer{Where: g.Title(), Traffic: t.Traffic(), Metric: m.Name, Words: section.Sentence(d, g, t)}
			for _, k := range g.Rankings[t] {
				a.Ties = append(a.Ties, report.Ties(k)...)
				break
			}
			r.Answer = append(r.Answer, a)
		}
	}
	for _, s := range section.SampleWarnings(d) {
		if r.SampleWarnings == nil {
			r.SampleWarnings = map[string]int{}
		}
		r.SampleWarnings[s.What] = s.N
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
