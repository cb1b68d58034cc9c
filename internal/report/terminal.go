package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// writeLong writes all that a terminal can show: the tables of efficiency, then
// in words what they cannot show.
func writeLong(w io.Writer, d *document, opt Options) error {
	sc := newScreen(opt)
	lines := sc.wrap(d.title(), "", "")
	lines[0] = sc.bold(lines[0])
	lines = append(lines, sc.wrap(d.summary(), "", "")...)
	for _, m := range d.missing() {
		lines = append(lines, sc.wrap(m, "", "")...)
	}
	for _, g := range d.groups {
		t := d.efficiencyTable(g)
		lines = append(lines, "")
		lines = append(lines, sc.wrap(t.Caption, "", "")...)
		lines = append(lines, sc.textTable(*t)...)
		for _, n := range t.Notes {
			lines = append(lines, sc.wrap(n, "", "")...)
		}
		for _, traffic := range g.traffics {
			if v := d.verdict(g, traffic); v != "" {
				lines = append(lines, sc.wrap(v, "", "")...)
			}
		}
		if costs := d.costSummary(g); costs != nil {
			lines = append(append(lines, ""), sc.wrap(costs.Caption, "", "")...)
			lines = append(lines, sc.textTable(*costs)...)
		}
	}
	if m := sc.meshLines(d, true); len(m) > 0 {
		lines = append(append(lines, ""), m...)
	}
	if cross := d.crossLines(); len(cross) > 0 {
		lines = append(lines, "", "Cross-check, native / tool:")
		for _, c := range cross {
			lines = append(lines, sc.wrap(c, "  ", "    ")...)
		}
	}
	lines = append(lines, sc.noise(d)...)
	lines = append(lines, sc.remarks(d)...)
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// remarks is what the tables cannot show.
func (sc screen) remarks(d *document) []string {
	lines := []string{""}
	item := func(mark, s string) {
		wrapped := sc.wrap(s, mark, strings.Repeat(" ", len(mark)))
		if color := map[string]string{"! ": "33", "x ": "31"}[mark]; color != "" {
			wrapped[0] = sc.sgr(color, mark) + wrapped[0][len(mark):]
		}
		lines = append(lines, wrapped...)
	}
	for _, p := range d.progress() {
		item("", p)
	}
	for _, w := range d.Analysis.Warnings {
		if w.Code == stat.TargetNotReached && len(d.progress()) > 0 {
			continue // said above
		}
		where := ""
		if len(w.Cells) > 0 { // a doubt about the whole campaign names no cell
			where = " (" + count(len(w.Cells), "cell", "cells") + ")"
		}
		item("! ", fmt.Sprintf("%s%s: %s %s", w.Code, where, sentenceEnd(w.Message), capital(sentenceEnd(w.Cure))))
	}
	for _, c := range d.changed() {
		item("! ", "changed during the campaign: "+c)
	}
	if s := d.sampleWarnings(); len(s) > 0 {
		item("! ", fmt.Sprintf("%s (%s)", sentenceEnd(s[0].what), count(s[0].n, "sample", "samples"))+moreOf(len(s)-1))
	}
	for _, l := range d.lacks() {
		item("x ", fmt.Sprintf("%s: %s: %s", l.state, d.where(l.cells), l.reason)+l.records())
	}
	if m := d.models(); len(m) > 0 {
		item(modelMark+" ", "datapath rebuilt by cnibench: "+strings.Join(m, "; ")+".")
	}
	if d.Dir != "" {
		item("", "Records: "+filepath.Join(d.Dir, result.SamplesFile))
		item("", "Report: "+filepath.Join(d.Dir, result.ReportFile))
	}
	if len(lines) == 1 {
		return nil
	}
	return lines
}

func moreOf(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d more such remarks are in the HTML report", n)
}

// verdict says in words what a traffic's column may leave unseen: ties, and that the link was measured.
func (d *document) verdict(g *group, t result.Cell) string {
	rankings := g.rankings[t]
	if len(rankings) == 0 || len(rankings[0].Ranked) < 2 {
		return ""
	}
	if rankings[0].LinkBound {
		return t.Traffic() + ": " + strings.TrimSpace(d.sentence(g, t))
	}
	if tied := d.tieWords(rankings[0]); len(tied) > 0 {
		return t.Traffic() + ": tied: " + strings.Join(tied, "; ") + "."
	}
	return ""
}

// capital begins s as a sentence.
func capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// sentenceEnd ends s with a full stop.
func sentenceEnd(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// title is the campaign's name.
func (d *document) title() string {
	if d.Campaign.Name == "" {
		return "unnamed campaign"
	}
	return d.Campaign.Name
}

// summary says how much was measured.
func (d *document) summary() string {
	networks := map[string]bool{}
	for _, s := range d.Analysis.Cells {
		networks[s.Cell.Network] = true
	}
	ok, broken := d.Tally.OK, d.Tally.Failed
	s := fmt.Sprintf("%s, %s, %s, %s measured", count(len(networks), "network", "networks"), count(len(d.Analysis.Cells), "cell", "cells"),
		count(d.Tally.Blocks(), "block", "blocks"), count(ok, "sample", "samples"))
	if broken > 0 {
		s += fmt.Sprintf(", %d failed", broken)
	}
	if d.Analysis.Confidence > 0 {
		s += fmt.Sprintf("; %g %% intervals", 100*d.Analysis.Confidence)
	}
	if d.Environment != nil && d.Environment.Testbed != "" {
		s += "; testbed " + d.Environment.Testbed
	}
	return s + "."
}
