package format

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/warning"
)

// writeLong writes all that a terminal can show: the tables of efficiency, then
// in words what they cannot show.
func writeLong(w io.Writer, d *report.Document, opt screen.Options) error {
	sc := screen.New(opt)
	lines := sc.Title(d.Title())
	lines = append(lines, sc.Wrap(d.Summary(), "", "")...)
	for _, m := range section.Missing(d) {
		lines = append(lines, sc.Wrap(m, "", "")...)
	}
	for _, g := range d.Groups {
		t := section.EfficiencyTable(d, g)
		lines = append(lines, "")
		lines = append(lines, sc.Wrap(t.Caption, "", "")...)
		lines = append(lines, sc.Table(*t)...)
		for _, n := range t.Notes {
			lines = append(lines, sc.Wrap(n, "", "")...)
		}
		for _, traffic := range g.Traffics {
			if v := verdict(d, g, traffic); v != "" {
				lines = append(lines, sc.Wrap(v, "", "")...)
			}
		}
		if costs := section.CostSummary(d, g); costs != nil {
			lines = append(append(lines, ""), sc.Wrap(costs.Caption, "", "")...)
			lines = append(lines, sc.Table(*costs)...)
		}
	}
	if m := meshLines(sc, d, true); len(m) > 0 {
		lines = append(append(lines, ""), m...)
	}
	if cross := section.CrossLines(d); len(cross) > 0 {
		lines = append(lines, "", "Cross-check, native / tool:")
		for _, c := range cross {
			lines = append(lines, sc.Wrap(c, "  ", "    ")...)
		}
	}
	lines = append(lines, noiseLines(sc, d)...)
	lines = append(lines, remarks(sc, d)...)
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// remarks is what the tables cannot show.
func remarks(sc screen.Screen, d *report.Document) []string {
	lines := []string{""}
	item := func(mark, s string) {
		wrapped := sc.Wrap(s, mark, strings.Repeat(" ", len(mark)))
		if color := map[string]string{"! ": "33", "x ": "31"}[mark]; color != "" {
			wrapped[0] = sc.SGR(color, mark) + wrapped[0][len(mark):]
		}
		lines = append(lines, wrapped...)
	}
	for _, p := range section.Progress(d) {
		item("", p)
	}
	for _, w := range d.Analysis.Warnings {
		if w.Code == warning.TargetNotReached && len(section.Progress(d)) > 0 {
			continue // said above
		}
		where := ""
		if len(w.Cells) > 0 { // a doubt about the whole campaign names no cell
			where = " (" + report.Count(len(w.Cells), "cell", "cells") + ")"
		}
		item("! ", fmt.Sprintf("%s%s: %s %s", w.Code, where, report.SentenceEnd(w.Message), report.Capital(report.SentenceEnd(w.Cure))))
	}
	for _, c := range section.Changed(d) {
		item("! ", "changed during the campaign: "+c)
	}
	if s := section.SampleWarnings(d); len(s) > 0 {
		item("! ", fmt.Sprintf("%s (%s)", report.SentenceEnd(s[0].What), report.Count(s[0].N, "sample", "samples"))+moreOf(len(s)-1))
	}
	for _, l := range section.Lacks(d) {
		item("x ", fmt.Sprintf("%s: %s: %s", l.State, d.Where(l.Cells), l.Reason)+l.Records())
	}
	if m := d.Models(); len(m) > 0 {
		item(report.ModelMark+" ", "datapath rebuilt by cnibench: "+strings.Join(m, "; ")+".")
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
func verdict(d *report.Document, g *report.Group, t result.Cell) string {
	rankings := g.Rankings[t]
	if len(rankings) == 0 || len(rankings[0].Ranked) < 2 {
		return ""
	}
	if rankings[0].LinkBound {
		return t.Traffic() + ": " + strings.TrimSpace(section.Sentence(d, g, t))
	}
	if tied := section.TieWords(d, rankings[0]); len(tied) > 0 {
		return t.Traffic() + ": tied: " + strings.Join(tied, "; ") + "."
	}
	return ""
}

// meshLines are the meshes for a terminal: words, and with long the tables.
func meshLines(sc screen.Screen, d *report.Document, long bool) []string {
	var lines []string
	for _, m := range d.Analysis.Meshes {
		lines = append(lines, sc.Wrap(section.MeshName(d, m)+": "+section.Slowest(d, m), "", "  ")...)
		if !long {
			continue
		}
		for _, b := range section.Mesh(&report.Document{Input: report.Input{Analysis: stat.Analysis{Meshes: []stat.Mesh{m}}, Environment: d.Environment}}) {
			if b.Table != nil {
				lines = append(append(lines, ""), sc.Wrap(b.Table.Caption, "", "")...)
				lines = append(lines, sc.Table(*b.Table)...)
			}
		}
		lines = append(lines, "")
	}
	return lines
}

// noiseLines is the section for a terminal.
func noiseLines(sc screen.Screen, d *report.Document) []string {
	var lines []string
	for _, b := range section.Noise(d) {
		lines = append(lines, "")
		if b.Para != "" {
			lines = append(lines, sc.Wrap(b.Para, "", "")...)
		}
		for _, item := range b.List {
			lines = append(lines, sc.Wrap(item, "", "")...)
		}
		if b.Table != nil {
			lines = append(lines, sc.Table(*b.Table)...)
		}
	}
	return lines
}
