// Package reproduction writes what results say of a published study.
package reproduction

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/paper"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/format"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/warning"
	"github.com/cnibench/cnibench/internal/unit"
)

// reproductionFormat is one way to write what results say of a paper.
type reproductionFormat struct {
	name  string
	write func(io.Writer, paper.Reproduction, screen.Options) error
}

func reproductionFormats() []reproductionFormat {
	return []reproductionFormat{
		{"terminal", func(w io.Writer, r paper.Reproduction, opt screen.Options) error {
			return screen.WritePage(w, reproductionPage(r, true), opt)
		}},
		{"html", func(w io.Writer, r paper.Reproduction, _ screen.Options) error {
			return format.WriteHTMLPage(w, reproductionPage(r, false), nil)
		}},
		{"markdown", func(w io.Writer, r paper.Reproduction, _ screen.Options) error {
			return format.WriteMarkdownPage(w, reproductionPage(r, false))
		}},
		{"json", func(w io.Writer, r paper.Reproduction, _ screen.Options) error {
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			return enc.Encode(r)
		}},
	}
}

// Write renders what results say of a paper: terminal, html,
// markdown or json.
func Write(w io.Writer, format string, r paper.Reproduction, opt screen.Options) error {
	for _, f := range reproductionFormats() {
		if f.name != format {
			continue
		}
		if err := f.write(w, r, opt); err != nil {
			return fmt.Errorf("%s reproduction: %w", format, err)
		}
		return nil
	}
	return fmt.Errorf("unknown format of a reproduction %q", format)
}

// reproductionPage is the whole report; narrow leaves sentences out of tables.
func reproductionPage(r paper.Reproduction, narrow bool) page.Page {
	p := page.Page{Title: "Reproduction of " + r.Publication.ID, Summary: reproductionSummary(r), Version: r.Version}
	add := func(id, title string, blocks ...page.Element) {
		if len(blocks) > 0 {
			p.Sections = append(p.Sections, page.Section{ID: id, Title: title, Elements: blocks})
		}
	}
	add("answer", "Claims and verdicts", page.Element{Table: claimsTable(r, narrow)})
	add("agents", "What was judged on a Kubernetes", agentsBlock(r)...)
	add("models", "What stood in, and what it leaves out", stoodIn(r)...)
	add("untaken", "Settings that did not take effect", untakenSettings(r.Untaken)...)
	add("pairs", "Every verdict with its pairs", verdictPairs(r, narrow)...)
	add("contradicted", "What does not come out here", contradicted(r)...)
	add("tables", "Published tables and figures, ours beside them", publishedTables(r)...)
	add("setup", "What differs in the set-up", setupBlock(r, narrow))
	add("missing", "What was not measured", missingClaims(r)...)
	add("warnings", "Warnings of the measurement", reproductionWarnings(r.Warnings)...)
	add("method", "How a claim is judged", page.List(judgedWords(r)))
	return p
}

func reproductionSummary(r paper.Reproduction) string {
	pub := r.Publication
	var parts []string
	for _, w := range paper.Outcomes() {
		parts = append(parts, fmt.Sprintf("%d %s", r.Count(w), w))
	}
	s := fmt.Sprintf("%s: %s (%s, %d). Of %s: %s. %s, %g %% intervals", report.And(pub.Authors), pub.Title, pub.PublishedIn, pub.Year,
		report.Count(len(r.Counted()), "finding and number", "findings and numbers"), strings.Join(parts, ", "), report.Count(r.Blocks, "block", "blocks"), 100*r.Confidence)
	if r.Cut {
		s += "; a part of the study, for a time budget"
	}
	if words := RecordedWords(r.Recorded); words != "" {
		s += "; recorded " + words
	}
	if r.Dir != "" {
		s += "; records: " + r.Dir
	}
	s += "."
	if r.Agents != nil {
		s += " " + AgentsWords(*r.Agents)
	}
	return s
}

// claimsTable has a row for each claim.
func claimsTable(r paper.Reproduction, narrow bool) *page.Table {
	t := &page.Table{Columns: []page.Column{{Head: "claim"}, {Head: "verdict"}, {Head: "ours", Wide: true}}}
	if !narrow {
		t.Columns = []page.Column{{Head: "claim"}, {Head: "verdict"}, {Head: "ours", Wide: true}, {Head: "published", Wide: true}, {Head: "kind"}, {Head: "where"}}
	}
	for _, v := range r.Verdicts {
		row := []page.Field{page.Text(v.Claim.ID), page.Text(string(v.Outcome)), page.Text(OursWords(v))}
		if !narrow {
			row = []page.Field{page.Text(v.Claim.ID), page.Text(string(v.Outcome)), page.Text(OursWords(v)), page.Text(publishedClaim(v.Claim)), page.Text(v.Claim.Kind), page.Text(v.Claim.Where)}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// OursWords say in a line what the results have of a claim: the pair that says
// most, how many there are, what is missing and what would decide.
func OursWords(v paper.Verdict) string {
	if len(v.Pairs) == 0 {
		return missingWords(v)
	}
	p := v.Pairs[v.Deciding]
	s := pairValue(p)
	if len(v.Pairs) == 1 && p.Factor != 0 { // the value says nothing without it
		s = pairName(v, p) + ": " + s
	}
	if len(v.Pairs) > 1 {
		n := 0
		for _, q := range v.Pairs {
			if q.Outcome == paper.Reproduced {
				n++
			}
		}
		s = fmt.Sprintf("%d of %d pairs show it; %s: %s", n, len(v.Pairs), pairName(v, p), s)
	}
	if len(v.Missing) > 0 {
		s += "; " + missingWords(v)
	}
	if v.Leans != "" {
		s += "; leans to " + string(v.Leans)
	}
	if v.MoreBlocks > 0 {
		s += fmt.Sprintf("; about %s more would decide", report.Count(v.MoreBlocks, "block", "blocks"))
	}
	return s
}

// pairValue is left / right with its interval.
func pairValue(p paper.Pair) string {
	format := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	if p.Arithmetic {
		m, _ := report.FindMetric(p.Metric)
		format = func(v float64) string { return m.Format(v, math.NaN()) }
	}
	low, high, ok := p.Value.Interval()
	if !ok {
		return fmt.Sprintf("%s (no interval of %s)", format(p.Value.Value), report.Count(p.Value.N, "block", "blocks"))
	}
	return fmt.Sprintf("%s (%s to %s)", format(p.Value.Value), format(low), format(high))
}

// pairName says which pair it is, by what differs between its cells and by what
// differs between the pairs.
func pairName(v paper.Verdict, p paper.Pair) string {
	s, by := p.Left.Network, " / "
	if strings.HasPrefix(v.Claim.Relation, "grows_") {
		s = "growth of " + s
	}
	switch {
	case p.Factor != 0:
		by = fmt.Sprintf(" minus %g × ", p.Factor)
	case v.Claim.Difference():
		by = " minus "
	}
	if p.Right != nil && p.Right.Network != p.Left.Network {
		s += by + p.Right.Network
	}
	if p.Right != nil && p.Right.Profile != p.Left.Profile {
		s += ", " + p.Left.Profile + by + p.Right.Profile
	}
	for _, q := range v.Pairs {
		if q.Left.Traffic() != p.Left.Traffic() {
			return s + ", " + p.Left.Traffic()
		}
	}
	return s
}

func missingWords(v paper.Verdict) string {
	if len(v.Missing) == 0 {
		return ""
	}
	m := v.Missing[0]
	s := m.Why
	if m.What != "not yet" {
		s = "not measured: " + m.Why
	} else {
		s = "not yet: " + s
	}
	if n := len(v.Missing) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// contradicted tells of each claim that does not come out what would explain it.
func contradicted(r paper.Reproduction) []page.Element {
	var out []page.Element
	for _, v := range r.Verdicts {
		if v.Outcome != paper.Contradicted {
			continue
		}
		known := "No explanation is known."
		if v.Claim.Known != "" {
			known = "Possible explanation: " + v.Claim.Known
		}
		out = append(out, page.Head(v.Claim.ID), page.Para("Published: "+v.Claim.Published), page.Para("Ours: "+report.SentenceEnd(OursWords(v))), page.Para(known))
	}
	return out
}

// publishedTables is every table and figure.
func publishedTables(r paper.Reproduction) []page.Element {
	var out []page.Element
	for _, c := range r.Tables {
		t := c.Table
		title := t.Title
		if t.Where != "" {
			title = t.Where + ": " + t.Title
		}
		out = append(out, page.Head(title))
		if t.Note != "" {
			out = append(out, page.Para(report.SentenceEnd(strings.ToUpper(t.Note[:1])+t.Note[1:])))
		}
		switch {
		case t.NoData != "":
			out = append(out, page.Para("Nothing to measure: "+report.SentenceEnd(t.NoData)))
			continue
		case t.NotYet != "":
			out = append(out, page.Para("Not yet: "+report.SentenceEnd(t.NotYet)))
		}
		if len(t.Rows) > 0 {
			out = append(out, page.Element{Table: publishedTable(c)})
		}
	}
	return out
}

// publishedTable has two columns for each that was published.
func publishedTable(c paper.Comparison) *page.Table {
	t := &page.Table{Columns: []page.Column{{Head: ""}}}
	for _, k := range c.Table.Columns {
		unitName := k.Unit
		if unitName == "" && c.Table.Ours != nil {
			unitName = c.Table.Ours.Unit
		}
		t.Columns = append(t.Columns, page.Column{Head: k.Name, Sub: strings.TrimSpace("published " + unitName), Number: true})
		if c.Table.Ours != nil {
			t.Columns = append(t.Columns, page.Column{Head: k.Name, Sub: strings.TrimSpace("ours " + unitName), Number: true})
		}
	}
	relative := c.Table.Ours != nil && c.Table.Ours.Measure != ""
	why := map[string]bool{}
	for i, row := range c.Table.Rows {
		cells := []page.Field{page.Text(rowName(c, i))}
		for _, e := range c.Cells[i] {
			if relative {
				e.PublishedShare, e.OurShare = nil, nil // that is what the figures are
			}
			cells = append(cells, page.Text(publishedWords(e)))
			if c.Table.Ours == nil {
				continue
			}
			cells = append(cells, page.Text(ourWords(e)))
			if e.Why != "" && !why[e.Why] {
				why[e.Why] = true
				t.Notes = append(t.Notes, "–: "+row.Name+": "+report.SentenceEnd(e.Why))
			}
		}
		t.Rows = append(t.Rows, cells)
		if row.Inconsistent != "" {
			t.Notes = append(t.Notes, "! "+row.Name+": "+report.SentenceEnd(row.Inconsistent))
		}
	}
	if o := c.Order; o.Same+o.Opposite+o.Tied > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("Order of the rows: of %s whose order is published, ours shows the same order in %d, the opposite in %d, and cannot tell in %d.",
			report.Count(o.Same+o.Opposite+o.Tied, "pair", "pairs"), o.Same, o.Opposite, o.Tied))
	}
	return t
}

// rowName marks the row that shares are of, and one that cannot be right.
func rowName(c paper.Comparison, i int) string {
	s := c.Table.Rows[i].Name
	if c.Table.Ours != nil && i == c.Reference && c.Table.Ours.Measure == "" {
		s += " (= 100 %)"
	}
	if c.Table.Rows[i].Inconsistent != "" {
		s += " !"
	}
	return s
}

func publishedWords(e paper.Entry) string {
	if e.Published == nil {
		return ""
	}
	s := strconv.FormatFloat(*e.Published, 'f', -1, 64)
	if e.UpTo != nil {
		s += "–" + strconv.FormatFloat(*e.UpTo, 'f', -1, 64)
	}
	return s + shareWords(e.PublishedShare, nil)
}

func ourWords(e paper.Entry) string {
	if e.Ours == nil {
		return "–"
	}
	return unit.Estimate(e.Ours.Value, report.Halfwidth(*e.Ours), "") + shareWords(nil, e.OurShare)
}

// shareWords is a share of the row of reference in brackets; nothing where it is
// that row.
func shareWords(published *float64, ours *estimate.Estimate) string {
	switch {
	case published != nil && *published != 1:
		return fmt.Sprintf(" (%.0f %%)", 100**published)
	case ours != nil:
		return " (" + report.Ratio(*ours) + ")"
	}
	return ""
}

// setupBlock is what was published of the set-up, and ours; narrow makes a list
// of it.
func setupBlock(r paper.Reproduction, narrow bool) page.Element {
	t := &page.Table{Columns: []page.Column{{Head: "what"}, {Head: "published", Wide: true}, {Head: "ours", Wide: true}}}
	var items []string
	for _, d := range r.Setup {
		t.Rows = append(t.Rows, []page.Field{page.Text(d.What), page.Text(d.Published), page.Text(d.Ours)})
		items = append(items, fmt.Sprintf("%s: published: %s. Ours: %s", d.What, d.Published, report.SentenceEnd(d.Ours)))
	}
	if narrow {
		return page.List(items)
	}
	return page.Element{Table: t}
}

// missingClaims tells once of each reason which claims want for it.
func missingClaims(r paper.Reproduction) []page.Element {
	claims := map[string][]string{}
	for _, v := range r.Verdicts {
		shown := map[string]bool{}
		for _, m := range v.Missing {
			if !shown[m.Why] {
				shown[m.Why] = true
				claims[m.Why] = append(claims[m.Why], v.Claim.ID)
			}
		}
	}
	var items []string
	for _, why := range report.SortedKeys(claims) {
		items = append(items, fmt.Sprintf("%s (%s)", report.SentenceEnd(why), strings.Join(claims[why], ", ")))
	}
	if len(items) == 0 {
		return nil
	}
	return []page.Element{page.List(items)}
}

func reproductionWarnings(warnings []warning.Warning) []page.Element {
	var items []string
	for _, w := range warnings {
		items = append(items, fmt.Sprintf("%s: %s %s", w.Code, report.SentenceEnd(w.Message), report.SentenceEnd(w.Cure)))
	}
	if len(items) == 0 {
		return nil
	}
	return []page.Element{page.List(items)}
}
