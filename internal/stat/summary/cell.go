package summary

import (
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stopping"
)

// Cores is how many cores a rate would take, of both ends together.
type Cores struct {
	BitsPerSecond float64           `json:"bits_per_second"`
	Cores         estimate.Estimate `json:"cores"`
}

// coresAt extrapolates the CPU time per byte, which is the cycles per byte over
// the cycles of a busy second, to the rates of links. It takes the cost to grow
// with the rate, the messages and offloads to stay the same.
func coresAt(perByte estimate.Estimate) []Cores {
	var out []Cores
	for _, rate := range []float64{10e9, 25e9, 50e9, 100e9} {
		e := perByte
		e.Value *= rate / 8
		if low, high, ok := perByte.Interval(); ok {
			e.Bound(low*rate/8, high*rate/8, perByte.Confidence)
		}
		out = append(out, Cores{rate, e})
	}
	return out
}

// Cell is what the samples say about one cell.
type Cell struct {
	Cell result.Cell `json:"cell"`
	// Baseline is the cell that Efficiency compares with; nil for a baseline
	// cell itself and where the samples have none.
	Baseline *result.Cell `json:"baseline,omitempty"`
	// Primary is the metric that the cell is judged by; "" where nothing was measured.
	Primary string `json:"primary,omitempty"`
	// OK is the number of blocks measured. Failed is the number of failed
	// records, Recovered how many of them a retry made good; Reasons says why,
	// the most frequent first.
	OK        int              `json:"ok"`
	Failed    int              `json:"failed,omitempty"`
	Recovered int              `json:"recovered,omitempty"`
	Reasons   []dataset.Reason `json:"reasons,omitempty"`
	// Unsupported is why this testbed cannot build the cell; "" where it can.
	Unsupported string `json:"unsupported,omitempty"`
	// Absolute is the median over blocks of each metric, in base units, the
	// derived CPU costs (CPUPerByte …) included.
	Absolute map[string]estimate.Estimate `json:"absolute,omitempty"`
	// Latency has each latency percentile of the merged histograms by the name
	// of its metric. It is absent where no sample has a histogram.
	Latency map[string]estimate.Estimate `json:"latency,omitempty"`
	// Mean is the geometric mean over blocks of the primary metric.
	Mean *estimate.Estimate `json:"mean,omitempty"`
	// Efficiency is the primary metric against the baseline: 1 is the same, less
	// is a cost, whichever way the metric is better. Nil for NoEfficiency.
	Efficiency *estimate.Estimate `json:"efficiency,omitempty"`
	// NoEfficiency says why Efficiency is nil; "" for a baseline cell.
	NoEfficiency string `json:"no_efficiency,omitempty"`
	// EfficiencyByMetric has the primary metric, the latencies and the CPU costs.
	EfficiencyByMetric map[string]estimate.Estimate `json:"efficiency_by_metric,omitempty"`
	// LinkBound reports that the cell fills its link; LinkLimit is the goodput in
	// bit/s that the link can carry, nil where that is not known.
	LinkBound bool     `json:"link_bound,omitempty"`
	LinkLimit *float64 `json:"link_limit_bits_per_second,omitempty"`
	// CPUBound reports that the busiest core of an end was at least 95 % busy.
	CPUBound bool `json:"cpu_bound,omitempty"`
	// CoresAt is how many cores the rates of links would take, both ends
	// together, where the CPU time per byte was measured.
	CoresAt []Cores `json:"cores_at,omitempty"`
	// Attribution is where the CPU time goes; nil where no stacks were sampled.
	Attribution *Attribution `json:"attribution,omitempty"`
	// Ladder is what the cell costs more than its baseline, in steps; nil where no
	// step was measured.
	Ladder *Ladder `json:"ladder,omitempty"`
	// Node is what one node held for the cell, by the names of unit.NodeMetrics; nil
	// where it was not read.
	Node map[string]estimate.Estimate `json:"node,omitempty"`
	// Loss is the median share of packets lost; nil where it was not measured.
	Loss *estimate.Estimate `json:"loss,omitempty"`
	// Shape is what charts of the cell are drawn from.
	Shape Shape `json:"shape,omitzero"`
	// Blocks has what Absolute's medians are of, in the order of the blocks,
	// where Options.Blocks asks for it; else it is nil.
	Blocks map[string][]BlockValue `json:"-"`
	// Progress is the cell's way to its target half-width.
	Progress stopping.Progress `json:"progress"`
}

// Find finds the summary of a cell.
func Find(all []Cell, c result.Cell) (Cell, bool) {
	i, ok := slices.BinarySearchFunc(all, c, func(s Cell, c result.Cell) int { return s.Cell.Compare(c) })
	if !ok {
		return Cell{}, false
	}
	return all[i], true
}

func (s *Cell) keepBlocks(metric string, series []estimate.Point) {
	if s.Blocks == nil {
		s.Blocks = map[string][]BlockValue{}
	}
	for _, p := range series {
		s.Blocks[metric] = append(s.Blocks[metric], BlockValue{p.Block, p.Value})
	}
}
