package paper

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// Comparison is a published table with ours beside it.
type Comparison struct {
	Table Table `json:"table"`
	// Reference is the row that the others are shares of; -1 where there is none.
	Reference int `json:"reference"`
	// Cells are by row and column; none where the table is not regenerated.
	Cells [][]Entry `json:"cells,omitempty"`
	// Order compares the columns' orders.
	Order Order `json:"order"`
}

// Entry is one place of a table.
type Entry struct {
	// Published is in the table's unit, Ours and its bounds too.
	Published *float64           `json:"published,omitempty"`
	UpTo      *float64           `json:"upto,omitempty"`
	Ours      *estimate.Estimate `json:"ours,omitempty"`
	// PublishedShare and OurShare are against the row of reference, as published /
	// reference; of a table of efficiencies, that itself.
	PublishedShare *float64           `json:"published_share,omitempty"`
	OurShare       *estimate.Estimate `json:"our_share,omitempty"`
	// Why says why there is none of ours.
	Why string `json:"why,omitempty"`

	cell   result.Cell
	metric string
}

// Order counts the pairs of rows whose order is published, over all columns.
type Order struct {
	// Same and Opposite are those of which ours shows the same or the opposite
	// order; the rest are tied. Each is at the confidence on its own.
	Same     int `json:"same"`
	Opposite int `json:"opposite"`
	Tied     int `json:"tied"`
}

// Tables puts ours beside every published table.
func Tables(p Paper, r *Results) []Comparison {
	var out []Comparison
	for _, t := range p.Tables {
		out = append(out, compare(p.Publication.Cells, t, r))
	}
	return out
}

func compare(common Selector, t Table, r *Results) Comparison {
	c := Comparison{Table: t, Reference: reference(t)}
	for _, row := range t.Rows {
		entries := make([]Entry, len(t.Columns))
		for k, column := range t.Columns {
			e := &entries[k]
			e.Published, e.UpTo = valueAt(row.Values, k), valueAt(row.UpTo, k)
			if t.Ours != nil {
				s := common.with(t.Ours.Cells, row.Cell, column.Cell)
				e.fill(r, *t.Ours, column, s)
			}
		}
		c.Cells = append(c.Cells, entries)
	}
	for k := range t.Columns {
		c.shares(k, r)
		c.orders(k, r)
	}
	return c
}

// reference is the row that the others are shares of: the one that says so, or
// the first that has values.
func reference(t Table) int {
	first := -1
	for i, row := range t.Rows {
		if row.Baseline && row.Inconsistent == "" {
			return i
		}
		if first < 0 && row.Values != nil && row.Inconsistent == "" {
			first = i
		}
	}
	return first
}

func valueAt(values []*float64, k int) *float64 {
	if k >= len(values) {
		return nil
	}
	return values[k]
}

// fill finds the one recorded cell that is meant and puts its value into the
// published unit.
func (e *Entry) fill(r *Results, ours Ours, column Column, s Selector) {
	if s.unknown() != "" {
		e.Why = r.absent(s)
		return
	}
	found := r.matching(s)
	switch len(found) {
	case 0:
		e.Why = r.absent(s)
		return
	case 1:
	default:
		e.Why = "several recorded cells are as the table says"
		return
	}
	metric, scale := ours.Metric, ours.BasePerUnit
	if column.Metric != "" {
		metric = column.Metric
	}
	if column.BasePerUnit > 0 {
		scale = column.BasePerUnit
	}
	if e.Why = r.lacks(found[0], metric); e.Why != "" {
		return
	}
	e.cell, e.metric = found[0].Cell, metric
	if ours.Measure == efficiencyMeasure {
		e.efficiency(r, scale)
		return
	}
	m := r.Collector.Values(metric, e.cell)
	e.Ours = scaled(m, r.confidence(), func(v float64) float64 { return v / scale }, estimate.ArithmeticMean)
}

// efficiency is the cell against the bare network, as efficiencies are: more is
// better whatever the metric.
func (e *Entry) efficiency(r *Results, scale float64) {
	base := e.cell.Baseline()
	over, under := []result.Cell{e.cell}, []result.Cell{base}
	if lowerIsBetter(e.metric) {
		over, under = under, over
	}
	m, notPositive := r.Collector.Contrast(e.metric, over, under)
	if notPositive > 0 {
		e.Why = fmt.Sprintf("in %d blocks a value is not above zero", notPositive)
		return
	}
	if m.N == 0 {
		e.Why = "its baseline was not measured"
		return
	}
	e.Ours = scaled(m, r.confidence(), func(v float64) float64 { return math.Exp(v) / scale }, estimate.GeometricMean)
	e.OurShare = scaled(m, r.confidence(), math.Exp, estimate.GeometricMean)
	if e.Published != nil {
		share := *e.Published * scale
		e.PublishedShare = &share
	}
}

// scaled is an estimate of moments in another unit.
func scaled(m estimate.Moments, confidence float64, to func(float64) float64, method estimate.Method) *estimate.Estimate {
	e := &estimate.Estimate{Value: to(m.Mean), N: m.N, Method: method}
	low, high, ok := m.Interval(confidence)
	if !ok {
		e.Needed = 2
		return e
	}
	low, high = to(low), to(high)
	e.Low, e.High, e.Confidence = &low, &high, confidence
	return e
}

// shares compares a column's entries with the row of reference.
func (c *Comparison) shares(k int, r *Results) {
	if c.Reference < 0 || c.Table.Ours == nil || c.Table.Ours.Measure == efficiencyMeasure {
		return
	}
	ref := c.Cells[c.Reference][k]
	for i := range c.Cells {
		e := &c.Cells[i][k]
		if c.Table.Rows[i].Inconsistent == "" && e.Published != nil && ref.Published != nil && *ref.Published != 0 {
			share := *e.Published / *ref.Published
			e.PublishedShare = &share
		}
		if e.Ours == nil || ref.Ours == nil || i == c.Reference {
			continue
		}
		if m, _ := r.Collector.Contrast(e.metric, []result.Cell{e.cell}, []result.Cell{ref.cell}); m.N > 0 {
			e.OurShare = scaled(m, r.confidence(), math.Exp, estimate.GeometricMean)
		}
	}
}

// orders compares each pair of rows of a column whose order is published.
func (c *Comparison) orders(k int, r *Results) {
	for i := range c.Cells {
		for j := range i {
			a, b := c.Cells[i][k], c.Cells[j][k]
			consistent := c.Table.Rows[i].Inconsistent == "" && c.Table.Rows[j].Inconsistent == ""
			if !consistent || a.Published == nil || b.Published == nil || *a.Published == *b.Published || a.Ours == nil || b.Ours == nil {
				continue
			}
			m, _ := r.Collector.Contrast(a.metric, []result.Cell{a.cell}, []result.Cell{b.cell})
			if lowerIsBetter(a.metric) && c.Table.Ours.Measure == efficiencyMeasure {
				m.Mean = -m.Mean
			}
			low, high, ok := m.Interval(r.confidence())
			up := *a.Published > *b.Published
			switch {
			case ok && (low > 0 && up || high < 0 && !up):
				c.Order.Same++
			case ok && (low > 0 || high < 0):
				c.Order.Opposite++
			default:
				c.Order.Tied++
			}
		}
	}
}
