package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// shortLines is the most that the short form takes at 80 columns.
const shortLines = 25

// leastName is the least room that a network's name has.
const leastName = 12

// writeTerminal writes the answer for a terminal: what one screen takes, or with
// Options.Long all that a terminal can show.
func writeTerminal(w io.Writer, d *document, opt Options) error {
	if opt.Long {
		return writeLong(w, d, opt)
	}
	sc := newScreen(opt)
	head := sc.wrap(d.headline(), "", "")
	head[0] = sc.bold(head[0])
	if line := d.settingLine(); line != "" {
		head = append(head, sc.fit(line, "", 3)...)
	}
	for _, m := range d.missing() {
		head = append(head, sc.fit(m, "", 2)...)
	}
	if n := d.Analysis.NullTest; n != nil {
		head = append(head, sc.shortNoise(d)...)
	}
	tail := sc.shortTail(d)
	var words []string
	for _, s := range d.goalSentences() {
		words = append(words, sc.fit(s, "", 2)...)
	}
	room := func(used ...[]string) int {
		n := shortLines
		for _, u := range used {
			n -= len(u)
		}
		return n
	}
	var tables []string
	if t := d.goalTable(d.Analysis.Goals); t != nil {
		tables = sc.shortTable(*t, room(head, words, tail))
	}
	factors := d.factorTables()
	for i, t := range factors {
		lines := sc.factorLines(*t, len(tables) == 0)
		if len(tables) > 0 && len(lines) > room(head, words, tail, tables)-1 {
			tables = append(tables, sc.fit(count(len(factors)-i, "more comparison is", "more comparisons are")+" in the long form.", "", 1)...)
			break
		}
		tables = append(tables, lines...)
	}
	others := sc.otherLines(d, room(head, words, tail, tables))
	others = append(others, sc.fitLines(sc.meshLines(d, false), room(head, words, tail, tables, others))...)
	lines := slices.Concat(head, tables, words, others, tail)
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// factorLines is the comparison of one factor's levels, with an empty line
// after it, and before it where it is the first table.
func (sc screen) factorLines(t table, first bool) []string {
	var lines []string
	if first {
		lines = append(lines, "")
	}
	lines = append(lines, sc.fit(t.Caption+":", "", 3)...)
	lines = append(lines, sc.textTable(t)...)
	for _, n := range t.Notes {
		lines = append(lines, sc.wrap(n, "", "")...)
	}
	return append(lines, "")
}

// otherLines are the figures of other paths and settings in at most room lines;
// those that have no room are counted.
func (sc screen) otherLines(d *document, room int) []string {
	all := d.otherLines()
	var lines []string
	for i, s := range all {
		wrapped := sc.fit(s, "", 3)
		if len(lines)+len(wrapped) > room-count01(i+1 < len(all)) {
			return append(lines, sc.fit(count(len(all)-i, "figure", "figures")+" for other paths and settings: see the long form.", "", 1)...)
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

// fit wraps s into at most n lines; what is left over is cut.
func (sc screen) fit(s, mark string, n int) []string {
	lines := sc.wrap(s, mark, strings.Repeat(" ", len(mark)))
	if len(lines) <= n {
		return lines
	}
	cut := sc.say("…")
	return append(lines[:n-1], sc.clipTo(lines[n-1], sc.columns-width(cut))+cut)
}

// fitLines is at most n of some lines; what is left over is counted.
func (sc screen) fitLines(lines []string, n int) []string {
	if len(lines) <= max(n, 2) {
		return lines
	}
	kept := max(n, 2) - 1
	return append(lines[:kept:kept], fmt.Sprintf("and %d more lines: see the long form", len(lines)-kept))
}

// clipTo cuts s at n columns.
func (sc screen) clipTo(s string, n int) string { return condition().Truncate(s, n, "") }

// shortTable is a table in at most room lines, its notes and an empty line on
// either side with it; rows that have no room are counted.
func (sc screen) shortTable(t table, room int) []string {
	var notes []string
	for _, n := range t.Notes {
		notes = append(notes, sc.wrap(n, "", "")...)
	}
	widths, others := sc.columnWidths(t), 0
	for _, w := range widths[1:] {
		others += len(columnGap) + w
	}
	for i, r := range t.Rows { // long names rather than broken tables
		r[0].Text = sc.clip(sc.say(r[0].Text), max(leastName, sc.columns-others))
		t.Rows[i] = r
	}
	lines := sc.textTable(t)
	head := len(lines) - len(t.Rows)
	room -= len(notes) + 2
	if over := len(lines) - room; over > 0 && head >= 0 {
		kept := max(1, len(t.Rows)-over-1)
		lines = append(lines[:head+kept], sc.wrap(fmt.Sprintf("and %d more: see the long form", len(t.Rows)-kept), "", "")...)
	}
	return append(append(append([]string{""}, lines...), notes...), "")
}

// shortTail counts what is in doubt or missing, and says where the rest is.
func (sc screen) shortTail(d *document) []string {
	var lines []string
	item := func(mark, code, s string) {
		if s == "" {
			return
		}
		wrapped := sc.fit(s, mark, 2)
		wrapped[0] = sc.sgr(code, mark) + wrapped[0][len(mark):]
		lines = append(lines, wrapped...)
	}
	item("! ", "33", d.warningCounts())
	item("x ", "31", d.lackCounts())
	if len(d.models()) > 0 {
		lines = append(lines, sc.fit("datapath rebuilt by cnibench, not the vendor's agent.", modelMark+" ", 1)...)
	}
	if s := d.next(); s != "" {
		lines = append(lines, sc.fit(s, "", 3)...)
	}
	return lines
}

// shortNoise is the answer of a null test.
func (sc screen) shortNoise(d *document) []string {
	var lines []string
	for _, b := range noise(d) {
		if b.Para != "" {
			lines = append(lines, sc.wrap(b.Para, "", "")...)
		}
		for _, item := range b.List {
			lines = append(lines, sc.wrap(item, "", "")...)
		}
	}
	return lines
}
