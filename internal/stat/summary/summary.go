// Package summary says what the records of one cell mean: estimates of its metrics, how it
// compares with its baseline, and where its CPU time goes. It is pure.
package summary

import (
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stopping"
)

// Cells say what the samples of each cell mean, in the order of the dataset's cells,
// and how many histograms of each could not be read. The dataset has no histograms
// afterwards.
func Cells(c *dataset.Dataset) (cells []Cell, unreadable []int) {
	for i, l := range latencies(c) {
		cells, unreadable = append(cells, summarise(c, c.Cells[i], l)), append(unreadable, l.unreadable)
	}
	return cells, unreadable
}

// summarise says what the samples of one cell mean.
func summarise(c *dataset.Dataset, d *dataset.CellData, l latency) Cell {
	s := Cell{
		Cell: d.Cell, Primary: d.Primary, OK: len(d.OK), Failed: d.Failed, Recovered: d.Recovered,
		Reasons: d.SortedReasons(), Unsupported: d.Unsupported, Latency: l.absolute,
		Progress: stopping.ProgressOf(c, d), CPUBound: dataset.CPUBound(d), Shape: shape(c, d, l),
	}
	s.Absolute = map[string]estimate.Estimate{}
	for _, name := range d.MeasuredNames() {
		series := d.Series(name)
		if len(series) == 0 {
			continue
		}
		s.Absolute[name] = c.Tables.Median(estimate.Values(series))
		if c.Options.Blocks {
			s.keepBlocks(name, series)
		}
	}
	if e, ok := s.Absolute[dataset.CPUPerByte]; ok {
		s.CoresAt = coresAt(e)
	}
	s.Attribution, s.Ladder, s.Node = attribution(c, d), ladder(c, d), nodes(c, d)
	if e, ok := s.Absolute["loss_ratio"]; ok {
		s.Loss = &e
	}
	if ls := estimate.Logs(d.Series(d.Primary), 0); len(ls) > 0 {
		e := c.Tables.GeometricMean(ls)
		if c.UsableBaseline(d) == nil && !c.HasDependents(d) {
			stopping.Widen(c, &e, ls) // this is what the stopping rule looked at
		}
		s.Mean = &e
	}
	s.LinkLimit, s.LinkBound = c.LinkBound(d)
	efficiency(c, d, l, &s)
	return s
}

// efficiency compares the cell with its baseline, block by block.
func efficiency(c *dataset.Dataset, d *dataset.CellData, l latency, s *Cell) {
	if d.Cell.IsBaseline() {
		return
	}
	b := c.Baseline(d)
	if s.NoEfficiency = dataset.NoEfficiency(d, b); s.NoEfficiency != "" {
		return
	}
	cell := b.Cell
	s.Baseline = &cell
	s.EfficiencyByMetric = map[string]estimate.Estimate{}
	for _, name := range append([]string{d.Primary}, efficiencyMetrics()...) {
		ratios := estimate.LogRatios(d.Series(name), b.Series(name), c.Better[name])
		if len(ratios) > 0 {
			s.EfficiencyByMetric[name] = c.Tables.GeometricMean(ratios)
		}
	}
	for name, e := range l.efficiency {
		s.EfficiencyByMetric[name] = e
	}
	ratios := estimate.LogRatios(d.Series(d.Primary), b.Series(d.Primary), c.Better[d.Primary])
	if len(ratios) == 0 {
		s.NoEfficiency = "no block has both the cell and its baseline: 1 more block is needed for a value, 2 for an interval"
		return
	}
	e := c.Tables.GeometricMean(ratios)
	stopping.Widen(c, &e, ratios)
	s.Efficiency = &e
	s.EfficiencyByMetric[d.Primary] = e
}

// efficiencyMetrics are compared with the baseline in addition to the primary one.
func efficiencyMetrics() []string {
	names := []string{"latency_mean_seconds"}
	for _, p := range percentiles() {
		names = append(names, p.metric)
	}
	for _, m := range dataset.Derived() {
		names = append(names, m.Name)
	}
	return names
}
