// Package paper holds what studies have published as data, and what recorded
// results say of it: claim by claim a verdict, table by table ours beside it.
//
// A paper is a folder of YAML. Its types are here; the JSON Schema that checks
// the files, and the manual's tables of keys, are made from them.
package paper

import "github.com/cnibench/cnibench/internal/result"

// Paper is a folder: paper.yaml, claims.yaml and campaign.yaml.
type Paper struct {
	Publication
	Claims []Claim
	// WithoutClaim are the sentences that no claim tests.
	WithoutClaim []Sentence
	// Campaign is campaign.yaml, and Used those of its cells that a claim or a table
	// uses.
	Campaign []byte
	Used     []result.Cell

	uses [][]result.Cell // of each claim
}

// Publication is paper.yaml.
type Publication struct {
	ID          string   `json:"id" required:"true" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"The name of the folder."`
	Title       string   `json:"title" required:"true" doc:"The title of the publication."`
	Authors     []string `json:"authors" required:"true" doc:"Who wrote it."`
	Year        int      `json:"year" required:"true" doc:"When it appeared."`
	PublishedIn string   `json:"published_in" required:"true" doc:"Where it appeared, so that it can be found."`
	URL         string   `json:"url,omitempty" doc:"Its address, if it has one."`
	Question    string   `json:"question" required:"true" doc:"What it asks, in one sentence."`
	Setup       []Setup  `json:"setup" required:"true" doc:"What it was measured on; each is shown beside what ours was."`
	Cells       Selector `json:"cells,omitempty" doc:"The factors that all tables and claims have in common; each may set its own."`
	Tables      []Table  `json:"tables" required:"true" doc:"Every table and figure of the publication, in its order."`
}

// Setup is one thing that a study was measured on.
type Setup struct {
	What      string `json:"what" required:"true" doc:"What it is: nodes, NIC, kernel."`
	Published string `json:"published" required:"true" doc:"What the publication says of it."`
	Of        string `json:"of,omitempty" enum:"kernel,operating_system,processor,processors,memory,links,profiles,mtu,networks,tools,sampling,blocks" doc:"Where ours is known from: the environment or the campaign of the results."`
	InTheLab  string `json:"in_the_lab,omitempty" doc:"What is to be known of a lab here, in words."`
}

// Table is a published table or figure. It has one of Ours, NotYet and NoData.
type Table struct {
	ID      string   `json:"id" required:"true" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"A name of its own."`
	Kind    string   `json:"kind" required:"true" enum:"table,figure" doc:"What it is."`
	Where   string   `json:"where" required:"true" doc:"Where in the publication."`
	Title   string   `json:"title" required:"true" doc:"Its title."`
	Note    string   `json:"note,omitempty" doc:"What is to be known of the values."`
	Ours    *Ours    `json:"ours,omitempty" doc:"The cells that regenerate it."`
	NotYet  string   `json:"not_yet,omitempty" doc:"Why no cell regenerates it yet."`
	NoData  string   `json:"no_data,omitempty" doc:"Why there is nothing to measure in it, such as a drawing."`
	Columns []Column `json:"columns,omitempty" doc:"Its columns."`
	Rows    []Row    `json:"rows,omitempty" doc:"Its rows."`
}

// Ours says which cells regenerate a table.
type Ours struct {
	Metric      string   `json:"metric" required:"true" doc:"The metric in the table: one of a sample, a derived one, or what a probe counts per second."`
	Measure     string   `json:"measure,omitempty" enum:"value,efficiency" doc:"efficiency: the table has shares of the bare network. Default value."`
	Unit        string   `json:"unit" required:"true" doc:"The unit of the published values, as published."`
	BasePerUnit float64  `json:"base_per_unit" required:"true" above:"0" doc:"How many of the metric's base units one published unit is: 1e9 for Gbit/s, 2e-6 for half round trips in µs."`
	Cells       Selector `json:"cells,omitempty" doc:"The factors that all of the table has in common."`
}

// Column of a table.
type Column struct {
	Name        string   `json:"name" required:"true" doc:"Its heading."`
	Cell        Selector `json:"cell,omitempty" doc:"The factors that it adds."`
	Metric      string   `json:"metric,omitempty" doc:"The metric, where the column has another."`
	Unit        string   `json:"unit,omitempty" doc:"The unit, where the column has another."`
	BasePerUnit float64  `json:"base_per_unit,omitempty" above:"0" doc:"As in ours, where the column has another."`
}

// Row of a table.
type Row struct {
	Name string   `json:"name" required:"true" doc:"Its name, as published."`
	Cell Selector `json:"cell,omitempty" doc:"The factors that it adds."`
	// Values are in the published unit, one a column; nil for one that is not told.
	Values       []*float64 `json:"values,omitempty" doc:"The published values, one a column, null where there is none. Left out where none is told."`
	UpTo         []*float64 `json:"upto,omitempty" doc:"The upper ends, where ranges are published; the values are then the lower ones."`
	Baseline     bool       `json:"baseline,omitempty" doc:"The row that the others are shares of; without one it is the first row that has values."`
	Inconsistent string     `json:"inconsistent,omitempty" doc:"Why the row cannot be right; it is shown, and not compared."`
}

// Claims is claims.yaml.
type Claims struct {
	Claims []Claim `json:"claims" required:"true" doc:"Every finding of the publication."`
	// WithoutClaim are the sentences that no claim tests.
	WithoutClaim []Sentence `json:"without_claim,omitempty" doc:"Sentences that state a result, a question or a condition and that no claim tests, each with the reason."`
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
	Kind   string `json:"kind" required:"true" enum:"finding,number,question,related work,setting" doc:"What it is, as of a claim."`
	Reason string `json:"reason" required:"true" doc:"Why no claim tests it."`
}

// Claim is one finding. It has NotYet, or Metric, Left and Relation.
type Claim struct {
	ID        string     `json:"id" required:"true" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"A name of its own."`
	Kind      string     `json:"kind" required:"true" enum:"finding,number,question,related work,setting" doc:"What the sentence is: a finding or a number of the study, a question that it asks, what it reports of others, or a condition that it measured under. Only findings and numbers count in the tally."`
	Where     string     `json:"where" required:"true" doc:"Where in the publication: page, section, table or figure."`
	Quote     string     `json:"quote" required:"true" doc:"The words that identify the sentence, as published; a row of a table as it is printed."`
	Published string     `json:"published" required:"true" doc:"What it says, in a sentence of your own."`
	CountsAs  string     `json:"counts_as,omitempty" doc:"Which published words or numbers the thresholds of the claim stand for. Required where it has by, up_to, within or range."`
	Metric    string     `json:"metric,omitempty" doc:"What is compared: a metric of a sample, a derived one, what a probe counts per second, or primary, that of each workload."`
	Measure   string     `json:"measure,omitempty" enum:"value,efficiency,difference" doc:"efficiency: each cell is first divided by the bare network; more is then better whatever the metric. difference: left − right in base units instead of left / right, for values that may be 0. Default value."`
	Left      Selector   `json:"left,omitempty" doc:"The cells that the claim is about. A list of values makes a cell of each; any stands for all values. A factor that has several values in campaign.yaml must be named."`
	Relation  string     `json:"relation,omitempty" doc:"What is said of them."`
	Right     Selector   `json:"right,omitempty" doc:"What differs in the cells that they are compared with. A list compares each left cell with several. On network host the path is host-to-host by itself."`
	Range     []*float64 `json:"range,omitempty" doc:"The least and the greatest value, null for no bound: of left / right, or of what the relation says."`
	Within    float64    `json:"within,omitempty" above:"0" doc:"The share by which left and right may differ, 0.05 for 5 %."`
	By        float64    `json:"by,omitempty" above:"0" doc:"The least difference as a share of right, 0.2 for at least 20 % more or less."`
	UpTo      float64    `json:"up_to,omitempty" above:"0" doc:"The greatest difference as a share of right, 0.05 for a gain or loss of at most 5 %."`
	Factor    string     `json:"factor,omitempty" doc:"The factor along which a series is taken."`
	At        *float64   `json:"at,omitempty" doc:"The value of the factor beyond which it rises or falls."`
	Holds     string     `json:"holds,omitempty" enum:"all,most,any" doc:"most: more than half of the pairs must show it. any: one must. Default all: every one of them."`
	Except    Selector   `json:"except,omitempty" doc:"all except: pairs with such a cell on the left must not show it."`
	Known     string     `json:"if_contradicted,omitempty" doc:"What would explain that it does not come out here, where that is known."`
	NotYet    string     `json:"not_yet,omitempty" doc:"Why it cannot be measured yet, with the hardware or software that it needs; instead of metric, left and relation."`
}

// Counts tells whether the claim is one of the study's own results, which alone count
// in a tally.
func (c Claim) Counts() bool { return c.Kind == findingKind || c.Kind == numberKind }

const (
	efficiencyMeasure = "efficiency"
	differenceMeasure = "difference"
	primaryMetric     = "primary"
	holdsMost         = "most"
	holdsAny          = "any"
	// anyValue of a factor in a selector is each that was recorded.
	anyValue = "any"
)
