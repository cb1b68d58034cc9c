package paper

import (
	"errors"
	"math"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// A claim is tested with records that are made up for it, on the cells of the campaign that
// measures it: some that reproduce it and some that contradict it. Its comparisons are
// inequalities between logarithms of values, or between values; each is met in turn
// until all are (cyclic projection, which converges where they can be met at all).

const (
	madeBlocks = 3
	madeSweeps = 2000
	madeSpread = 1e-3
	// inside is how far within its bounds a made-up value is put, as a share or in
	// logarithms; narrower bounds are halved.
	inside = 0.05
)

// invented are made-up values of cells, each in all blocks.
type invented struct {
	claim Claim
	known Known
	// at is the place of each variable in variables, and in values.
	at        map[variable]int
	variables []variable
	values    []float64
}

// term is one value of a comparison: above the line with weight 1, below with −1.
type term struct {
	at     int
	weight float64
}

// variable is one metric of one cell.
type variable struct {
	cell   result.Cell
	metric string
}

// selfTest says why no records reproduce a claim, or why none contradict it.
func selfTest(common Selector, claim Claim, cells []result.Cell, known Known) error {
	m := invent(claim, cells, known)
	r := resolve(m.results(), common, claim)
	for i := range r.comparisons {
		r.comparisons[i].terms = m.terms(r.comparisons[i])
	}
	if len(r.comparisons) == 0 {
		return errors.New("it compares nothing in the campaign")
	}
	if !m.shows(r, reproductions(r.comparisons, claim.Holds), true, Reproduced) {
		return errors.New("no records reproduce it: its pairs contradict each other, or its thresholds are beyond what can be measured")
	}
	if !m.shows(r, contradictions(r.comparisons, claim.Holds), false, Contradicted) {
		return errors.New("no records contradict it: its thresholds include all that can be measured")
	}
	return nil
}

// invent makes values that say nothing yet.
func invent(claim Claim, cells []result.Cell, known Known) *invented {
	m := &invented{claim: claim, known: known, at: map[variable]int{}}
	for _, c := range cells {
		metric := claim.Metric
		if metric == primaryMetric {
			metric = known.Primary(c)
		}
		v := variable{c, metric}
		m.at[v], m.variables = len(m.variables), append(m.variables, v)
		m.values = append(m.values, m.start(metric))
	}
	return m
}

// shows changes the values so that all comparisons of one of the sets hold, or none of
// them, and tells whether the claim's verdict is then the one that is expected.
func (m *invented) shows(r *resolver, sets [][]comparison, hold bool, want Outcome) bool {
	for _, some := range sets {
		for i, v := range m.variables {
			m.values[i] = m.start(v.metric)
		}
		if m.adjust(some, hold) && m.verdict(r) == want {
			return true
		}
	}
	return false
}

// verdict is that of records with the values; judge gives the same of such records.
func (m *invented) verdict(r *resolver) Outcome {
	j := decision{confidence: 0.95, enough: m.claim.Holds, lost: r.lost, uncounted: r.lost > 0}
	for _, c := range r.comparisons {
		c.moments = estimate.Moments{N: madeBlocks, Mean: m.value(c)}
		j.comparisons = append(j.comparisons, c)
	}
	return j.verdict(0)
}

// Known is what a self-test asks of the program.
type Known struct {
	// Names are those that a campaign may use.
	Names campaign.Known
	// LinkRate is a link's rate in bits per second, and Primary the metric that a cell
	// is judged by.
	LinkRate func(link string) (float64, bool)
	Primary  func(result.Cell) string
}

// start is a value that leaves room above and below, and from which the differences
// that the claim speaks of can be had.
func (m *invented) start(metric string) float64 {
	v := 1e7
	if metric == "loss_ratio" {
		v = 0.1
	}
	if m.claim.Relation != "difference_within" {
		return v
	}
	most := 0.0
	for _, end := range m.claim.Range {
		if end != nil {
			most = max(most, math.Abs(*end))
		}
	}
	if most == 0 {
		return v
	}
	return 1.1 * most
}

// reproductions are the sets of comparisons that would reproduce a claim if all of a set
// held.
func reproductions(all []comparison, holds string) [][]comparison {
	out := [][]comparison{all}
	switch holds {
	case holdsAny:
		for i := range all {
			out = append(out, all[i:i+1])
		}
	case holdsMost:
		out = append(out, all[:len(all)/2+1])
	}
	return out
}

// contradictions are the sets of comparisons that would contradict a claim if none of a
// set held.
func contradictions(all []comparison, holds string) [][]comparison {
	switch holds {
	case holdsAny:
		return [][]comparison{all}
	case holdsMost:
		half := (len(all) + 1) / 2
		return [][]comparison{all[:half], all[len(all)-half:]}
	}
	var out [][]comparison
	for i := range all {
		out = append(out, all[i:i+1])
	}
	return out
}

// results are those of records with the values.
func (m *invented) results() *Results {
	k := stat.NewCollector(dataset.Options{LinkRate: m.known.LinkRate, Primary: m.known.Primary})
	seconds := 1.0
	for block := range madeBlocks {
		for i, v := range m.variables {
			value := m.inBlock(i, block)
			sample := result.Sample{Schema: 1, ID: "made-up", Block: block + 1, Attempt: 1, Cell: v.cell, Status: result.StatusOK,
				MeasuredSeconds: &seconds, Metrics: map[string]float64{v.metric: value},
				// Derived metrics are looked for only where a probe was read, and those of
				// nodes in what the probes read.
				Probes: map[string]map[string]float64{result.ClientNode: {v.metric: value}, result.ServerNode: {v.metric: value}}}
			k.Add(&sample)
		}
	}
	return &Results{Known: m.known.Names, Analysis: k.Analyse(), Collector: k}
}

// inBlock is a value in a block: the same in all, or, where spreads are compared, one that
// varies by as much as the value says.
func (m *invented) inBlock(i, block int) float64 {
	if m.claim.Relation != variesMore {
		return m.values[i]
	}
	start := m.start(m.variables[i].metric)
	return start * math.Exp(madeSpread*m.values[i]/start*float64(block%2))
}

// adjust changes the values until each comparison holds, or none does; false where they
// cannot be, or would be such as cannot be measured.
func (m *invented) adjust(comparisons []comparison, hold bool) bool {
	for range madeSweeps {
		moved := false
		for _, c := range comparisons {
			low, high := c.target(hold != c.not, m.start(c.metric))
			moved = m.project(c, low, high) || moved
		}
		if !moved {
			return m.measurable()
		}
	}
	return false
}

// target is where the value of a comparison must be, in logarithms where it is a ratio;
// scale is the size of the values.
func (c comparison) target(hold bool, scale float64) (low, high float64) {
	b := c.bounds
	switch {
	case hold && b.unless:
		low, high = b.failLow, b.failHigh
	case hold:
		low, high = b.holdLow, b.holdHigh
	case b.failLow > 0 || c.arithmetic && !math.IsInf(b.failLow, -1):
		low, high = math.Inf(-1), b.failLow
	default:
		low, high = b.failHigh, math.Inf(1)
	}
	if !c.arithmetic {
		low, high = math.Log(max(low, 0)), math.Log(high)
	}
	if c.limit > 0 {
		high = min(high, 0) // a link carries no more than it can
	}
	gap := inside
	if c.arithmetic {
		gap = inside * max(math.Abs(finite(low)), math.Abs(finite(high)), scale)
		if len(c.under) == 0 && c.right == (result.Cell{}) {
			low = max(low, 0) // a value is not below zero
		}
	}
	gap = min(gap, (high-low)/2)
	return low + gap, high - gap
}

func finite(v float64) float64 {
	if math.IsInf(v, 0) {
		return 0
	}
	return v
}

// terms are the values of a comparison.
func (m *invented) terms(c comparison) []term {
	var out []term
	for _, cell := range c.over {
		out = append(out, term{m.at[variable{cell, c.metric}], 1})
	}
	for _, cell := range c.under {
		out = append(out, term{m.at[variable{cell, c.metric}], -1})
	}
	return out
}

// value is that of a comparison, in logarithms where it is a ratio.
func (m *invented) value(c comparison) float64 {
	sum := 0.0
	if c.limit > 0 {
		sum = -math.Log(c.limit)
	}
	for _, t := range c.terms {
		if c.arithmetic {
			sum += t.weight * m.values[t.at]
		} else {
			sum += t.weight * math.Log(m.values[t.at])
		}
	}
	return sum
}

// project moves the values of a comparison by as little as brings it between two bounds,
// and tells whether it had to.
func (m *invented) project(c comparison, low, high float64) bool {
	const tolerance = 1e-9
	sum, move := m.value(c), 0.0
	size := 1.0 // of logarithms
	if c.arithmetic {
		size = m.start(c.metric)
	}
	slack := tolerance * max(size, math.Abs(sum))
	switch {
	case sum < low-slack:
		move = low - sum
	case sum > high+slack:
		move = high - sum
	}
	if move == 0 || len(c.terms) == 0 {
		return false
	}
	step := move / float64(len(c.terms))
	for _, t := range c.terms {
		if c.arithmetic {
			m.values[t.at] += step * t.weight
		} else {
			m.values[t.at] *= math.Exp(step * t.weight)
		}
	}
	return true
}

// measurable tells whether all values are such as a measurement can give. Differences
// stay what they are when all values are moved until the least is little above zero.
func (m *invented) measurable() bool {
	least := math.Inf(1)
	for i, v := range m.variables {
		least = min(least, m.values[i]-0.01*m.start(v.metric))
	}
	if m.claim.Relation == "difference_within" || m.claim.Measure == differenceMeasure && least < 0 {
		for i := range m.values {
			m.values[i] -= least
		}
	}
	for i, v := range m.variables {
		value := m.values[i]
		rate, isShaped := m.known.LinkRate(v.cell.Link)
		if math.IsNaN(value) || value < 0 || v.metric == "loss_ratio" && value > 1 ||
			isShaped && v.metric == "throughput_bits_per_second" && v.cell.Placement == result.InterHost && value > rate {
			return false
		}
	}
	return true
}

// selfTests refuses claims that no records can reproduce or contradict.
func (c *checker) selfTests(common Selector, claims []Claim, cells func(i int) []result.Cell, known Known) {
	for i, claim := range claims {
		of := cells(i)
		if claim.NotYet != "" || len(of) == 0 {
			continue
		}
		if err := selfTest(common, claim, of, known); err != nil {
			c.fail(at("claims", i), "change its thresholds or cells", "%v", err)
		}
	}
}
