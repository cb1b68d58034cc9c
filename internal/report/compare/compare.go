// Package compare writes the comparison of two result directories, for people, for
// programs and for continuous integration.
package compare

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/format"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/stat/comparison"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// comparisonFormat is one way to write a comparison.
type comparisonFormat struct {
	name  string
	write func(io.Writer, comparison.Comparison, screen.Options) error
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

// Formats lists the formats that Write knows.
func Formats() []string {
	var names []string
	for _, f := range comparisonFormats() {
		names = append(names, f.name)
	}
	return names
}

// Write renders a comparison in a format of Formats.
func Write(w io.Writer, format string, c comparison.Comparison, opt screen.Options) error {
	for _, f := range comparisonFormats() {
		if f.name != format {
			continue
		}
		if err := f.write(w, c, opt); err != nil {
			return fmt.Errorf("%s comparison: %w", format, err)
		}
		return nil
	}
	return fmt.Errorf("unknown comparison format %q (known: %s)", format, strings.Join(Formats(), ", "))
}

// verdicts in the order in which people want to see them.
func verdicts() []comparison.Verdict {
	return []comparison.Verdict{comparison.Broken, comparison.Worse, comparison.Better, comparison.CannotTell, comparison.Same}
}

// comparisonSummary says in a sentence what came out.
func comparisonSummary(c comparison.Comparison) string {
	if len(c.Cells) == 0 {
		return "The two sides have no cell in common: nothing can be compared."
	}
	n := map[comparison.Verdict]int{}
	for _, x := range c.Cells {
		n[x.Verdict]++
	}
	var parts []string
	for _, v := range verdicts() {
		if n[v] > 0 {
			words := string(v)
			switch v {
			case comparison.Same:
				words = "without a difference beyond the threshold"
			case comparison.CannotTell:
				words = "undecided"
			}
			parts = append(parts, fmt.Sprintf("%d %s", n[v], words))
		}
	}
	s := "No regression was found: "
	if c.Regression {
		s = "Regression: "
	}
	return s + "of " + report.Count(len(c.Cells), "cell", "cells") + ", " + strings.Join(parts, ", ") + "."
}

// comparisonWords say what the figures mean, and what is not compared.
func comparisonWords(c comparison.Comparison) []string {
	out := []string{fmt.Sprintf("A cell is worse or better where it differs by more than %g %% and beyond chance, at %g %% over all cells together. A change with + is for the better.",
		100*c.Threshold, 100*c.Confidence)}
	if len(c.Cells) > 0 {
		out = append(out, comparedBy(c))
	}
	d := comparisonSituations(c)
	if len(c.OnlyBase) > 0 {
		out = append(out, "Only in the base: "+d.Where(c.OnlyBase)+".")
	}
	if len(c.OnlyNew) > 0 {
		out = append(out, "Only in the new side: "+d.Where(c.OnlyNew)+".")
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
func needsWords(c comparison.Comparison) string {
	var n comparison.Needs
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
	which := report.Count(known, "undecided cell", "undecided cells")
	if known < len(open) {
		which = fmt.Sprintf("%d of %s", known, report.Count(len(open), "undecided cell", "undecided cells"))
	}
	long := unit.Rough(n.Blocks) + " blocks"
	if n.Seconds > 0 {
		long += " (about " + unit.Rough(int(math.Ceil(n.Seconds))) + " s)"
	}
	sides := "the next run must have about " + long
	if n.BaseToo {
		sides = "a new base and the next run must have about " + long + " each"
	}
	return fmt.Sprintf("To decide %s at %g %%, %s, if change and noise stay the same.", which, 100*c.Threshold, sides)
}

// comparedBy says which figures were compared.
func comparedBy(c comparison.Comparison) string {
	byEfficiency := 0
	for _, x := range c.Cells {
		if x.ByEfficiency {
			byEfficiency++
		}
	}
	switch byEfficiency {
	case len(c.Cells):
		return "Efficiencies are compared: a change of the machine itself cancels out."
	case 0:
		return "Absolute values are compared, because one side has no baseline: they include a change of the machine itself."
	}
	return fmt.Sprintf("Efficiencies are compared: a change of the machine itself cancels out. For %s, baselines included, absolute values are compared.", report.Count(len(c.Cells)-byEfficiency, "cell", "cells"))
}

// comparisonSituations is a document of nothing but the situations of a comparison.
func comparisonSituations(c comparison.Comparison) *report.Document {
	d := &report.Document{}
	seen := map[report.Situation]bool{}
	for _, x := range c.Cells {
		if p := report.SituationOf(x.Cell); !seen[p] && !x.Cell.IsBaseline() {
			seen[p] = true
			d.Groups = append(d.Groups, &report.Group{Situation: p})
		}
	}
	return d
}

// comparisonTable has the cells of some verdicts, in the order of these.
func comparisonTable(c comparison.Comparison, caption string, of ...comparison.Verdict) *page.Table {
	t := &page.Table{Caption: caption, Columns: []page.Column{{Head: "network"}, {Head: "traffic"}, {Head: "base", Number: true}, {Head: "new", Number: true},
		{Head: "change", Number: true}, {Head: "of"}, {Head: "verdict"}}}
	d := comparisonSituations(c)
	if len(d.Groups) > 1 {
		t.Columns = append(t.Columns, page.Column{Head: "where"})
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
			row := []page.Field{page.Text(x.Cell.Network), page.Text(x.Cell.Traffic()), comparedField(x.Metric, x.Base), comparedField(x.Metric, x.New),
				page.Text(changeWords(x)), page.Text(what), page.Text(verdictWords(x))}
			if len(d.Groups) > 1 {
				row = append(row, page.Text(d.Short(report.SituationOf(x.Cell))))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func comparedField(metric string, e *estimate.Estimate) page.Field {
	if e == nil {
		return page.Text("nothing")
	}
	m, _ := report.FindMetric(metric)
	return page.Field{Text: m.Format(e.Value, report.Halfwidth(*e)), Value: &e.Value}
}

// changeWords says the change in percent, with its sign.
func changeWords(x comparison.Cell) string {
	if x.Change == nil {
		return "unknown"
	}
	s := unit.Percent(x.Change.Value-1, report.Halfwidth(*x.Change))
	if x.Change.Value >= 1 {
		s = "+" + s
	}
	return s
}

func verdictWords(x comparison.Cell) string {
	s := string(x.Verdict)
	if x.Verdict == comparison.Same {
		s = "same"
	}
	if x.Why != "" {
		s += ": " + x.Why
	}
	return s
}

// writeComparisonTerminal shows what differs or is undecided; cells without
// a difference are only counted.
func writeComparisonTerminal(w io.Writer, c comparison.Comparison, opt screen.Options) error {
	sc := screen.New(opt)
	lines := sc.Wrap(comparisonSummary(c), "", "")
	if c.Regression {
		for i := range lines {
			lines[i] = sc.SGR("31", lines[i])
		}
	}
	d := comparisonSituations(c)
	t := page.Table{Columns: []page.Column{{Head: "cell"}, {Head: "base", Number: true}, {Head: "new", Number: true}, {Head: "change", Number: true}}}
	var why []string
	for _, v := range []comparison.Verdict{comparison.Broken, comparison.Worse, comparison.Better, comparison.CannotTell} {
		before := len(t.Rows)
		for _, x := range c.Cells {
			if x.Verdict != v {
				continue
			}
			if len(t.Rows) == before {
				t.Rows = append(t.Rows, []page.Field{page.Text(string(v) + ":"), page.Text(""), page.Text(""), page.Text("")})
			}
			name := d.CellName(x.Cell)
			t.Rows = append(t.Rows, []page.Field{page.Text("  " + name), shortField(x.Metric, x.Base), shortField(x.Metric, x.New), page.Text(changeWords(x))})
			if x.Why != "" {
				why = append(why, name+": "+x.Why)
			}
		}
	}
	if len(t.Rows) > 0 {
		lines = append(append(lines, ""), sc.Table(t)...)
	}
	lines = append(lines, "")
	for _, s := range append(why, comparisonWords(c)...) {
		lines = append(lines, sc.Wrap(s, "", "  ")...)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// shortField is a value without its half-width, which is in the change's.
func shortField(metric string, e *estimate.Estimate) page.Field {
	c := comparedField(metric, e)
	if e != nil {
		m, _ := report.FindMetric(metric)
		c.Text = m.Format(e.Value, math.NaN())
	}
	return c
}

func writeComparisonMarkdown(w io.Writer, c comparison.Comparison, _ screen.Options) error {
	var b strings.Builder
	b.WriteString("## cnibench compare\n\n" + format.MarkdownText(comparisonSummary(c)) + "\n")
	if t := comparisonTable(c, "", comparison.Broken, comparison.Worse, comparison.Better, comparison.CannotTell); len(t.Rows) > 0 {
		b.WriteString("\n" + format.MarkdownTable(*t))
	}
	if t := comparisonTable(c, "", comparison.Same); len(t.Rows) > 0 {
		fmt.Fprintf(&b, "\n<details>\n<summary>%s without a difference beyond the threshold</summary>\n\n%s\n</details>\n",
			report.Count(len(t.Rows), "cell", "cells"), format.MarkdownTable(*t))
	}
	b.WriteString("\n" + format.MarkdownElement(page.List(comparisonWords(c))))
	_, err := io.WriteString(w, b.String())
	return err
}
