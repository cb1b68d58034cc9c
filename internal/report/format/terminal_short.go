package format

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
)

// shortLines is the most that the short form takes at 80 columns.
const shortLines = 25

// leastName is the least room that a network's name has.
const leastName = 12

// writeTerminal writes the answer for a terminal: what one screen takes, or with
// screen.Options.Long all that a terminal can show.
func writeTerminal(w io.Writer, d *report.Document, opt screen.Options) error {
	if opt.Long {
		return writeLong(w, d, opt)
	}
	sc := screen.New(opt)
	head := sc.Title(section.Headline(d))
	if line := section.SettingLine(d); line != "" {
		head = append(head, sc.Fit(line, "", 3)...)
	}
	for _, m := range section.Missing(d) {
		head = append(head, sc.Fit(m, "", 2)...)
	}
	if n := d.Analysis.NullTest; n != nil {
		head = append(head, shortNoise(sc, d)...)
	}
	tail := shortTail(sc, d)
	var words []string
	for _, s := range section.GoalSentences(d) {
		words = append(words, sc.Fit(s, "", 2)...)
	}
	room := func(used ...[]string) int {
		n := shortLines
		for _, u := range used {
			n -= len(u)
		}
		return n
	}
	var tables []string
	if t := section.GoalTable(d, d.Analysis.Goals); t != nil {
		tables = shortTable(sc, *t, room(head, words, tail))
	}
	factors := section.FactorTables(d)
	for i, t := range factors {
		lines := factorLines(sc, *t, len(tables) == 0)
		if len(tables) > 0 && len(lines) > room(head, words, tail, tables)-1 {
			tables = append(tables, sc.Fit(report.Count(len(factors)-i, "more comparison is", "more comparisons are")+" in the long form.", "", 1)...)
			break
		}
		tables = append(tables, lines...)
	}
	others := otherLines(sc, d, room(head, words, tail, tables))
	others = append(others, sc.FitLines(meshLines(sc, d, false), room(head, words, tail, tables, others))...)
	lines := slices.Concat(head, tables, words, others, tail)
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// factorLines is the comparison of one factor's levels, with an empty line
// after it, and before it where it is the first table.
func factorLines(sc screen.Screen, t page.Table, first bool) []string {
	var lines []string
	if first {
		lines = append(lines, "")
	}
	lines = append(lines, sc.Fit(t.Caption+":", "", 3)...)
	lines = append(lines, sc.Table(t)...)
	for _, n := range t.Notes {
		lines = append(lines, sc.Wrap(n, "", "")...)
	}
	return append(lines, "")
}

// otherLines are the figures of other paths and settings in at most room lines;
// those that have no room are counted.
func otherLines(sc screen.Screen, d *report.Document, room int) []string {
	all := section.OtherLines(d)
	var lines []string
	for i, s := range all {
		wrapped := sc.Fit(s, "", 3)
		if len(lines)+len(wrapped) > room-count01(i+1 < len(all)) {
			return append(lines, sc.Fit(report.Count(len(all)-i, "figure", "figures")+" for other paths and settings: see the long form.", "", 1)...)
		}
		lines = append(lines, wrapped...)
	}
	return lines
}

func count01(b bool) int {
	if b {
		return 1
	}
	return 0
}

// shortTable is a table in at most room lines, its notes and an empty line on
// either side with it; rows that have no room are counted.
func shortTable(sc screen.Screen, t page.Table, room int) []string {
	var notes []string
	for _, n := range t.Notes {
		notes = append(notes, sc.Wrap(n, "", "")...)
	}
	widths, others := sc.ColumnWidths(t), 0
	for _, w := range widths[1:] {
		others += len(screen.ColumnGap) + w
	}
	for i, r := range t.Rows { // long names rather than broken tables
		r[0].Text = sc.Clip(sc.Say(r[0].Text), max(leastName, sc.Columns-others))
		t.Rows[i] = r
	}
	lines := sc.Table(t)
	head := len(lines) - len(t.Rows)
	room -= len(notes) + 2
	if over := len(lines) - room; over > 0 && head >= 0 {
		kept := max(1, len(t.Rows)-over-1)
		lines = append(lines[:head+kept], sc.Wrap(fmt.Sprintf("and %d more: see the long form", len(t.Rows)-kept), "", "")...)
	}
	return append(append(append([]string{""}, lines...), notes...), "")
}

// shortTail counts what is in doubt or missing, and says where the rest is.
func shortTail(sc screen.Screen, d *report.Document) []string {
	var lines []string
	item := func(mark, code, s string) {
		if s == "" {
			return
		}
		wrapped := sc.Fit(s, mark, 2)
		wrapped[0] = sc.SGR(code, mark) + wrapped[0][len(mark):]
		lines = append(lines, wrapped...)
	}
	item("! ", "33", section.WarningCounts(d))
	item("x ", "31", section.LackCounts(d))
	if len(d.Models()) > 0 {
		lines = append(lines, sc.Fit("datapath rebuilt by cnibench, not the vendor's agent.", report.ModelMark+" ", 1)...)
		if far := d.Distances(); far != "" {
			lines = append(lines, sc.Fit(far, "  ", 3)...)
		}
	}
	if s := section.Next(d); s != "" {
		lines = append(lines, sc.Fit(s, "", 3)...)
	}
	return lines
}

// shortNoise is the answer of a null test.
func shortNoise(sc screen.Screen, d *report.Document) []string {
	var lines []string
	for _, b := range section.Noise(d) {
		if b.Para != "" {
			lines = append(lines, sc.Wrap(b.Para, "", "")...)
		}
		for _, item := range b.List {
			lines = append(lines, sc.Wrap(item, "", "")...)
		}
	}
	return lines
}
