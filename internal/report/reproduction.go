package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/paper"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// reproductionFormat is one way to write what results say of a paper.
type reproductionFormat struct {
	name  string
	write func(io.Writer, paper.Reproduction, Options) error
}

func reproductionFormats() []reproductionFormat {
	return []reproductionFormat{
		{"terminal", func(w io.Writer, r paper.Reproduction, opt Options) error {
			return writePlainTerminal(w, reproductionPage(r, true), opt)
		}},
		{"html", func(w io.Writer, r paper.Reproduction, _ Options) error {
			return writePage(w, reproductionPage(r, false))
		}},
		{"markdown", func(w io.Writer, r paper.Reproduction, _ Options) error {
			return writePlainMarkdown(w, reproductionPage(r, false))
		}},
		{"json", func(w io.Writer, r paper.Reproduction, _ Options) error {
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			return enc.Encode(r)
		}},
	}
}

// WriteReproduction renders what results say of a paper: terminal, html,
// markdown or json.
func WriteReproduction(w io.Writer, format string, r paper.Reproduction, opt Options) error {
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
func reproductionPage(r paper.Reproduction, narrow bool) page {
	p := page{Title: "Reproduction of " + r.Publication.ID, Summary: reproductionSummary(r), Version: r.Version}
	add := func(id, title string, blocks ...block) {
		if len(blocks) > 0 {
			p.Sections = append(p.Sections, pageSection{id, title, blocks})
		}
	}
	add("answer", "Claims and verdicts", block{Table: claimsTable(r, narrow)})
	add("models", "What stood in, and what it leaves out", stoodIn(r)...)
	add("untaken", "Settings that did not take effect", untakenSettings(r)...)
	add("pairs", "Every verdict with its pairs", verdictPairs(r, narrow)...)
	add("contradicted", "What does not come out here", contradicted(r)...)
	add("tables", "Published tables and figures, ours beside them", publishedTables(r)...)
	add("setup", "What differs in the set-up", setupBlock(r, narrow))
	add("missing", "What could not be measured", missingClaims(r)...)
	add("warnings", "Warnings of the measurement", reproductionWarnings(r)...)
	add("method", "How a claim is judged", list(judgedWords(r)))
	return p
}

func reproductionSummary(r paper.Reproduction) string {
	pub := r.Publication
	var parts []string
	for _, w := range paper.Outcomes() {
		parts = append(parts, fmt.Sprintf("%d %s", r.Count(w), w))
	}
	s := fmt.Sprintf("%s: %s (%s, %d). Of %s: %s. %s, %g %% intervals", and(pub.Authors), pub.Title, pub.PublishedIn, pub.Year,
		count(len(r.Counted()), "finding and number", "findings and numbers"), strings.Join(parts, ", "), count(r.Blocks, "block", "blocks"), 100*r.Confidence)
	if r.Cut {
		s += "; a part of the study, for a time budget"
	}
	if words := RecordedWords(r.Recorded); words != "" {
		s += "; recorded " + words
	}
	if r.Dir != "" {
		s += "; records: " + r.Dir
	}
	return s + "."
}

// claimsTable has a row for each claim.
func claimsTable(r paper.Reproduction, narrow bool) *table {
	t := &table{Columns: []column{{Head: "claim"}, {Head: "verdict"}, {Head: "ours", Wide: true}}}
	if !narrow {
		t.Columns = []column{{Head: "claim"}, {Head: "verdict"}, {Head: "ours", Wide: true}, {Head: "published", Wide: true}, {Head: "kind"}, {Head: "where"}}
	}
	for _, v := range r.Verdicts {
		row := []cell{text(v.Claim.ID), text(string(v.Outcome)), text(OursWords(v))}
		if !narrow {
			row = []cell{text(v.Claim.ID), text(string(v.Outcome)), text(OursWords(v)), text(publishedClaim(v.Claim)), text(v.Claim.Kind), text(v.Claim.Where)}
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
	p := telling(v)
	s := pairValue(p)
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
		s += fmt.Sprintf("; about %s more would decide", count(v.MoreBlocks, "block", "blocks"))
	}
	return s
}

// telling is the pair on which the verdict hangs: one that contradicts, else one
// that is undecided, else the one whose interval is nearest to not showing it.
func telling(v paper.Verdict) paper.Pair {
	for _, w := range []paper.Outcome{paper.Contradicted, paper.Undecided} {
		if v.Outcome == paper.Reproduced {
			break // of a claim about most
		}
		for _, p := range v.Pairs {
			if p.Outcome == w {
				return p
			}
		}
	}
	least := v.Pairs[0]
	for _, p := range v.Pairs {
		if math.Abs(math.Log(p.Value.Value)) < math.Abs(math.Log(least.Value.Value)) {
			least = p
		}
	}
	return least
}

// pairValue is left / right with its interval.
func pairValue(p paper.Pair) string {
	format := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	if p.Arithmetic {
		m, _ := findMetric(p.Metric)
		format = func(v float64) string { return m.Format(v, nan()) }
	}
	low, high, ok := p.Value.Interval()
	if !ok {
		return fmt.Sprintf("%s (no interval of %s)", format(p.Value.Value), count(p.Value.N, "block", "blocks"))
	}
	return fmt.Sprintf("%s (%s to %s)", format(p.Value.Value), format(low), format(high))
}

// pairName says which pair it is, by what differs between its cells and by what
// differs between the pairs.
func pairName(v paper.Verdict, p paper.Pair) string {
	s := p.Left.Network
	if p.Right != nil && p.Right.Network != p.Left.Network {
		s += " / " + p.Right.Network
	}
	if p.Right != nil && p.Right.Profile != p.Left.Profile {
		s += ", " + p.Left.Profile + " / " + p.Right.Profile
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
func contradicted(r paper.Reproduction) []block {
	var out []block
	for _, v := range r.Verdicts {
		if v.Outcome != paper.Contradicted {
			continue
		}
		known := "No explanation is known."
		if v.Claim.Known != "" {
			known = "Possible explanation: " + v.Claim.Known
		}
		out = append(out, head(v.Claim.ID), para("Published: "+v.Claim.Published), para("Ours: "+sentenceEnd(OursWords(v))), para(known))
	}
	return out
}

// publishedTables is every table and figure.
func publishedTables(r paper.Reproduction) []block {
	var out []block
	for _, c := range r.Tables {
		t := c.Table
		title := t.Title
		if t.Where != "" {
			title = t.Where + ": " + t.Title
		}
		out = append(out, head(title))
		if t.Note != "" {
			out = append(out, para(sentenceEnd(strings.ToUpper(t.Note[:1])+t.Note[1:])))
		}
		switch {
		case t.NoData != "":
			out = append(out, para("Nothing to measure: "+sentenceEnd(t.NoData)))
			continue
		case t.NotYet != "":
			out = append(out, para("Not yet: "+sentenceEnd(t.NotYet)))
		}
		if len(t.Rows) > 0 {
			out = append(out, block{Table: publishedTable(c)})
		}
	}
	return out
}

// publishedTable has two columns for each that was published.
func publishedTable(c paper.Comparison) *table {
	t := &table{Columns: []column{{Head: ""}}}
	for _, k := range c.Table.Columns {
		unitName := k.Unit
		if unitName == "" && c.Table.Ours != nil {
			unitName = c.Table.Ours.Unit
		}
		t.Columns = append(t.Columns, column{Head: k.Name, Sub: strings.TrimSpace("published " + unitName), Number: true})
		if c.Table.Ours != nil {
			t.Columns = append(t.Columns, column{Head: k.Name, Sub: strings.TrimSpace("ours " + unitName), Number: true})
		}
	}
	relative := c.Table.Ours != nil && c.Table.Ours.Measure != ""
	why := map[string]bool{}
	for i, row := range c.Table.Rows {
		cells := []cell{text(rowName(c, i))}
		for _, e := range c.Cells[i] {
			if relative {
				e.PublishedShare, e.OurShare = nil, nil // that is what the figures are
			}
			cells = append(cells, text(publishedWords(e)))
			if c.Table.Ours == nil {
				continue
			}
			cells = append(cells, text(ourWords(e)))
			if e.Why != "" && !why[e.Why] {
				why[e.Why] = true
				t.Notes = append(t.Notes, "–: "+row.Name+": "+sentenceEnd(e.Why))
			}
		}
		t.Rows = append(t.Rows, cells)
		if row.Inconsistent != "" {
			t.Notes = append(t.Notes, "! "+row.Name+": "+sentenceEnd(row.Inconsistent))
		}
	}
	if o := c.Order; o.Same+o.Opposite+o.Untold > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("Order of the rows: of %s whose order is published, ours shows the same order in %d, the opposite in %d, and cannot tell in %d.",
			count(o.Same+o.Opposite+o.Untold, "pair", "pairs"), o.Same, o.Opposite, o.Untold))
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
	return unit.Estimate(e.Ours.Value, halfwidth(*e.Ours), "") + shareWords(nil, e.OurShare)
}

// shareWords is a share of the row of reference in brackets; nothing where it is
// that row.
func shareWords(published *float64, ours *stat.Estimate) string {
	switch {
	case published != nil && *published != 1:
		return fmt.Sprintf(" (%.0f %%)", 100**published)
	case ours != nil:
		return " (" + ratio(*ours) + ")"
	}
	return ""
}

// setupBlock is what was published of the set-up, and ours; narrow makes a list
// of it.
func setupBlock(r paper.Reproduction, narrow bool) block {
	t := &table{Columns: []column{{Head: "what"}, {Head: "published", Wide: true}, {Head: "ours", Wide: true}}}
	var items []string
	for _, d := range r.Setup {
		t.Rows = append(t.Rows, []cell{text(d.What), text(d.Published), text(d.Ours)})
		items = append(items, fmt.Sprintf("%s: published: %s. Ours: %s", d.What, d.Published, sentenceEnd(d.Ours)))
	}
	if narrow {
		return list(items)
	}
	return block{Table: t}
}

// missingClaims tells once of each reason which claims want for it.
func missingClaims(r paper.Reproduction) []block {
	claims := map[string][]string{}
	for _, v := range r.Verdicts {
		told := map[string]bool{}
		for _, m := range v.Missing {
			if !told[m.Why] {
				told[m.Why] = true
				claims[m.Why] = append(claims[m.Why], v.Claim.ID)
			}
		}
	}
	var items []string
	for _, why := range sortedKeys(claims) {
		items = append(items, fmt.Sprintf("%s (%s)", sentenceEnd(why), strings.Join(claims[why], ", ")))
	}
	if len(items) == 0 {
		return nil
	}
	return []block{list(items)}
}

func reproductionWarnings(r paper.Reproduction) []block {
	var items []string
	for _, w := range r.Warnings {
		items = append(items, fmt.Sprintf("%s: %s %s", w.Code, sentenceEnd(w.Message), sentenceEnd(w.Cure)))
	}
	if len(items) == 0 {
		return nil
	}
	return []block{list(items)}
}

func judgedWords(r paper.Reproduction) []string {
	return []string{
		fmt.Sprintf("Each pair of cells is compared inside blocks: the mean of the logarithms of left / right, with Student's interval at %g %%.", 100*r.Confidence),
		"Reproduced: every pair's interval shows what is claimed. Contradicted: a pair's interval, corrected for the number of pairs, shows the opposite, or a difference below 3 % where one is claimed. Undecided: neither. Not measurable here: there is nothing to compare, for the reason that is given. Only findings and numbers of the study count; questions, related work and settings are shown.",
		fmt.Sprintf("Each claim is judged by itself: of the decided ones, at most about %.0f in 100 are expected to be wrong by chance.", 100*(1-r.Confidence)),
		"Absolute values are shown and not judged: machines differ. In brackets: the share of the row marked = 100 %.",
	}
}
