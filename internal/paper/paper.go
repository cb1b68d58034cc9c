// Package paper holds what studies have published as data, and what recorded
// results say of it: claim by claim a verdict, table by table ours beside it.
//
// A paper is a folder of YAML. Its types are here; the JSON Schema that checks
// the files, and the manual's tables of keys, are made from them.
package paper

import (
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// Paper is a folder: paper.yaml, claims.yaml, campaign.yaml and, if it has one, kubernetes.yaml.
type Paper struct {
	Publication
	Claims []Claim
	// WithoutClaim are the sentences that no claim tests.
	WithoutClaim []Sentence
	// Campaign is campaign.yaml, and Used those of its cells that a claim or a table
	// uses.
	Campaign []byte
	Used     []result.Cell
	// Kubernetes is kubernetes.yaml, which measures claims about the networks' own agents; nil
	// where the folder has none.
	Kubernetes []byte

	uses         [][]result.Cell // of each claim
	known        Known           // what it was loaded with
	usedOfAgents []result.Cell   // the cells of Kubernetes that a claim uses
	ofClusters   []string        // the networks that Kubernetes expects
	agentsOnly   bool            // it is the part that OfAgents gives
}

// Publication is paper.yaml.
type Publication struct {
	ID          string   `json:"id" required:"true" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"The name of the folder."`
	Title       string   `json:"title" required:"true" doc:"The title of the publication."`
	Authors     []string `json:"authors" required:"true" doc:"Who wrote it."`
	Year        int      `json:"year" required:"true" doc:"When it appeared."`
	PublishedIn string   `json:"published_in" required:"true" doc:"Where it appeared, so that readers can find it."`
	URL         string   `json:"url,omitempty" doc:"Its address, if it has one."`
	Question    string   `json:"question" required:"true" doc:"What it asks, in one sentence."`
	Setup       []Setup  `json:"setup" required:"true" doc:"What it was measured on. Reports show each item next to ours."`
	Cells       Selector `json:"cells,omitempty" doc:"The factors that all tables and claims have in common; each may set its own."`
	Tables      []Table  `json:"tables" required:"true" doc:"Every table and figure of the publication, in its order."`
}

// Setup is one thing that a study was measured on.
type Setup struct {
	What      string `json:"what" required:"true" doc:"The part of the set-up: nodes, NIC, kernel."`
	Published string `json:"published" required:"true" doc:"What the publication states."`
	Of        string `json:"of,omitempty" enum:"kernel,operating_system,processor,processors,memory,links,profiles,mtu,networks,tools,sampling,blocks" doc:"Where our value comes from: the environment or the campaign of the results."`
	InTheLab  string `json:"in_the_lab,omitempty" doc:"What readers must know about a lab, in words."`
}

// Table is a published table or figure. It has one of Ours, NotYet and NoData.
type Table struct {
	ID      string   `json:"id" required:"true" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"A name of its own."`
	Kind    string   `json:"kind" required:"true" enum:"table,figure" doc:"What it is."`
	Where   string   `json:"where" required:"true" doc:"Where in the publication."`
	Title   string   `json:"title" required:"true" doc:"Its title."`
	Note    string   `json:"note,omitempty" doc:"What readers must know about the values."`
	Ours    *Ours    `json:"ours,omitempty" doc:"The cells that regenerate it."`
	NotYet  string   `json:"not_yet,omitempty" doc:"Why no cell regenerates it yet."`
	NoData  string   `json:"no_data,omitempty" doc:"Why it has nothing to measure, for example because it is a drawing."`
	Columns []Column `json:"columns,omitempty" doc:"Its columns."`
	Rows    []Row    `json:"rows,omitempty" doc:"Its rows."`
}

// Ours says which cells regenerate a table.
type Ours struct {
	Metric      string   `json:"metric" required:"true" doc:"The metric in the table: a metric of a sample, a derived metric, or a probe's count per second."`
	Measure     string   `json:"measure,omitempty" enum:"value,efficiency" doc:"efficiency: the table shows shares of the bare network. The default is value."`
	Unit        string   `json:"unit" required:"true" doc:"The unit of the published values, as published."`
	BasePerUnit float64  `json:"base_per_unit" required:"true" above:"0" doc:"How many of the metric's base units one published unit is: 1e9 for Gbit/s, 2e-6 for half round trips in µs."`
	Cells       Selector `json:"cells,omitempty" doc:"The factors that all of the table has in common."`
}

// Column of a table.
type Column struct {
	Name        string   `json:"name" required:"true" doc:"Its heading."`
	Cell        Selector `json:"cell,omitempty" doc:"The factors that it adds."`
	Metric      string   `json:"metric,omitempty" doc:"The column's metric, if it differs."`
	Unit        string   `json:"unit,omitempty" doc:"The column's unit, if it differs."`
	BasePerUnit float64  `json:"base_per_unit,omitempty" above:"0" doc:"As in ours, if the column's unit differs."`
}

// Row of a table.
type Row struct {
	Name string   `json:"name" required:"true" doc:"Its name, as published."`
	Cell Selector `json:"cell,omitempty" doc:"The factors that it adds."`
	// Values are in the published unit, one a column; nil for one that is not published.
	Values       []*float64 `json:"values,omitempty" doc:"The published values, one per column, null for a missing value. Omit the key if none is published."`
	UpTo         []*float64 `json:"upto,omitempty" doc:"The upper ends of published ranges; values then holds the lower ends."`
	Baseline     bool       `json:"baseline,omitempty" doc:"The row that the others are divided by. The default is the first row with values."`
	Inconsistent string     `json:"inconsistent,omitempty" doc:"Why the row cannot be right. Reports then show it and do not compare it."`
}

// Claims is claims.yaml.
type Claims struct {
	Claims []Claim `json:"claims" required:"true" doc:"Every finding of the publication."`
	// WithoutClaim are the sentences that no claim tests.
	WithoutClaim []Sentence `json:"without_claim,omitempty" doc:"Sentences with a result, a question or a condition that no claim tests, each with the reason."`
}

// The kinds of a sentence that count in a tally.
const (
	findingKind = "finding"
	numberKind  = "number"
)

// Sentence is one that has no claim.
type Sentence struct {
	Where  string `json:"where" required:"true" doc:"Where in the publication: page, section, table or figure."`
	Quote  string `json:"quote" required:"true" doc:"The words that identify the sentence, as published."`
	Kind   string `json:"kind" required:"true" enum:"finding,number,question,related work,setting" doc:"Its kind, as for a claim."`
	Reason string `json:"reason" required:"true" doc:"Why no claim tests it."`
}

// Claim is one finding. It has NotYet, or Metric, Left and Relation.
type Claim struct {
	ID        string     `json:"id" required:"true" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"A name of its own."`
	Kind      string     `json:"kind" required:"true" enum:"finding,number,question,related work,setting" doc:"What the sentence is: a finding or a number of the study, a question that the study asks, a result of others that it reports (related work), or a condition of its measurements (setting). Only findings and numbers count in the tally."`
	Where     string     `json:"where" required:"true" doc:"Where in the publication: page, section, table or figure."`
	Quote     string     `json:"quote" required:"true" doc:"The words that identify the sentence, as published; a row of a table as it is printed."`
	Published string     `json:"published" required:"true" doc:"What it states, in a sentence of your own."`
	CountsAs  string     `json:"counts_as,omitempty" doc:"Which published words or numbers the claim's thresholds represent. Required with by, up_to, within or range."`
	Metric    string     `json:"metric,omitempty" doc:"What is compared: a metric of a sample, a derived metric, a probe's count per second, or primary, which is each workload's main metric."`
	Measure   string     `json:"measure,omitempty" enum:"value,efficiency,difference" doc:"efficiency: each cell is first divided by the bare network, and more is then better for every metric. difference: left − right in base units instead of left / right, for values that may be 0. The default is value."`
	Testbed   string     `json:"testbed,omitempty" enum:"kubernetes" doc:"Where the claim must be judged, if the lab's networks cannot stand in: kubernetes, on the networks' own agents. Its cells are those of kubernetes.yaml."`
	Left      Selector   `json:"left,omitempty" doc:"The cells that the claim is about. A list of values selects one cell per value; any selects all values. Name every factor that has several values in campaign.yaml, or in kubernetes.yaml for a claim with a testbed."`
	Relation  string     `json:"relation,omitempty" doc:"What the claim states about them."`
	Right     Selector   `json:"right,omitempty" doc:"The factors that differ in the cells on the right. A list compares each left cell with several. Network host implies the path host-to-host."`
	Range     []*float64 `json:"range,omitempty" doc:"The lowest and the highest value, null for no bound, of left / right or of the quantity in the relation."`
	Within    float64    `json:"within,omitempty" above:"0" doc:"The largest difference between left and right as a share, 0.05 for 5 %."`
	By        float64    `json:"by,omitempty" above:"0" doc:"The smallest difference as a share of right, 0.2 for at least 20 % more or less."`
	UpTo      float64    `json:"up_to,omitempty" above:"0" doc:"The largest difference as a share of right, 0.05 for a gain or loss of at most 5 %."`
	Factor    string     `json:"factor,omitempty" doc:"The factor that varies along a series."`
	At        *float64   `json:"at,omitempty" doc:"The value of the factor beyond which it rises or falls."`
	Holds     string     `json:"holds,omitempty" enum:"all,most,any" doc:"How many pairs must show it. most: more than half. any: at least one. The default is all."`
	Except    Selector   `json:"except,omitempty" doc:"Exceptions: pairs with such a cell on the left must not show it."`
	Known     string     `json:"if_contradicted,omitempty" doc:"What would explain a contradicted claim, if known."`
	NotYet    string     `json:"not_yet,omitempty" doc:"Why it cannot be measured yet, and which hardware or software it needs. Replaces metric, left and relation."`
}

// Metrics are those that tables and the claims of the campaign compare, each once. A claim about the primary
// metric of each workload, which is one of a sample's own, adds none.
func (p Paper) Metrics() []string {
	var names []string
	for _, c := range p.Measured() {
		names = append(names, c.Metric)
	}
	for _, t := range p.Publication.Tables {
		if t.Ours == nil {
			continue
		}
		names = append(names, t.Ours.Metric)
		for _, column := range t.Columns {
			names = append(names, column.Metric)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" || name == primaryMetric })
}

// Counts tells whether the claim is one of the study's own results, which alone count
// in a tally.
func (c Claim) Counts() bool { return c.Kind == findingKind || c.Kind == numberKind }

// Difference reports whether the claim is about left − right, in the metric's base unit,
// and not about left / right.
func (c Claim) Difference() bool {
	return c.Measure == differenceMeasure || c.Relation == "difference_within"
}

const (
	efficiencyMeasure = "efficiency"
	differenceMeasure = "difference"
	primaryMetric     = "primary"
	holdsMost         = "most"
	holdsAny          = "any"
	// anyValue of a factor in a selector is each that was recorded.
	anyValue = "any"
)
