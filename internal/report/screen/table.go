package screen

import (
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report/page"
)

// How tables are laid out. Widths are columns of the screen; ColumnGap is what is
// between two columns of a table.
const (
	ColumnGap    = "  "
	widestHead   = 20 // longer headings are broken
	leastBar     = 5
	longestBar   = 12
	widestName   = 28 // of the first column, where the others want its room
	barBlocks    = " ▏▎▍▌▋▊▉█"
	asciiBarChar = "#"
)

// Table lays a table out for a terminal. One that is wider than the screen
// is broken into several, each with the first column, before columns that are not
// joined to the one before them as long as these fit.
func (sc Screen) Table(t page.Table) []string {
	if len(t.Columns) == 0 {
		return nil
	}
	widths := sc.ColumnWidths(t)
	room := sc.Columns - widths[0]
	var lines []string
	for from := 1; from < len(t.Columns) || from == 1; {
		to, used := breakAfter(t, widths, from, room)
		bars := 0
		if to > from {
			bars = min((room-used)/(to-from)-1, longestBar)
		}
		if bars < leastBar || !hasShades(t, from, to) {
			bars = 0
		}
		if from > 1 {
			lines = append(lines, "")
		}
		lines = append(lines, sc.textColumns(t, widths, from, to, bars)...)
		from = max(to, 2)
	}
	return lines
}

// breakAfter is the end of the columns from one on that fit a screen's room, at
// least one, and how much of it they use.
func breakAfter(t page.Table, widths []int, from, room int) (to, used int) {
	for to = from; to < len(widths) && (to == from || used+len(ColumnGap)+widths[to] <= room); to++ {
		used += len(ColumnGap) + widths[to]
	}
	for whole := to; whole > from && whole < len(widths); whole-- {
		if t.Columns[whole].Joined {
			continue
		}
		for ; to > whole; to-- {
			used -= len(ColumnGap) + widths[to-1]
		}
		break
	}
	return to, used
}

// ColumnWidths are the widths that the columns ask for, none more than can
// ever be shown.
func (sc Screen) ColumnWidths(t page.Table) []int {
	widths, ranks := make([]int, len(t.Columns)), sc.rankWidth(t)
	for i, c := range t.Columns {
		for _, line := range sc.headLines(c) {
			widths[i] = max(widths[i], Width(line))
		}
		values := sc.valueWidth(t, i)
		for _, r := range t.Rows {
			widths[i] = max(widths[i], Width(sc.fieldText(r[i], values, ranks)))
		}
	}
	others := 0
	for _, w := range widths[1:] {
		others += len(ColumnGap) + w
	}
	widths[0] = min(widths[0], max(widestName, sc.Columns*2/5, sc.Columns-others))
	for i := 1; i < len(widths); i++ {
		widths[i] = min(widths[i], sc.Columns-widths[0]-len(ColumnGap))
	}
	return widths
}

func (sc Screen) headLines(c page.Column) []string {
	narrow := Screen{Columns: widestHead, unicode: sc.unicode}
	lines := narrow.Wrap(c.Head, "", "")
	if c.Sub != "" {
		lines = append(lines, narrow.Wrap(c.Sub, "", "")...)
	}
	return lines
}

// fieldText is a field's text with the rank in a field of its own, ranks columns
// wide. A text without a rank reaches into that field only where values, the
// width of the ranked figures, are too few columns for it.
func (sc Screen) fieldText(c page.Field, values, ranks int) string {
	s := sc.Say(c.Text)
	if ranks == 0 || (c.Rank == "" && Width(s) > values) {
		return s
	}
	return s + "  " + pad(sc.Say(c.Rank), ranks, true)
}

// valueWidth is the width of a column's ranked figures; the name has none.
func (sc Screen) valueWidth(t page.Table, column int) int {
	n := 0
	for _, r := range t.Rows {
		if r[column].Rank != "" {
			n = max(n, Width(sc.Say(r[column].Text)))
		}
	}
	return n
}

func (sc Screen) rankWidth(t page.Table) int {
	n := 0
	for _, r := range t.Rows {
		for _, c := range r {
			n = max(n, Width(sc.Say(c.Rank)))
		}
	}
	return n
}

func (sc Screen) textColumns(t page.Table, widths []int, from, to, bars int) []string {
	shown := append([]int{0}, ints(from, to)...)
	heads, height := make([][]string, len(t.Columns)), 0
	for _, i := range shown {
		heads[i] = sc.headLines(t.Columns[i])
		height = max(height, len(heads[i]))
	}
	extra := 0
	if bars > 0 {
		extra = bars + 1
	}
	var lines []string
	for h := range height {
		var b strings.Builder
		for _, i := range shown {
			head := ""
			if k := h - (height - len(heads[i])); k >= 0 {
				head = heads[i][k]
			}
			sc.put(&b, head, i, widths[i], extra, t.Columns[i].Number)
		}
		lines = append(lines, sc.Bold(strings.TrimRight(b.String(), " ")))
	}
	most, ranks := mostValue(t, from, to), sc.rankWidth(t)
	for _, r := range t.Rows {
		var b strings.Builder
		for _, i := range shown {
			s, room := sc.Clip(sc.fieldText(r[i], sc.valueWidth(t, i), ranks), widths[i]), extra*min(i, 1)
			if room > 0 && r[i].Value != nil && r[i].Shade > 0 {
				s = sc.shade(sc.bar(*r[i].Value/most, bars), r[i].Shade) + " " + pad(s, widths[i], t.Columns[i].Number)
				room = -1
			}
			if room < 0 { // there is a bar: all is padded
				b.WriteString(ColumnGap + s)
				continue
			}
			sc.put(&b, s, i, widths[i], room, t.Columns[i].Number)
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// put appends one field of a line.
func (sc Screen) put(b *strings.Builder, s string, i, w, extra int, right bool) {
	if i > 0 {
		b.WriteString(ColumnGap)
		w += extra
	}
	b.WriteString(pad(sc.Clip(s, w), w, right))
}

// hasShades tells whether any column has efficiencies to draw.
func hasShades(t page.Table, from, to int) bool {
	return slices.ContainsFunc(t.Rows, func(r []page.Field) bool {
		return slices.ContainsFunc(r[from:to], func(c page.Field) bool { return c.Shade > 0 })
	})
}

func mostValue(t page.Table, from, to int) float64 {
	most := 1.0 // 100 %
	for _, r := range t.Rows {
		for _, c := range r[from:to] {
			if c.Value != nil && c.Shade > 0 {
				most = math.Max(most, *c.Value)
			}
		}
	}
	return most
}

func ints(from, to int) []int {
	var out []int
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// bar draws a share of n columns.
func (sc Screen) bar(share float64, n int) string {
	share = math.Max(0, math.Min(share, 1))
	if !sc.unicode {
		return pad(strings.Repeat(asciiBarChar, int(math.Round(share*float64(n)))), n, false)
	}
	blocks := []rune(barBlocks)
	eighths := int(math.Round(share * float64(n) * 8))
	s := strings.Repeat(string(blocks[8]), eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string(blocks[rest])
	}
	return pad(s, n, false)
}

// Bold is s in bold, where the screen has colours.
func (sc Screen) Bold(s string) string { return sc.SGR("1", s) }

// Title is the lines of a title, each in bold.
func (sc Screen) Title(s string) []string {
	lines := sc.Wrap(s, "", "")
	for i, l := range lines {
		lines[i] = sc.Bold(l)
	}
	return lines
}

// shade colours a bar by the efficiency that it shows. The colours say no more
// than the figures beside them.
func (sc Screen) shade(s string, step int) string {
	switch {
	case step >= 7:
		return sc.SGR("36", s)
	case step >= 5:
		return sc.SGR("34", s)
	}
	return sc.SGR("33", s)
}

// SGR is s with an attribute of ECMA-48 ("1" is bold, "31" is red), where the screen has
// colours.
func (sc Screen) SGR(code, s string) string {
	if !sc.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
