// Package stat turns the samples of a campaign into estimates, rankings,
// comparisons and warnings. It is pure: it reads no file and no clock, its
// only random numbers are seeded, and the order of the samples does not change
// its answers. docs/statistics.md explains every formula with its source.
package stat

import (
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// Options say how the samples are judged. The zero value is usable.
type Options struct {
	// Confidence of every interval and of every decision; 0 means 0.95.
	Confidence float64
	// TargetRelativeHalfwidth is the relative half-width at which a cell is
	// measured well enough; 0 means that the campaign names none.
	TargetRelativeHalfwidth float64
	// UntilRanked keeps a cell going when its target is met and its rank is open: see
	// Look.
	UntilRanked bool
	// MinBlocks and MaxBlocks bound the number of blocks; 0 means unbounded.
	MinBlocks, MaxBlocks int
	// LinkRate returns the rate of a link in bit/s where it is known; nil: none is.
	LinkRate func(link string) (bitsPerSecond float64, ok bool)
	// Primary names the metric that a cell is judged by. Where it is nil or
	// gives "", the first metric of unit.Metrics that the cell has and that has
	// a better side is taken.
	Primary func(result.Cell) string
	// Ladder gives the steps from the bare network up to one, the lowest first; nil:
	// no network has any.
	Ladder func(network string) []Step
	// Instructions gives how many a cell takes per packet or transaction, as counted
	// under emulation; nil, or not ok: that is not known.
	Instructions func(result.Cell) (perWork float64, ok bool)
	// Environment is where the samples were made. Its zero value is an unknown one.
	Environment result.Environment
	// Seed of the block bootstrap.
	Seed uint64
	// Blocks keeps the values of each block (CellSummary.Blocks).
	Blocks bool
}

func (o Options) withDefaults() Options {
	if !(o.Confidence > 0 && o.Confidence < 1) {
		o.Confidence = 0.95
	}
	if o.LinkRate == nil {
		o.LinkRate = func(string) (float64, bool) { return 0, false }
	}
	if o.Instructions == nil {
		o.Instructions = func(result.Cell) (float64, bool) { return 0, false }
	}
	if o.Ladder == nil {
		o.Ladder = func(string) []Step { return nil }
	}
	if o.Primary == nil {
		o.Primary = func(result.Cell) string { return "" }
	}
	return o
}

// Estimate is a value and how sure it is.
type Estimate struct {
	Value float64 `json:"value"`
	// Low and High bound Value. Both are nil when N is less than Needed.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// N is the number of blocks in it.
	N int `json:"n"`
	// Needed is the number of blocks that an interval takes, set where there
	// is none.
	Needed int `json:"needed,omitempty"`
	// Confidence of the interval. That of an order-statistic interval is its
	// actual one, which is at least the one asked for.
	Confidence float64 `json:"confidence,omitempty"`
	Method     Method  `json:"method"`
}

// Method is how an estimate came about.
type Method string

// The methods.
const (
	// GeometricMean: with a t interval on the logarithms.
	GeometricMean Method = "geometric mean, t interval on the logs"
	// ArithmeticMean: with a t interval.
	ArithmeticMean Method = "arithmetic mean, t interval"
	// Median: with an exact order-statistic interval.
	Median Method = "median, order-statistic interval"
	// MergedPercentile: of the merged histograms, with a block-bootstrap interval.
	MergedPercentile Method = "percentile of merged histograms, block bootstrap"
	// MeanOverSettings: of a ratio in several settings, each of which counts the
	// same.
	MeanOverSettings Method = "geometric mean over settings, t interval on the logs of blocks"
	// WelchRatio: of two geometric means of unpaired samples.
	WelchRatio Method = "ratio of geometric means, Welch t interval on the logs"
)

// Interval gives the bounds, if there are any.
func (e Estimate) Interval() (low, high float64, ok bool) {
	if e.Low == nil || e.High == nil {
		return 0, 0, false
	}
	return *e.Low, *e.High, true
}

// RelativeHalfwidth is half the interval's width as a share of the value.
func (e Estimate) RelativeHalfwidth() (float64, bool) {
	low, high, ok := e.Interval()
	if !ok || e.Value == 0 {
		return 0, false
	}
	return (high - low) / 2 / e.Value, true
}

// Reason is why samples failed, and how many.
type Reason struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// CellSummary is what the samples say about one cell.
type CellSummary struct {
	Cell result.Cell `json:"cell"`
	// Baseline is the cell that Efficiency compares with; nil for a baseline
	// cell itself and where the samples have none.
	Baseline *result.Cell `json:"baseline,omitempty"`
	// Primary is the metric that the cell is judged by; "" where nothing was measured.
	Primary string `json:"primary,omitempty"`
	// OK is the number of blocks measured. Failed is the number of failed
	// records, Recovered how many of them a retry made good; Reasons says why,
	// the most frequent first.
	OK        int      `json:"ok"`
	Failed    int      `json:"failed,omitempty"`
	Recovered int      `json:"recovered,omitempty"`
	Reasons   []Reason `json:"reasons,omitempty"`
	// Unsupported is why this testbed cannot build the cell; "" where it can.
	Unsupported string `json:"unsupported,omitempty"`
	// Absolute is the median over blocks of each metric, in base units, the
	// derived CPU costs (CPUPerByte …) included.
	Absolute map[string]Estimate `json:"absolute,omitempty"`
	// Latency has each latency percentile of the merged histograms by the name
	// of its metric. It is absent where no sample has a histogram.
	Latency map[string]Estimate `json:"latency,omitempty"`
	// Mean is the geometric mean over blocks of the primary metric.
	Mean *Estimate `json:"mean,omitempty"`
	// Efficiency is the primary metric against the baseline: 1 is the same, less
	// is a cost, whichever way the metric is better. Nil for NoEfficiency.
	Efficiency *Estimate `json:"efficiency,omitempty"`
	// NoEfficiency says why Efficiency is nil; "" for a baseline cell.
	NoEfficiency string `json:"no_efficiency,omitempty"`
	// EfficiencyByMetric has the primary metric, the latencies and the CPU costs.
	EfficiencyByMetric map[string]Estimate `json:"efficiency_by_metric,omitempty"`
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
	Node map[string]Estimate `json:"node,omitempty"`
	// Loss is the median share of packets lost; nil where it was not measured.
	Loss *Estimate `json:"loss,omitempty"`
	// Shape is what charts of the cell are drawn from.
	Shape Shape `json:"shape,omitzero"`
	// Blocks has what Absolute's medians are of, in the order of the blocks,
	// where Options.Blocks asks for it; else it is nil.
	Blocks map[string][]BlockValue `json:"-"`
	// Progress is the cell's way to its target half-width.
	Progress Progress `json:"progress"`
}

// Analysis is the result of analysing the samples of a campaign.
type Analysis struct {
	// Confidence of all intervals.
	Confidence float64 `json:"confidence"`
	// Cells in the order of result.Cell.Compare.
	Cells []CellSummary `json:"cells"`
	// Rankings, one for each set of cells that differ in the network alone.
	Rankings []Ranking `json:"rankings,omitempty"`
	// Goals is the headline: a ranking for each of bandwidth, latency and CPU cost
	// that was measured, on one path (between nodes if there is one) and with one
	// level of every factor but message size and streams; none in a null test.
	Goals []GoalRanking `json:"goals,omitempty"`
	// OtherPaths has the same for the paths, links, MTUs, workloads … that the
	// headline does not cover.
	OtherPaths []GoalRanking `json:"other_paths,omitempty"`
	// Factors compares the levels of what the campaign varies, where it measured no
	// more than one network.
	Factors []FactorRanking `json:"factors,omitempty"`
	// Meshes has each traffic between pairs of nodes. Rankings and Goals leave those
	// cells out.
	Meshes []Mesh `json:"meshes,omitempty"`
	// PolicySweeps has each set of cells that differ in the number of policies alone.
	PolicySweeps []PolicySweep `json:"policy_sweeps,omitempty"`
	// ProbeCost is what reading the probes took; nil where no sample has it.
	ProbeCost *ProbeCost `json:"probe_cost,omitempty"`
	// CrossChecks compare the native engine with published tools, where a
	// campaign has both with the same factors.
	CrossChecks []CrossCheck `json:"cross_checks,omitempty"`
	// RoundTrips has every cell that counts and times transactions.
	RoundTrips []RoundTripCheck `json:"round_trips,omitempty"`
	// Hockneys are models of what messages cost, where round trips of three sizes or more
	// were measured, and Jobs what they predict for workloads with many ends. cnibench
	// explain has them.
	Hockneys []Hockney       `json:"-"`
	Jobs     []JobPrediction `json:"-"`
	// Warnings, one for each code, in the order of their weight.
	Warnings []Warning `json:"warnings,omitempty"`
	// NullTest is what comparing networks with themselves says about the machine;
	// nil where none stands twice.
	NullTest *NullResult `json:"null_test,omitempty"`
}

// Cell finds the summary of a cell.
func (a Analysis) Cell(c result.Cell) (CellSummary, bool) {
	i, ok := slices.BinarySearchFunc(a.Cells, c, func(s CellSummary, c result.Cell) int { return s.Cell.Compare(c) })
	if !ok {
		return CellSummary{}, false
	}
	return a.Cells[i], true
}

// Analyse says what the samples mean. It never fails: what cannot be said is
// absent and has a reason.
func Analyse(samples []result.Sample, opt Options) Analysis {
	return collect(samples, opt).analyse()
}

func (c *dataset) analyse() Analysis {
	a := Analysis{Confidence: c.opt.Confidence}
	latencies := c.latencies()
	for i, d := range c.cells {
		a.Cells = append(a.Cells, c.summarise(d, latencies[i]))
	}
	c.believe(a)
	a.Rankings = c.rankings(a)
	a.Goals, a.OtherPaths = c.goals()
	a.Factors = c.factorRankings()
	a.Meshes = c.meshes(a.Cells)
	a.PolicySweeps, a.ProbeCost = c.policySweeps(), c.probeCost()
	a.CrossChecks, a.RoundTrips = c.crossChecks(), c.roundTripChecks()
	a.Hockneys = c.hockneys()
	a.Jobs = c.jobPredictions(a.Hockneys)
	a.Warnings = c.warnings(a, latencies)
	a.NullTest = c.nullTest()
	return a
}
