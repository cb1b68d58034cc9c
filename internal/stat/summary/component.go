package summary

import (
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// Component is what a part of the kernel, or user space, costs a cell.
type Component struct {
	// Name is one of unit.Components.
	Name string `json:"name"`
	// Seconds is its CPU time per unit of work, both ends together.
	Seconds estimate.Estimate `json:"seconds"`
	// Share is its share of Attribution.Total's value; nil where that, or its interval,
	// is not above zero: idle time is subtracted, and a noisy machine may leave nothing.
	Share *float64 `json:"share,omitempty"`
	// More is Seconds less that of the baseline, in blocks that have both; nil
	// for a baseline, and where there is none.
	More *estimate.Estimate `json:"more,omitempty"`
}

// Attribution is where a cell's CPU time goes, by sampled stacks. It is of means
// over blocks: only those add up.
type Attribution struct {
	// Work is what the time is per: "transaction", "packet" or "byte".
	Work string `json:"work"`
	// Total is all of the traffic's CPU time per unit of work, More what it is
	// more than the baseline's.
	Total estimate.Estimate  `json:"total"`
	More  *estimate.Estimate `json:"more,omitempty"`
	// Components add up to Total, in the order of unit.Components.
	Components []Component `json:"components"`
	// ElsewhereShare is the share of the machines' busy time that other programs
	// had: it is in no component. Nil where it is not known.
	ElsewhereShare *float64 `json:"elsewhere_share,omitempty"`
}

// Component finds a component's cost.
func (a Attribution) Component(name string) (Component, bool) {
	for _, c := range a.Components {
		if c.Name == name {
			return c, true
		}
	}
	return Component{}, false
}

// attribution says where a cell's time goes; nil where no stacks were sampled,
// or no work was counted.
func attribution(c *dataset.Dataset, d *dataset.CellData) *Attribution {
	work, ok := d.AttributedWork()
	if !ok {
		return nil
	}
	names := dataset.Charged()
	own := d.PerWork(names, work)
	if len(own) == 0 {
		return nil
	}
	var base []estimate.Point
	b := c.Baseline(d)
	if b != nil {
		base = b.PerWork(names, work)
	}
	a := &Attribution{Work: work.Name, Total: c.Tables.Mean(own), More: more(c, own, base)}
	for _, name := range names {
		one := []string{name}
		points := d.PerWork(one, work)
		part := Component{Name: name, Seconds: c.Tables.Mean(points)}
		if low, _, known := a.Total.Interval(); a.Total.Value > 0 && (!known || low > 0) {
			share := part.Seconds.Value / a.Total.Value
			part.Share = &share
		}
		if b != nil {
			part.More = more(c, points, b.PerWork(one, work))
		}
		a.Components = append(a.Components, part)
	}
	a.ElsewhereShare = d.Elsewhere()
	return a
}

// more is the mean of a less b, in the blocks that have both.
func more(c *dataset.Dataset, a, b []estimate.Point) *estimate.Estimate {
	differences := estimate.Differences(a, b)
	if len(differences) == 0 {
		return nil
	}
	e := c.Tables.Mean(differences)
	return &e
}
