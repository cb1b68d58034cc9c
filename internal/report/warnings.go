package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// warnings is every doubt about the numbers, with its cure, and the cells that
// it is about.
func warnings(d *document) []block {
	tab := &table{Caption: "Doubts about the numbers, the gravest first", Columns: []column{
		{Head: "warning"}, {Head: "cells", Number: true}, {Head: "what was seen", Wide: true}, {Head: "what to do", Wide: true}, {Head: "where", Wide: true}}}
	for _, w := range d.Analysis.Warnings {
		cells, where := fmt.Sprint(len(w.Cells)), d.where(w.Cells)
		if len(w.Cells) == 0 {
			cells, where = "", "the whole campaign"
		}
		tab.Rows = append(tab.Rows, []cell{text(string(w.Code)), text(cells), text(w.Message), text(w.Cure), text(where)})
	}
	var out []block
	if len(tab.Rows) > 0 {
		out = append(out, block{Table: tab})
	}
	if c := d.changed(); len(c) > 0 {
		out = append(out, para("Settings that were different at the end of the campaign:"), list(c))
	}
	var said []string
	for _, w := range d.sampleWarnings() {
		said = append(said, w.what+" ("+count(w.n, "sample", "samples")+")")
	}
	if len(said) > 0 {
		out = append(out, para("What samples say of themselves:"), list(said))
	}
	if len(out) == 0 {
		return []block{para("None.")}
	}
	return out
}

func (d *document) changed() []string {
	if d.Environment == nil {
		return nil
	}
	return d.Environment.Changed
}

// mostWhere is how many parts of where something is are named.
const mostWhere = 4

// where names the cells that something is about, network by network; after the
// first few only their number.
func (d *document) where(cells []result.Cell) string {
	type key struct {
		network, pair string
		place         place
	}
	traffics, order := map[key][]string{}, []key{}
	for _, c := range cells {
		k := key{c.Network, pairOf(c), placeOf(c)}
		if len(traffics[k]) == 0 {
			order = append(order, k)
		}
		traffics[k] = append(traffics[k], c.Traffic())
	}
	var parts []string
	named := 0
	for i, k := range order {
		if i == mostWhere {
			parts = append(parts, fmt.Sprintf("and %s more", count(len(cells)-named, "cell", "cells")))
			break
		}
		named += len(traffics[k])
		s := d.name(k.network) + " " + strings.TrimPrefix(k.pair+" ", " ") + strings.Join(traffics[k], ", ")
		if k.pair == "" && len(traffics[k]) > 1 && len(traffics[k]) == d.planned(k.network, k.place) {
			s = d.name(k.network) + " (all traffic)"
		}
		if where := d.short(k.place); where != "" {
			s += " (" + where + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// cellName says a cell in words, with what differs between places.
func (d *document) cellName(c result.Cell) string {
	s := d.name(c.Network) + " " + c.Traffic()
	if where := d.short(placeOf(c)); where != "" {
		s += " (" + where + ")"
	}
	return s
}

// planned is the number of cells that a network has at some places, anywhere
// where none is named.
func (d *document) planned(network string, places ...place) int {
	n := 0
	add := func(c result.Cell) {
		if c.Network == network && (len(places) == 0 || slices.Contains(places, placeOf(c))) {
			n++
		}
	}
	for _, s := range d.Analysis.Cells {
		add(s.Cell)
	}
	for _, c := range d.unmeasured {
		add(c)
	}
	return n
}

// sampleWarnings are the doubts that samples carry themselves, with how many
// samples have each.
func (d *document) sampleWarnings() []counted {
	n := d.Tally.Warnings
	var out []counted
	for _, k := range sortedKeys(n) {
		out = append(out, counted{k, n[k]})
	}
	slices.SortStableFunc(out, func(a, b counted) int { return b.n - a.n })
	return out
}

type counted struct {
	what string
	n    int
}
