package dataset

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// IsRanked reports whether rankings compare a cell's network with others.
func IsRanked(c result.Cell) bool {
	return !c.IsBaseline() && !result.IsLadderOnly(c.Network) && !c.IsPair()
}

// RankedWith is what a cell has in common with those that it is ranked with.
func RankedWith(c result.Cell) result.Cell {
	c.Network, c.Cluster = "", ""
	return c
}

// NoEfficiency says why a cell cannot be compared with its baseline at all.
func NoEfficiency(d, b *CellData) string {
	why := NotMeasured(d)
	switch {
	case why != "":
		return why
	case b == nil:
		return "no baseline: the campaign has no sample of network " + result.HostNetwork + " with the same factors"
	case b.Unsupported != "" && len(b.OK) == 0:
		return "no baseline: " + b.Unsupported
	case len(b.OK) == 0 && b.Failed > 0:
		return fmt.Sprintf("no baseline: all %d samples of it failed: %s", b.Failed, b.SortedReasons()[0].Reason)
	case len(b.OK) == 0:
		return "no baseline: nothing was measured of it"
	}
	return ""
}

// NotMeasured says why nothing was measured of a cell; "" where something was.
func NotMeasured(d *CellData) string {
	switch {
	case len(d.OK) > 0:
		return ""
	case d.Unsupported != "":
		return "unsupported: " + d.Unsupported
	case d.Failed > 0:
		return fmt.Sprintf("all %d samples failed: %s", d.Failed, d.SortedReasons()[0].Reason)
	}
	return "nothing was measured"
}

// CPUBound reports whether the busiest core of an end was saturated in the median
// block.
func CPUBound(d *CellData) bool {
	var xs []float64
	for _, s := range d.OK {
		if v, ok := probeMax(s, "cpu_busiest_core_ratio"); ok {
			xs = append(xs, v)
		}
	}
	return len(xs) > 0 && estimate.MedianOf(xs) >= unit.Saturated
}

// HasDependents reports whether any cell is compared with d.
func (c *Dataset) HasDependents(d *CellData) bool { return len(c.Dependents[d.Cell]) > 0 }

// UsableBaseline is d's baseline; nil where it cannot be built here, so that
// it will never be measured.
func (c *Dataset) UsableBaseline(d *CellData) *CellData {
	b := c.Baseline(d)
	if b == nil || b.Unsupported != "" && len(b.OK) == 0 {
		return nil
	}
	return b
}

// SortedCells sorts cells and leaves out repetitions.
func SortedCells(cells []result.Cell) []result.Cell {
	slices.SortFunc(cells, result.Cell.Compare)
	return slices.Compact(cells)
}
