// Package paper holds what studies have published as data, and what recorded
// results say of it: claim by claim a verdict, table by table ours beside it.
//
// A paper is a folder of YAML. Its types are here; the JSON Schema that checks
// the files, and the manual's tables of keys, are made from them.
package paper

// Paper is a folder: paper.yaml, claims.yaml and the campaigns.
type Paper struct {
	Publication
	Claims []Claim
	// Campaign and Quick are campaign.yaml and quick.yaml, the whole and its cut.
	Campaign, Quick []byte
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
}

// Claim is one finding. It has NotYet, or Metric, Left and Relation.
type Claim struct {
	ID        string    `json:"id" required:"true" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"A name of its own."`
	Where     string    `json:"where" required:"true" doc:"Where in the publication."`
	Published string    `json:"published" required:"true" doc:"What it says, in a sentence, and what counts as that."`
	Metric    string    `json:"metric,omitempty" doc:"What is compared: a metric of a sample, a derived one, what a probe counts per second, or primary, that of each workload."`
	Measure   string    `json:"measure,omitempty" enum:"value,efficiency" doc:"efficiency: each cell is first held against the bare network; more is then better whatever the metric. Default value."`
	Left      Selector  `json:"left,omitempty" doc:"The cells that the claim is about. A list of values makes a cell of each; a factor that is left out may have any value."`
	Relation  string    `json:"relation,omitempty" enum:"greater,less,better,worse,ratio_within,indistinguishable,rises_with,falls_with,falls_beyond,fills_link,short_of_link,at_most,at_least" doc:"What is said of them."`
	Right     Selector  `json:"right,omitempty" doc:"What differs in the cells that they are held against. A list makes each left cell be held against several. On network host the path is host-to-host by itself."`
	Range     []float64 `json:"range,omitempty" doc:"ratio_within: the least and the largest left / right."`
	Within    float64   `json:"within,omitempty" above:"0" doc:"indistinguishable: the share by which they may differ, 0.05 for 5 %."`
	Value     *float64  `json:"value,omitempty" doc:"at_most, at_least: the bound, in the metric's base unit."`
	Factor    string    `json:"factor,omitempty" doc:"rises_with, falls_with, falls_beyond: the factor."`
	At        *float64  `json:"at,omitempty" doc:"falls_beyond: the factor's value up to which it does not fall."`
	Holds     string    `json:"holds,omitempty" enum:"all,most" doc:"most: it is enough that more than half of the pairs show it. Default all."`
	Known     string    `json:"if_contradicted,omitempty" doc:"What would explain that it does not come out here, where that is known."`
	NotYet    string    `json:"not_yet,omitempty" doc:"Why it cannot be measured yet; instead of metric, left and relation."`
}

// The relations of a claim.
const (
	greater           = "greater"
	less              = "less"
	better            = "better"
	worse             = "worse"
	ratioWithin       = "ratio_within"
	indistinguishable = "indistinguishable"
	risesWith         = "rises_with"
	fallsWith         = "falls_with"
	fallsBeyond       = "falls_beyond"
	fillsLink         = "fills_link"
	shortOfLink       = "short_of_link"
	atMost            = "at_most"
	atLeast           = "at_least"
)

const (
	efficiencyMeasure = "efficiency"
	primaryMetric     = "primary"
	holdsMost         = "most"
)
