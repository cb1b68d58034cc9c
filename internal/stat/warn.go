package stat

import "github.com/cnibench/cnibench/internal/result"

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
	SettingsChanged  Code = "settings_changed"
	SettingsDiffer   Code = "settings_differ"
	MTUDiffers       Code = "mtu_differs"
	NoBaseline       Code = "no_baseline"
	CPUSaturated     Code = "cpu_saturated"
	Steal            Code = "steal"
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

func (c *campaign) warnings(a Analysis) []Warning { return nil }
