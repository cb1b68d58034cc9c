// Package estimate has the statistics that know no network: means and medians with their
// intervals, tests, and what several tests decide together. docs/statistics.md explains
// every formula with its source. It is pure.
package estimate

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
	// ModeratedMean: a GeometricMean whose spread is also that of like contrasts (Prior).
	ModeratedMean Method = "geometric mean, moderated t interval on the logs"
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

// Bound sets the interval and its confidence.
func (e *Estimate) Bound(low, high, confidence float64) {
	e.Low, e.High, e.Confidence = &low, &high, confidence
}
