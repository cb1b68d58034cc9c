// Package job predicts what parallel jobs take from the round trips of their network, by
// Hockney's model of messages. It is pure.
package job

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// Hockney is what messages cost on one network and path by Hockney's model: one of n
// bytes takes α + n/β from one end to the other (R. Hockney, The communication challenge
// for MPP: Intel Paragon and Meiko CS-2, Parallel Computing 20(3), 1994). The times are
// half of the mean round trips of tcp_rr, whose answers are as long as its requests.
//
// Each block that has all sizes gives one fit by least squares; a size weighs with the
// square of its reciprocal time, as noise is a share of the time. The intervals are those
// of the blocks' fits: they contain the noise between blocks, and not that times may not
// be a straight line. Residuals show that.
type Hockney struct {
	// Cell is what the sizes have in common: tcp_rr without message_bytes.
	Cell result.Cell `json:"cell"`
	// Alpha is α, seconds: what a message takes however short it is.
	Alpha estimate.Estimate `json:"alpha_seconds"`
	// PerByte is 1/β, seconds: what each byte adds.
	PerByte estimate.Estimate `json:"seconds_per_byte"`
	// Beta is β, bytes per second; nil where the interval of PerByte contains 0.
	Beta *estimate.Estimate `json:"beta_bytes_per_second,omitempty"`
	// Sizes are those that were measured, the smallest first.
	Sizes []HockneySize `json:"sizes"`
	// Misfit reports that the model is off by more than MisfitShare at some size.
	Misfit bool `json:"misfit,omitempty"`

	fits []lineFit
}

// HockneySize is one size in a fit.
type HockneySize struct {
	MessageBytes int `json:"message_bytes"`
	// Measured is the time of a message, seconds.
	Measured estimate.Estimate `json:"measured_seconds"`
	// OfModel is the time measured by that of the model: 1 is the same.
	OfModel estimate.Estimate `json:"of_model"`
	// HeldOut is the same of a model that was fitted without this size; nil where fewer
	// than three others are left.
	HeldOut *estimate.Estimate `json:"held_out_of_model,omitempty"`
	// Misfit reports that all of the interval of OfModel is off by more than MisfitShare.
	Misfit bool `json:"misfit,omitempty"`
}

const (
	// leastSizes is how many sizes show whether a line fits.
	leastSizes = 3
	// MisfitShare is how far a model may be off before that is reported.
	MisfitShare = 0.05
)

// lineFit is the model of one block.
type lineFit struct {
	block          int
	alpha, perByte float64
}

func (f lineFit) at(bytes float64) float64 { return f.alpha + f.perByte*bytes }

// timedSize is the time of messages of one size, by block.
type timedSize struct {
	bytes  int
	points []estimate.Point // seconds, one way
}

// Models are the models of all networks and paths whose round trips have at least three
// sizes.
func Models(c *dataset.Dataset) []Hockney {
	var order []result.Cell
	sizes := map[result.Cell][]timedSize{}
	for _, d := range c.Cells {
		of, ok := messageOf(d.Cell)
		if !ok || len(d.OK) == 0 {
			continue
		}
		var points []estimate.Point
		for _, p := range d.Series("latency_mean_seconds") {
			if p.Value > 0 {
				points = append(points, estimate.Point{Block: p.Block, Value: p.Value / 2})
			}
		}
		if len(points) == 0 {
			continue
		}
		if _, seen := sizes[of]; !seen {
			order = append(order, of)
		}
		sizes[of] = append(sizes[of], timedSize{d.Cell.MessageBytes, points})
	}
	var out []Hockney
	for _, of := range order {
		if h, ok := hockney(c, of, sizes[of]); ok {
			out = append(out, h)
		}
	}
	return out
}

// messageOf is a cell of single round trips without its size; ok is false for others.
func messageOf(c result.Cell) (of result.Cell, ok bool) {
	if c.Workload != "tcp_rr" || c.Streams > 1 || c.Burst > 1 || c.RatePerSecond > 0 || c.BackgroundStreams > 0 || c.ResponseBytes > 0 || c.MessageBytes <= 0 || c.IsPair() {
		return c, false
	}
	c.MessageBytes = 0
	return c, true
}

func hockney(c *dataset.Dataset, of result.Cell, sizes []timedSize) (Hockney, bool) {
	slices.SortFunc(sizes, func(a, b timedSize) int { return a.bytes - b.bytes })
	all := make([][]estimate.Point, len(sizes))
	for i, s := range sizes {
		all[i] = s.points
	}
	all = estimate.Common(all)
	if len(sizes) < leastSizes || len(all[0]) == 0 {
		return Hockney{}, false
	}
	for i := range sizes {
		sizes[i].points = all[i]
	}
	h := Hockney{Cell: of, fits: fitBlocks(sizes)}
	var alphas, perByte []estimate.Point
	for _, f := range h.fits {
		alphas, perByte = append(alphas, estimate.Point{Block: f.block, Value: f.alpha}), append(perByte, estimate.Point{Block: f.block, Value: f.perByte})
	}
	h.Alpha, h.PerByte = c.Tables.Mean(alphas), c.Tables.Mean(perByte)
	h.Beta = reciprocal(h.PerByte)
	for i, s := range sizes {
		size := HockneySize{MessageBytes: s.bytes, Measured: c.Tables.Mean(s.points), OfModel: ofModel(c, s, h.fits)}
		if low, high, ok := size.OfModel.Interval(); ok {
			size.Misfit = low > 1+MisfitShare || high < 1-MisfitShare
		}
		h.Misfit = h.Misfit || size.Misfit
		if len(sizes) > leastSizes {
			others := slices.Delete(slices.Clone(sizes), i, i+1)
			e := ofModel(c, s, fitBlocks(others))
			size.HeldOut = &e
		}
		h.Sizes = append(h.Sizes, size)
	}
	return h, true
}

// reciprocal is 1 by an estimate; nil where that is not above 0 with its whole interval.
func reciprocal(e estimate.Estimate) *estimate.Estimate {
	low, high, ok := e.Interval()
	if !(e.Value > 0) || ok && !(low > 0) {
		return nil
	}
	out := e
	out.Value = 1 / e.Value
	if ok {
		out.Bound(1/high, 1/low, e.Confidence)
	}
	return &out
}

// ofModel is a measured time by the model's, in the blocks of the model.
func ofModel(c *dataset.Dataset, s timedSize, fits []lineFit) estimate.Estimate {
	var logs []estimate.Point
	for i, f := range fits {
		if t := f.at(float64(s.bytes)); t > 0 {
			logs = append(logs, estimate.Point{Block: f.block, Value: math.Log(s.points[i].Value / t)})
		}
	}
	return c.Tables.GeometricMean(logs)
}

// fitBlocks fits each block: weighted least squares of the times over the sizes. All
// sizes have the same blocks, and at least two of them differ.
func fitBlocks(sizes []timedSize) []lineFit {
	weights := make([]float64, len(sizes))
	for i, s := range sizes {
		mean := estimate.MomentsOf(s.points).Mean
		weights[i] = 1 / (mean * mean)
	}
	fits := make([]lineFit, len(sizes[0].points))
	for b := range fits {
		var w, wx, wy float64
		for i, s := range sizes {
			w += weights[i]
			wx += weights[i] * float64(s.bytes)
			wy += weights[i] * s.points[b].Value
		}
		meanX, meanY := wx/w, wy/w
		var sxx, sxy float64
		for i, s := range sizes {
			dx := float64(s.bytes) - meanX
			sxx += weights[i] * dx * dx
			sxy += weights[i] * dx * (s.points[b].Value - meanY)
		}
		slope := sxy / sxx
		fits[b] = lineFit{block: sizes[0].points[b].Block, alpha: meanY - slope*meanX, perByte: slope}
	}
	return fits
}
