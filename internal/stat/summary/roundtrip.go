package summary

import (
	"math"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// RoundTripCheck compares a closed loop with Little's law: transactions per
// second × their mean time is how many are under way at once.
type RoundTripCheck struct {
	Cell result.Cell `json:"cell"`
	// Product is rate × mean round trip ÷ the number under way; its truth is 1.
	Product estimate.Estimate `json:"product"`
	// OK reports that it is within RoundTripTolerance of 1.
	OK bool `json:"ok"`
}

// RoundTripTolerance is how far rate × round trip may lie from the number of
// transactions under way, relative.
const RoundTripTolerance = 0.05

// RoundTrips has every cell that counts and times transactions in a closed
// loop; an open one is not held back by its answers.
func RoundTrips(c *dataset.Dataset) []RoundTripCheck {
	var out []RoundTripCheck
	for _, d := range c.Cells {
		if d.Cell.RatePerSecond > 0 {
			continue
		}
		var products []estimate.Point
		for _, s := range d.OK {
			if v, ok := roundTripProduct(s); ok {
				products = append(products, estimate.Point{Block: s.Block(), Value: math.Log(v)})
			}
		}
		if len(products) == 0 {
			continue
		}
		e := c.Tables.GeometricMean(products)
		out = append(out, RoundTripCheck{Cell: d.Cell, Product: e, OK: math.Abs(e.Value-1) <= RoundTripTolerance})
	}
	return out
}

// roundTripProduct is that of one sample. One that lost transactions has none:
// those were under way and have no round trip.
func roundTripProduct(s dataset.Record) (float64, bool) {
	rate, ok := dataset.Measured(s, "transactions_per_second")
	mean, okMean := dataset.Measured(s, "latency_mean_seconds")
	lost, _ := dataset.Measured(s, "transactions_lost") // absent means none
	if !ok || !okMean || rate <= 0 || mean <= 0 || lost > 0 {
		return 0, false
	}
	underWay := max(s.Cell.Streams, 1) * max(s.Cell.Burst, 1)
	if s.Cell.Workload == "latency_under_load" {
		underWay = 1 // its streams are the load
	}
	return rate * mean / float64(underWay), true
}
