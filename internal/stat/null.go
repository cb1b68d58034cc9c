package stat

import (
	"math"

	"github.com/cnibench/cnibench/internal/result"
)

// NullPair is one cell under both names of the same network.
type NullPair struct {
	A result.Cell `json:"a"`
	B result.Cell `json:"b"`
	// Ratio is B against A, above 1 better; its truth is 1.
	Ratio Estimate `json:"ratio"`
	P     float64  `json:"p"`
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

// power is the share of campaigns that should see a difference of the size
// that is called detectable (Cohen 1988: 0.8).
const power = 0.8

// NullTest compares each cell with the one of the same network under its second
// name (result.SecondName). It is nil where no network is measured twice.
func NullTest(samples []result.Sample, opt Options) *NullResult {
	return collect(samples, opt).nullTest()
}

func (c *dataset) nullTest() *NullResult {
	out := NullResult{Confidence: c.opt.Confidence}
	found := false
	var ps []float64
	for _, d := range c.cells {
		second := d.cell
		second.Network = result.SecondName(second.Network)
		e := c.byCell[second]
		if e == nil {
			continue
		}
		found = true
		if p, ok := c.nullPair(d, e); ok {
			out.Pairs, ps = append(out.Pairs, p), append(ps, p.P)
		}
	}
	if !found {
		return nil
	}
	for i, adjusted := range holm(ps) {
		p := &out.Pairs[i]
		p.AfterHolm = adjusted < 1-out.Confidence
		out.False += count(p.Different)
		out.FalseAfterHolm += count(p.AfterHolm)
		if h, ok := p.Ratio.RelativeHalfwidth(); ok {
			out.NoiseFloor = math.Max(out.NoiseFloor, h)
		}
		out.Detectable = math.Max(out.Detectable, p.Detectable)
	}
	out.Expected = float64(len(out.Pairs)) * (1 - out.Confidence)
	return &out
}

func (c *dataset) nullPair(d, e *cellData) (NullPair, bool) {
	ratios := logRatios(e.series(d.primary), d.series(d.primary), c.better[d.primary])
	if len(ratios) == 0 {
		return NullPair{}, false
	}
	m := momentsOf(ratios)
	p := NullPair{A: d.cell, B: e.cell, Ratio: c.tables.geometricMean(ratios), P: pairedT(m)}
	p.Different = p.P < 1-c.opt.Confidence
	p.NoisePerBlock = math.Expm1(m.sd)
	if m.n >= 2 {
		p.Detectable = c.tables.detectable(m)
	}
	return p, true
}

// detectable is the smallest relative difference that n blocks of this spread
// show with the given power: (t(1−α/2) + t(power))·s/√n, with n−1 degrees of
// freedom, as a change of the ratio.
func (t *tables) detectable(m moments) float64 {
	sum := t.tQuantile(m.n-1) + tQuantile(float64(m.n-1), power)
	return math.Expm1(sum * m.sd / math.Sqrt(float64(m.n)))
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
