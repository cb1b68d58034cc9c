package stat

import (
	"math"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// NullPair is one cell under both names of the same network.
type NullPair struct {
	A result.Cell `json:"a"`
	B result.Cell `json:"b"`
	// Ratio is B against A, above 1 better; its truth is 1.
	Ratio estimate.Estimate `json:"ratio"`
	P     float64           `json:"p"`
	// Different: called different at the confidence, this pair alone; a false
	// alarm. AfterHolm: still so after the correction over all pairs.
	Different bool `json:"different"`
	AfterHolm bool `json:"after_holm"`
	// NoisePerBlock is the relative standard deviation of one block's ratio.
	NoisePerBlock float64 `json:"noise_per_block"`
	// Detectable is the smallest relative difference that this many blocks
	// would have shown in 4 of 5 campaigns; 0 where it cannot be said.
	Detectable float64 `json:"detectable,omitempty"`
}

// NullResult is what a campaign of the same network under two names says about
// the machine.
type NullResult struct {
	Confidence float64    `json:"confidence"`
	Pairs      []NullPair `json:"pairs"`
	// False is how many pairs were called different, Expected how many chance
	// alone is expected to, FalseAfterHolm how many remain after the correction.
	False          int     `json:"false"`
	Expected       float64 `json:"expected"`
	FalseAfterHolm int     `json:"false_after_holm"`
	// NoiseFloor is the largest half-width of a pair's ratio, relative:
	// differences below it are noise on this machine.
	NoiseFloor float64 `json:"noise_floor"`
	// Detectable is the largest of the pairs': what the whole campaign could
	// have seen in every cell, in 4 of 5 campaigns.
	Detectable float64 `json:"detectable"`
}

// nullTest compares each cell with the one of the same network under its second
// name (result.SecondName). It is nil where no network is measured twice.
func nullTest(c *dataset.Dataset) *NullResult {
	out := NullResult{Confidence: c.Options.Confidence}
	found := false
	var ps []float64
	for _, d := range c.Cells {
		second := d.Cell
		second.Network = result.SecondName(second.Network)
		e := c.ByCell[second]
		if e == nil {
			continue
		}
		found = true
		if p, ok := nullPair(c, d, e); ok {
			out.Pairs, ps = append(out.Pairs, p), append(ps, p.P)
		}
	}
	if !found {
		return nil
	}
	for i, adjusted := range estimate.Holm(ps) {
		p := &out.Pairs[i]
		p.AfterHolm = adjusted < 1-out.Confidence
		if p.Different {
			out.False++
		}
		if p.AfterHolm {
			out.FalseAfterHolm++
		}
		if h, ok := p.Ratio.RelativeHalfwidth(); ok {
			out.NoiseFloor = math.Max(out.NoiseFloor, h)
		}
		out.Detectable = math.Max(out.Detectable, p.Detectable)
	}
	out.Expected = float64(len(out.Pairs)) * (1 - out.Confidence)
	return &out
}

func nullPair(c *dataset.Dataset, d, e *dataset.CellData) (NullPair, bool) {
	ratios := estimate.LogRatios(e.Series(d.Primary), d.Series(d.Primary), c.Better[d.Primary])
	if len(ratios) == 0 {
		return NullPair{}, false
	}
	m := estimate.MomentsOf(ratios)
	p := NullPair{A: d.Cell, B: e.Cell, Ratio: c.Tables.GeometricMean(ratios), P: estimate.PairedT(m)}
	p.Different = p.P < 1-c.Options.Confidence
	p.NoisePerBlock = math.Expm1(m.SD)
	if m.N >= 2 {
		p.Detectable = c.Tables.Detectable(m)
	}
	return p, true
}
