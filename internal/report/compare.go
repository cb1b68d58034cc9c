package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// comparisonFormat is one way to write a comparison.
type comparisonFormat struct {
	name  string
	write func(io.Writer, stat.Comparison, Options) error
}

func comparisonFormats() []comparisonFormat {
	return []comparisonFormat{
		{"terminal", writeComparisonTerminal},
		{"html", writeComparisonHTML},
		{"markdown", writeComparisonMarkdown},
		{"json", writeComparisonJSON},
		{"junit", writeComparisonJUnit},
		{"benchfmt", writeComparisonBenchfmt},
	}
}

// ComparisonFormats lists the formats that WriteComparison knows.
func ComparisonFormats() []string {
	var names []string
	for _, f := range comparisonFormats() {
		names = append(names, f.name)
	}
	return names
}

// WriteComparison renders a comparison in a format of ComparisonFormats.
func WriteComparison(w io.Writer, format string, c stat.Comparison, opt Options) error {
	for _, f := range comparisonFormats() {
		if f.name != format {
			continue
		}
		if err := f.write(w, c, opt); err != nil {
			return fmt.Errorf("%s comparison: %w", format, err)
		}
		return nil
	}
	return fmt.Errorf("unknown comparison format %q (known: %s)", format, strings.Join(ComparisonFormats(), ", "))
}

// verdicts in the order in which people want to see them.
func verdicts() []stat.Verdict {
	return []stat.Verdict{stat.Broken, stat.Worse, stat.Better, stat.CannotTell, stat.Same}
}

// comparisonSummary says in a sentence what came out.
func comparisonSummary(c stat.Comparison) string {
	if len(c.Cells) == 0 {
		return "The two sides have no cell in common: nothing can be compared."
	}
	n := map[stat.Verdict]int{}
	for _, x := range c.Cells {
		n[x.Verdict]++
	}
	var parts []string
	for _, v := range verdicts() {
		if n[v] > 0 {
			words := string(v)
			switch v {
			case stat.Same:
				words = "without a difference beyond the threshold"
			case stat.CannotTell:
				words = "that is unknown"
			}
			parts = append(parts, fmt.Sprintf("%d %s", n[v], words))
		}
	}
	s := "No regression was found: "
	if c.Regression {
		s = "Regression: "
	}
	return s + "of " + count(len(c.Cells), "cell", "cells") + ", " + strings.Join(parts, ", ") + "."
}

// comparisonWords say what the figures mean, and what is not compared.
func comparisonWords(c stat.Comparison) []string {
	out := []string{fmt.Sprintf("A cell is worse or better where it differs by more than %g %% and beyond chance, at %g %% over all cells together. A change with + is for the better.",
		100*c.Threshold, 100*c.Confidence)}
	if len(c.Cells) > 0 {
		out = append(out, comparedBy(c))
	}
	d := comparisonPlaces(c)
	if len(c.OnlyBase) > 0 {
		out = append(out, "Only in the base: "+d.where(c.OnlyBase)+".")
	}
	if len(c.OnlyNew) > 0 {
		out = append(out, "Only in the new side: "+d.where(c.OnlyNew)+".")
	}
	for _, x := range c.Differences {
		out = append(out, "The sides were not measured alike: "+x)
	}
	for _, x := range c.Harmless {
		out = append(out, "Differs, and matters for no compared cell: "+x)
	}
	if s := needsWords(c); s != "" {
		out = append(out, s)
	}
	return out
}

// needsWords says how long the next run must be to decide the undecided cells; empty
// where none is, or nothing can be estimated.
func needsWords(c stat.Comparison) string {
	var n stat.Needs
	open, known := c.Undecided(), 0
	for _, x := range open {
		if x.Needs == nil {
			continue
		}
		known++
		n.BaseToo = n.BaseToo || x.Needs.BaseToo
		n.Blocks, n.Seconds = max(n.Blocks, x.Needs.Blocks), max(n.Seconds, x.Needs.Seconds)
	}
	if known == 0 {
		return ""
	}
	which := count(known, "undecided cell", "undecided cells")
	if known < len(open) {
		which = fmt.Sprintf("%d of %s", known, count(len(open), "undecided cell", "undecided cells"))
	}
	long := unit.Rough(n.Blocks) + " blocks"
	if n.Seconds > 0 {
		long += " (about " + unit.Rough(int(math.Ceil(n.Seconds))) + " s)"
	}
	sides := "the next run must have about " + long
	if n.BaseToo {
		sides = "a new base and the next run must have about " + long + " each"
	}
	return fmt.Sprintf("To decide %s at %g %%, %s, if change and noise stay what they are.", which, 100*c.Threshold, sides)
}

// comparedBy says which figures were compared.
func comparedBy(c stat.Comparison) string {
	byEfficiency := 0
	for _, x := range c.Cells {
		if x.ByEfficiency {
			byEfficiency++
		}
	}
	switch byEfficiency {
	case len(c.Cells):
		return "Compared are efficiencies: what changed on the machine itself cancels out."
	case 0:
		return "Compared are absolute values, because one side has no baseline: a change of the machine itself is in them."
	}
	return fmt.Sprintf("Compared are efficiencies, from which the machine's own change cancels; of %s, baselines among them, the absolute values.", count(len(c.Cells)-byEfficiency, "cell", "cells"))
}

// comparisonPlaces is a document of nothing but the places of a comparison.
func comparisonPlaces(c stat.Comparison) *document {
	d := &document{}
	seen := map[place]bool{}
	for _, x := range c.Cells {
		if p := placeOf(x.Cell); !seen[p] && !x.Cell.IsBaseline() {
			seen[p] = true
			d.groups = append(d.groups, &group{place: p})
		}
	}
	return d
}

// comparisonTable has the cells of some verdicts, in the order of these.
func comparisonTable(c stat.Comparison, caption string, of ...stat.Verdict) *table {
	t := &table{Caption: caption, Columns: []column{{Head: "network"}, {Head: "traffic"}, {Head: "base", Number: true}, {Head: "new", Number: true},
		{Head: "change", Number: true}, {Head: "of"}, {Head: "verdict"}}}
	d := comparisonPlaces(c)
	if len(d.groups) > 1 {
		t.Columns = append(t.Columns, column{Head: "where"})
	}
	for _, v := range of {
		for _, x := range c.Cells {
			if x.Verdict != v {
				continue
			}
			what := "absolute value"
			if x.ByEfficiency {
				what = "efficiency"
			}
			row := []cell{text(x.Cell.Network), text(x.Cell.Traffic()), comparedCell(x.Metric, x.Base), comparedCell(x.Metric, x.New),
				text(changeWords(x)), text(what), text(verdictWords(x))}
			if len(d.groups) > 1 {
				row = append(row, text(d.short(placeOf(x.Cell))))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func comparedCell(metric string, e *stat.Estimate) cell {
	if e == nil {
		return text("nothing")
	}
	m, _ := findMetric(metric)
	return cell{Text: m.Format(e.Value, halfwidth(*e)), Value: &e.Value}
}

// changeWords says the change in percent, with its sign.
func changeWords(x stat.CellComparison) string {
	if x.Change == nil {
		return "unknown"
	}
	s := unit.Percent(x.Change.Value-1, halfwidth(*x.Change))
	if x.Change.Value >= 1 {
		s = "+" + s
	}
	return s
}

func verdictWords(x stat.CellComparison) string {
	s := string(x.Verdict)
	if x.Verdict == stat.Same {
		s = "same"
	}
	if x.Why != "" {
		s += ": " + x.Why
	}
	return s
}

// writeComparisonTerminal shows what differs or cannot be told; cells without
// a difference are only counted.
func writeComparisonTerminal(w io.Writer, c stat.Comparison, opt Options) error {
	sc := newScreen(opt)
	lines := sc.wrap(comparisonSummary(c), "", "")
	if c.Regression {
		for i := range lines {
			lines[i] = sc.sgr("31", lines[i])
		}
	}
	d := comparisonPlaces(c)
	t := table{Columns: []column{{Head: "cell"}, {Head: "base", Number: true}, {Head: "new", Number: true}, {Head: "change", Number: true}}}
	var why []string
	for _, v := range []stat.Verdict{stat.Broken, stat.Worse, stat.Better, stat.CannotTell} {
		before := len(t.Rows)
		for _, x := range c.Cells {
			if x.Verdict != v {
				continue
			}
			if len(t.Rows) == before {
				t.Rows = append(t.Rows, []cell{text(string(v) + ":"), text(""), text(""), text("")})
			}
			name := d.cellName(x.Cell)
			t.Rows = append(t.Rows, []cell{text("  " + name), shortCell(x.Metric, x.Base), shortCell(x.Metric, x.New), text(changeWords(x))})
			if x.Why != "" {
				why = append(why, name+": "+x.Why)
			}
		}
	}
	if len(t.Rows) > 0 {
		lines = append(append(lines, ""), sc.textTable(t)...)
	}
	lines = append(lines, "")
	for _, s := range append(why, comparisonWords(c)...) {
		lines = append(lines, sc.wrap(s, "", "  ")...)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// shortCell is a value without its half-width, which is in the change's.
func shortCell(metric string, e *stat.Estimate) cell {
	c := comparedCell(metric, e)
	if e != nil {
		m, _ := findMetric(metric)
		c.Text = m.Format(e.Value, nan())
	}
	return c
}

func writeComparisonMarkdown(w io.Writer, c stat.Comparison, _ Options) error {
	var b strings.Builder
	b.WriteString("## cnibench compare\n\n" + markdownText(comparisonSummary(c)) + "\n")
	if t := comparisonTable(c, "", stat.Broken, stat.Worse, stat.Better, stat.CannotTell); len(t.Rows) > 0 {
		b.WriteString("\n" + markdownTable(*t))
	}
	if t := comparisonTable(c, "", stat.Same); len(t.Rows) > 0 {
		fmt.Fprintf(&b, "\n<details>\n<summary>%s without a difference beyond the threshold</summary>\n\n%s\n</details>\n",
			count(len(t.Rows), "cell", "cells"), markdownTable(*t))
	}
	b.WriteString("\n" + markdownBlock(list(comparisonWords(c))))
	_, err := io.WriteString(w, b.String())
	return err
}
