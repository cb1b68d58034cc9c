// Package warning doubts the answers of a campaign: each check is a function that looks for
// one reason not to believe them, with the cure. It is pure.
package warning

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// Warning is a doubt about the numbers: one for each code, with all the cells
// that it is about.
type Warning struct {
	Code  Code          `json:"code"`
	Cells []result.Cell `json:"cells,omitempty"`
	// Message says what was seen, Cure what to do about it.
	Message string `json:"message"`
	Cure    string `json:"cure"`
}

// Code names a kind of warning.
type Code string

// The codes, the gravest first.
const (
	FailedSamples    Code = "failed_samples"
	Impossible       Code = "faster_than_baseline"
	HalvesDisagree   Code = "halves_disagree"
	OrderContradicts Code = "order_contradicts_instructions"
	SettingsChanged  Code = "settings_changed"
	SettingsDiffer   Code = "settings_differ"
	OneAfterAnother  Code = "one_after_another"
	PodsLimited      Code = "pods_limited"
	MTUDiffers       Code = "mtu_differs"
	NoBaseline       Code = "no_baseline"
	CPUSaturated     Code = "cpu_saturated"
	Steal            Code = "steal"
	NotIdle          Code = "not_idle"
	SpeedVaries      Code = "speed_varies"
	SenderReceiver   Code = "sender_receiver"
	Loss             Code = "loss"
	RoundTripRate    Code = "rr_rtt"
	TooFewBlocks     Code = "too_few_blocks"
	TargetNotReached Code = "target_not_reached"
	Drift            Code = "drift"
	Bimodal          Code = "bimodal"
	OutlierBlocks    Code = "outlier_blocks"
	BadHistogram     Code = "bad_histogram"
	NotPositive      Code = "not_positive"
)

// Answers are what a campaign's samples say, for checks to doubt.
type Answers struct {
	// Cells are in the order of the dataset's.
	Cells      []summary.Cell
	Rankings   []rank.Ranking
	RoundTrips []summary.RoundTripCheck
	// Unreadable is how many histograms of each cell could not be read.
	Unreadable []int
}

// All runs every check. A check gives at most one warning.
func All(c *dataset.Dataset, a Answers) []Warning {
	var out []Warning
	for _, check := range checks() {
		if w := check(c, a); w.Message != "" {
			w.Cells = dataset.SortedCells(w.Cells)
			out = append(out, w)
		}
	}
	return out
}

// checks are all checks, the gravest first. One that finds nothing gives a warning without a
// message.
func checks() []func(*dataset.Dataset, Answers) Warning {
	return []func(*dataset.Dataset, Answers) Warning{
		warnFailed, warnImpossible, warnHalves, warnOrder, warnChanged, warnSequence, warnLimits, warnSettings, warnMTU, warnBaseline,
		warnCPU, warnSteal, warnNotIdle, warnSpeed, warnSender, warnLoss, warnRoundTrips,
		warnFewBlocks, warnTarget, warnDrift, warnBimodal, warnOutliers,
		warnHistograms, warnNotPositive,
	}
}

// finding gathers the cells that a check is about, and the worst of them.
type finding struct {
	cells []result.Cell
	worst result.Cell
	by    float64 // how bad the worst is
	value float64 // the figure that the message quotes
}

func (f *finding) add(cell result.Cell, by, value float64) {
	if len(f.cells) == 0 || by > f.by {
		f.worst, f.by, f.value = cell, by, value
	}
	f.cells = append(f.cells, cell)
}

// named is a cell for a message: what distinguishes it from the others at a glance.
func named(c result.Cell) string {
	s := c.Network + " " + c.Traffic()
	if c.Link != "" && c.Link != result.UnshapedLink {
		s += " on " + c.Link
	}
	return s
}

// counted is "1 cell" or "3 cells".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
