package report

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// FindMetric finds a measured or derived metric.
func FindMetric(name string) (unit.Metric, bool) {
	if m, ok := unit.FindMetric(name); ok {
		return m, true
	}
	for _, m := range slices.Concat(dataset.Derived(), unit.NodeMetrics()) {
		if m.Name == name {
			return m, true
		}
	}
	return unit.Metric{Name: name, Label: name}, false
}

// Metrics is every metric in the order in which reports show them.
func Metrics() []unit.Metric { return append(unit.Metrics(), dataset.Derived()...) }

// Halfwidth is half the width of e's interval, in e's unit; NaN without one.
func Halfwidth(e estimate.Estimate) float64 {
	low, high, ok := e.Interval()
	if !ok {
		return math.NaN()
	}
	return (high - low) / 2
}

// Ratio says an efficiency.
func Ratio(e estimate.Estimate) string { return unit.Percent(e.Value, Halfwidth(e)) }

// Apart tells a difference whose interval does not hold 0.
func Apart(e estimate.Estimate) bool {
	low, high, ok := e.Interval()
	return ok && (low > 0 || high < 0)
}
