// Package stat turns the samples of a campaign into estimates, rankings,
// comparisons and warnings. It is pure: it reads no file and no clock, its
// only random numbers are seeded, and the order of the samples does not change
// its answers. docs/statistics.md explains every formula with its source.
package stat

import (
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/job"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/stat/warning"
)

// Analysis is the result of analysing the samples of a campaign.
type Analysis struct {
	// Confidence of all intervals.
	Confidence float64 `json:"confidence"`
	// Cells in the order of result.Cell.Compare.
	Cells []summary.Cell `json:"cells"`
	// Rankings, one for each set of cells that differ in the network alone.
	Rankings []rank.Ranking `json:"rankings,omitempty"`
	// Goals is the headline: a ranking for each of bandwidth, latency and CPU cost
	// that was measured, on one path (between nodes if there is one) and with one
	// level of every factor but message size and streams; none in a null test.
	Goals []rank.GoalRanking `json:"goals,omitempty"`
	// OtherPaths has the same for the paths, links, MTUs, workloads … that the
	// headline does not cover.
	OtherPaths []rank.GoalRanking `json:"other_paths,omitempty"`
	// Factors compares the levels of what the campaign varies, where it measured no
	// more than one network.
	Factors []rank.FactorRanking `json:"factors,omitempty"`
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
	RoundTrips []summary.RoundTripCheck `json:"round_trips,omitempty"`
	// Hockneys are models of what messages cost, where round trips of three sizes or more
	// were measured, and Jobs what they predict for workloads with many ends. cnibench
	// explain has them.
	Hockneys []job.Hockney    `json:"-"`
	Jobs     []job.Prediction `json:"-"`
	// Warnings, one for each code, in the order of their weight.
	Warnings []warning.Warning `json:"warnings,omitempty"`
	// NullTest is what comparing networks with themselves says about the machine;
	// nil where none occurs twice.
	NullTest *NullResult `json:"null_test,omitempty"`
}

// Cell finds the summary of a cell.
func (a Analysis) Cell(c result.Cell) (summary.Cell, bool) {
	return summary.Find(a.Cells, c)
}

// Warning finds the warning of a code.
func (a Analysis) Warning(code warning.Code) (warning.Warning, bool) {
	i := slices.IndexFunc(a.Warnings, func(w warning.Warning) bool { return w.Code == code })
	if i < 0 {
		return warning.Warning{}, false
	}
	return a.Warnings[i], true
}

// Analyse says what the samples mean. It never fails: what cannot be said is
// absent and has a reason.
func Analyse(samples []result.Sample, opt dataset.Options) Analysis {
	return analyse(dataset.Collect(samples, opt))
}

func analyse(c *dataset.Dataset) Analysis {
	cells, unreadable := summary.Cells(c)
	a := Analysis{Confidence: c.Options.Confidence, Cells: cells, Rankings: rank.Rankings(c), RoundTrips: summary.RoundTrips(c)}
	a.Goals, a.OtherPaths = rank.GoalRankings(c, summary.Impossible(cells))
	a.Factors = rank.FactorRankings(c)
	a.Meshes = meshes(c, a.Cells)
	a.PolicySweeps, a.ProbeCost = policySweeps(c), probeCost(c)
	a.CrossChecks = crossChecks(c)
	a.Hockneys = job.Models(c)
	a.Jobs = job.Predictions(c, a.Hockneys)
	a.Warnings = warning.All(c, warning.Answers{Cells: a.Cells, Rankings: a.Rankings, RoundTrips: a.RoundTrips, Unreadable: unreadable})
	a.NullTest = nullTest(c)
	return a
}
