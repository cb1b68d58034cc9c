package format

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// csvFactor is a factor of a cell as a column; what does not apply is empty.
type csvFactor struct {
	name   string
	factor result.Factor
}

func (f csvFactor) value(c result.Cell) string { return f.factor.Text(c) }

// csvFactors are all factors in the order of the columns.
func csvFactors() []csvFactor {
	var out []csvFactor
	for _, f := range result.FactorsBy(func(o result.Order) int { return o.Column }) {
		out = append(out, csvFactor{cmp.Or(f.Column, f.Name), f})
	}
	return out
}

// csvValues are the columns after the factors.
func csvValues() []string {
	return []string{
		"state", "metric", "unit", "statistic", "value", "low", "high", "blocks", "blocks_needed", "confidence",
		"efficiency_ratio", "efficiency_low_ratio", "efficiency_high_ratio", "efficiency_blocks",
		"primary", "rank", "rank_to", "link_bound", "model_of", "failed_samples", "reason", "compared_metric", "compared_with",
	}
}

// writeCSV writes the long form: one row for each cell, metric and statistic,
// one for each cell that has no value, and one for each rank in a goal. An
// empty field is absent, not 0.
func writeCSV(w io.Writer, d *report.Document, _ screen.Options) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true // RFC 4180
	columns := longColumns()
	kinds := kindsOf(columns)
	if err := out.Write(columns); err != nil {
		return err
	}
	for row := range longRows(d) {
		for i := range columns {
			if kinds[i] == textColumn {
				row[i] = guard(row[i])
			}
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// longColumns are the columns of the long form.
func longColumns() []string {
	var out []string
	for _, f := range csvFactors() {
		out = append(out, f.name)
	}
	return append(out, csvValues()...)
}

// columnKind is what a column of the long form holds.
type columnKind int

const (
	numberColumn columnKind = iota
	textColumn
	boolColumn
)

// kindsOf are the kinds of columns of the long form.
func kindsOf(columns []string) []columnKind {
	var out []columnKind
	for _, c := range columns {
		out = append(out, kindOf(c))
	}
	return out
}

// kindOf is the kind of a column of the long form. All else are numbers.
func kindOf(column string) columnKind {
	switch column {
	case "state", "metric", "unit", "statistic", "model_of", "reason", "compared_metric", "compared_with":
		return textColumn
	case "primary", "link_bound":
		return boolColumn
	}
	for _, f := range result.Factors() {
		switch {
		case cmp.Or(f.Column, f.Name) != column:
		case f.IsText():
			return textColumn
		case f.IsSwitch():
			return boolColumn
		}
	}
	return numberColumn
}

// longRows are the rows of the long form, as text that is not yet guarded; each
// is the reader's own.
func longRows(d *report.Document) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		cells := slices.Clone(d.Analysis.Cells)
		for _, c := range d.Unmeasured {
			cells = append(cells, summary.Cell{Cell: c})
		}
		for _, s := range cells {
			factors := factorsOf(s.Cell)
			for _, row := range csvRows(d, s) {
				if !yield(append(slices.Clone(factors), row...)) {
					return
				}
			}
		}
		for _, g := range d.Analysis.Goals {
			for _, r := range g.Ranked {
				factors := factorsOf(result.Cell{Network: r.Network, Cluster: r.Cluster, Profile: r.Profile})
				if !yield(append(factors, csvGoal(d, g, r)...)) {
					return
				}
			}
		}
	}
}

func factorsOf(c result.Cell) []string {
	var out []string
	for _, f := range csvFactors() {
		out = append(out, f.value(c))
	}
	return out
}

// goalState is the state of a row that is about a goal and not about a cell.
const goalState = "goal"

// csvGoal is the row of a rank in a goal, without its factors.
func csvGoal(d *report.Document, g rank.GoalRanking, r rank.GoalRanked) []string {
	row := make([]string, len(csvValues()))
	set := func(column, value string) { row[slices.Index(csvValues(), column)] = value }
	set("state", goalState)
	set("metric", string(g.Goal))
	if e := r.Efficiency; e != nil {
		set("statistic", string(e.Method))
		set("confidence", number(e.Confidence))
		for i, v := range csvEstimate(*e) {
			set([]string{"efficiency_ratio", "efficiency_low_ratio", "efficiency_high_ratio"}[i], v)
		}
		set("efficiency_blocks", strconv.Itoa(e.N))
	}
	set("rank", strconv.Itoa(r.Rank))
	set("rank_to", strconv.Itoa(r.RankTo))
	set("link_bound", boolean(g.LinkBound))
	set("model_of", d.Model(r.Network))
	return row
}

// csvRows are the rows of a cell, without its factors.
func csvRows(d *report.Document, s summary.Cell) [][]string {
	tail := []string{d.Model(s.Cell.Network), strconv.Itoa(s.Failed), section.WhyMissing(s), "", ""}
	var rows [][]string
	add := func(metric string, e estimate.Estimate, withEfficiency bool) {
		m, _ := report.FindMetric(metric)
		row := append([]string{report.StateOf(s), metric, m.Unit, string(e.Method)}, csvEstimate(e)...)
		row = append(row, strconv.Itoa(e.N), number(float64(e.Needed)), number(e.Confidence))
		rows = append(rows, append(append(row, csvEfficiency(d, s, metric, withEfficiency)...), tail...))
	}
	names := slices.Collect(maps.Keys(s.Absolute))
	for _, m := range report.Metrics() {
		if e, ok := s.Absolute[m.Name]; ok {
			add(m.Name, e, true)
		}
		if e, ok := s.Latency[m.Name]; ok {
			_, twice := s.Absolute[m.Name]
			add(m.Name, e, !twice)
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n == m.Name })
	}
	slices.Sort(names)
	for _, n := range names { // of a later version of the records
		add(n, s.Absolute[n], true)
	}
	if len(rows) == 0 {
		empty := make([]string, len(csvValues())-len(tail)-1)
		rows = append(rows, append(append([]string{report.StateOf(s)}, empty...), tail...))
	}
	return append(append(rows, csvChecks(d, s)...), csvLadder(d, s)...)
}

// csvChecks are the rows of a cell's cross-checks: a native cell against each
// published tool, and rate × round trip.
func csvChecks(d *report.Document, s summary.Cell) [][]string {
	var rows [][]string
	add := func(metric string, e *estimate.Estimate, reason, comparedMetric, comparedWith string) {
		rows = append(rows, csvBeside(d, s, metric, e, reason, comparedMetric, comparedWith))
	}
	for _, x := range d.Analysis.CrossChecks {
		if x.Native == s.Cell {
			add("native_over_classic_ratio", x.Ratio, x.NoRatio, x.Metric, x.Classic.Traffic())
		}
	}
	for _, r := range d.Analysis.RoundTrips {
		if r.Cell == s.Cell {
			reason := ""
			if !r.OK {
				reason = section.RoundTripVerdict(r)
			}
			add("round_trip_product_ratio", &r.Product, reason, "", "")
		}
	}
	return rows
}

// csvBeside is the row of a value that compares a cell with another one.
func csvBeside(d *report.Document, s summary.Cell, metric string, e *estimate.Estimate, reason, comparedMetric, comparedWith string) []string {
	row := []string{report.StateOf(s), metric, "", "", "", "", "", "", "", ""}
	if e != nil {
		row = append([]string{report.StateOf(s), metric, "", string(e.Method)}, csvEstimate(*e)...)
		row = append(row, strconv.Itoa(e.N), number(float64(e.Needed)), number(e.Confidence))
	}
	row = append(row, make([]string, 8)...) // no efficiency
	return append(row, d.Model(s.Cell.Network), strconv.Itoa(s.Failed), reason, comparedMetric, comparedWith)
}

// csvLadder are the rows of a cell's ladder: each step, all of them, the direct
// difference, and the components that steps and stacks both tell of.
func csvLadder(d *report.Document, s summary.Cell) [][]string {
	l := s.Ladder
	if l == nil {
		return nil
	}
	var rows [][]string
	for _, x := range l.Steps {
		rows = append(rows, csvBeside(d, s, "ladder_step", &x.More, "", l.Metric, x.Network+" less "+x.Below))
	}
	rows = append(rows, csvBeside(d, s, "ladder_sum", &l.Sum, "", l.Metric, ""), csvBeside(d, s, "ladder_direct", &l.Direct, "", l.Metric, s.Cell.Network+" less "+s.Cell.Baseline().Network))
	for _, c := range l.Checks {
		reason := ""
		if c.Disagree {
			reason = "steps and stacks disagree"
		}
		rows = append(rows, csvBeside(d, s, "ladder_by_steps", &c.Steps, reason, section.ComponentWords(c), strings.Join(c.Networks, ", ")),
			csvBeside(d, s, "ladder_by_stacks", &c.Stacks, reason, section.ComponentWords(c), strings.Join(c.Networks, ", ")))
	}
	return rows
}

func csvEstimate(e estimate.Estimate) []string {
	low, high, ok := e.Interval()
	if !ok {
		return []string{Exact(e.Value), "", ""}
	}
	return []string{Exact(e.Value), Exact(low), Exact(high)}
}

func csvEfficiency(d *report.Document, s summary.Cell, metric string, wanted bool) []string {
	row := make([]string, 8)
	if !wanted {
		return row
	}
	e, ok := s.EfficiencyByMetric[metric]
	if metric == s.Primary && s.Efficiency != nil {
		e, ok = *s.Efficiency, true
	}
	if ok {
		copy(row, csvEstimate(e))
		row[3] = strconv.Itoa(e.N)
	}
	row[4] = boolean(metric == s.Primary)
	group := s.Cell
	group.Network, group.Cluster = "", ""
	for _, r := range d.Analysis.Rankings {
		if r.Group != group || r.Metric != metric {
			continue
		}
		for _, n := range r.Ranked {
			if n.Network == s.Cell.Network {
				row[5], row[6], row[7] = fmt.Sprint(n.Rank), fmt.Sprint(n.RankTo), boolean(n.LinkBound)
			}
		}
	}
	return row
}

// guard keeps a text field from being taken for a formula by a spreadsheet
// (OWASP, "CSV Injection"): one that begins like a formula gets an apostrophe.
func guard(s string) string {
	if s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@' || s[0] == '\t' || s[0] == '\r' || s[0] == '\n') {
		return "'" + s
	}
	return s
}

// Exact is a number with all its digits.
func Exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// number leaves a factor that does not apply empty.
func number(v float64) string {
	if v == 0 {
		return ""
	}
	return Exact(v)
}

func boolean(on bool) string {
	if on {
		return "true"
	}
	return ""
}
