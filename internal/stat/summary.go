package stat

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// summarise says what the samples of one cell mean.
func (c *dataset) summarise(d *cellData, l latency) CellSummary {
	s := CellSummary{
		Cell: d.cell, Primary: d.primary, OK: len(d.ok), Failed: d.failed, Recovered: d.recovered,
		Reasons: d.sortedReasons(), Unsupported: d.unsupported, Latency: l.absolute,
		Progress: c.progress(d), CPUBound: cpuBound(d), Shape: c.shape(d, l),
	}
	if c.hasDependents(d) {
		s.Progress = c.baselineProgress(d, c.dependentProgress(d))
	}
	s.Absolute = map[string]Estimate{}
	for _, name := range d.measuredNames() {
		series := d.series(name)
		if len(series) == 0 {
			continue
		}
		s.Absolute[name] = c.tables.median(values(series))
		if c.opt.Blocks {
			s.keepBlocks(name, series)
		}
	}
	if e, ok := s.Absolute[CPUPerByte]; ok {
		s.CoresAt = coresAt(e)
	}
	s.Attribution, s.Ladder, s.Node = c.attribution(d), c.ladder(d), c.nodes(d)
	if e, ok := s.Absolute["loss_ratio"]; ok {
		s.Loss = &e
	}
	if ls := logs(d.series(d.primary), 0); len(ls) > 0 {
		e := c.tables.geometricMean(ls)
		if c.usableBaseline(d) == nil && !c.hasDependents(d) {
			c.widen(&e, ls) // this is what the stopping rule looked at
		}
		s.Mean = &e
	}
	s.LinkLimit, s.LinkBound = c.linkBound(d)
	c.efficiency(d, l, &s)
	return s
}

func (s *CellSummary) keepBlocks(metric string, series []point) {
	if s.Blocks == nil {
		s.Blocks = map[string][]BlockValue{}
	}
	for _, p := range series {
		s.Blocks[metric] = append(s.Blocks[metric], BlockValue{p.block, p.value})
	}
}

// efficiency compares the cell with its baseline, block by block.
func (c *dataset) efficiency(d *cellData, l latency, s *CellSummary) {
	if d.cell.IsBaseline() {
		return
	}
	b := c.baseline(d)
	if s.NoEfficiency = noEfficiency(d, b); s.NoEfficiency != "" {
		return
	}
	cell := b.cell
	s.Baseline = &cell
	s.EfficiencyByMetric = map[string]Estimate{}
	for _, name := range append([]string{d.primary}, efficiencyMetrics()...) {
		ratios := logRatios(d.series(name), b.series(name), c.better[name])
		if len(ratios) > 0 {
			s.EfficiencyByMetric[name] = c.tables.geometricMean(ratios)
		}
	}
	for name, e := range l.efficiency {
		s.EfficiencyByMetric[name] = e
	}
	ratios := logRatios(d.series(d.primary), b.series(d.primary), c.better[d.primary])
	if len(ratios) == 0 {
		s.NoEfficiency = "no block has both the cell and its baseline: 1 more block is needed for a value, 2 for an interval"
		return
	}
	e := c.tables.geometricMean(ratios)
	c.widen(&e, ratios)
	s.Efficiency = &e
	s.EfficiencyByMetric[d.primary] = e
}

// noEfficiency says why a cell cannot be compared with its baseline at all.
func noEfficiency(d, b *cellData) string {
	why := notMeasured(d)
	switch {
	case why != "":
		return why
	case b == nil:
		return "no baseline: the campaign has no sample of network " + result.HostNetwork + " with the same factors"
	case b.unsupported != "" && len(b.ok) == 0:
		return "no baseline: " + b.unsupported
	case len(b.ok) == 0 && b.failed > 0:
		return fmt.Sprintf("no baseline: all %d samples of it failed: %s", b.failed, b.sortedReasons()[0].Reason)
	case len(b.ok) == 0:
		return "no baseline: nothing was measured of it"
	}
	return ""
}

// notMeasured says why nothing was measured of a cell; "" where something was.
func notMeasured(d *cellData) string {
	switch {
	case len(d.ok) > 0:
		return ""
	case d.unsupported != "":
		return "unsupported: " + d.unsupported
	case d.failed > 0:
		return fmt.Sprintf("all %d samples failed: %s", d.failed, d.sortedReasons()[0].Reason)
	}
	return "nothing was measured"
}

// efficiencyMetrics are compared with the baseline in addition to the primary one.
func efficiencyMetrics() []string {
	names := []string{"latency_mean_seconds"}
	for _, p := range percentiles() {
		names = append(names, p.metric)
	}
	for _, m := range Derived() {
		names = append(names, m.Name)
	}
	return names
}

// widen makes the interval of a cell that the stopping rule stopped no narrower
// than the target (see stopped).
func (c *dataset) widen(e *Estimate, logs []point) {
	if !c.stoppedLate(logs) || e.Low == nil {
		return
	}
	h := c.logTarget()
	*e.Low = math.Min(*e.Low, e.Value*math.Exp(-h))
	*e.High = math.Max(*e.High, e.Value*math.Exp(h))
}

// cpuBound reports whether the busiest core of an end was saturated in the median
// block.
func cpuBound(d *cellData) bool {
	var xs []float64
	for _, s := range d.ok {
		if v, ok := probeMax(s, "cpu_busiest_core_ratio"); ok {
			xs = append(xs, v)
		}
	}
	return len(xs) > 0 && medianOf(xs) >= saturated
}

// saturated is the share of a core's time from which it limits the traffic.
const saturated = 0.95

// dependentProgress is the progress of every cell that leans on the baseline d.
func (c *dataset) dependentProgress(d *cellData) map[result.Cell]Progress {
	out := map[result.Cell]Progress{}
	for _, e := range c.dependents[d.cell] {
		out[e.cell] = c.progress(e)
	}
	return out
}

func sortedCells(cells []result.Cell) []result.Cell {
	slices.SortFunc(cells, result.Cell.Compare)
	return slices.Compact(cells)
}
