package stat

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// dataset has the samples of a campaign, sorted by cell and block.
type dataset struct {
	opt    Options
	tables *tables
	cells  []*cellData // in the order of result.Cell.Compare
	byCell map[result.Cell]*cellData
	blocks []int // that have any measured sample, sorted
	// dependents are the cells that are compared with a baseline cell.
	dependents map[result.Cell][]*cellData
	better     map[string]unit.Better
	idle       idleRates
	draws      draws
	// implausible are cells whose answer cannot be true (see impossible).
	implausible map[result.Cell]bool
}

// cellData is what was recorded of one cell.
type cellData struct {
	cell    result.Cell
	meter   meter
	derived map[string]derivation
	// rates keeps costs and works by name, each of many derived metrics; NaN
	// where one is not known. They are of ok, not of rows.
	rates   map[string]column
	primary string
	columns
	ok          []record // one a block, by block
	failed      int
	recovered   int
	reasons     map[string]int
	unsupported string
	attempted   map[int]bool // blocks with a failed record
}

// point is a value in a block.
type point struct {
	block int
	value float64
}

// Collector takes the samples of a campaign one by one, so that they need not
// all be in memory at once.
type Collector struct{ c *dataset }

// NewCollector makes one that has no sample yet.
func NewCollector(opt Options) *Collector {
	opt = opt.withDefaults()
	return &Collector{&dataset{opt: opt, tables: newTables(opt.Confidence), byCell: map[result.Cell]*cellData{},
		dependents: map[result.Cell][]*cellData{}, better: betterSides(), draws: draws{byN: map[int][][]float64{}}}}
}

// Add takes a sample and keeps only its values.
func (k *Collector) Add(s *result.Sample) {
	c := k.c
	d := c.byCell[s.Cell]
	if d == nil {
		d = &cellData{cell: s.Cell, columns: newColumns(), reasons: map[string]int{}, attempted: map[int]bool{},
			meter: meter{oneMachine: c.opt.Environment.Testbed == "lab" || s.Cell.Placement == result.IntraHost}}
		c.byCell[s.Cell] = d
		c.cells = append(c.cells, d)
	}
	d.add(s)
}

// Analyse makes estimates of the samples. It never fails: what cannot be estimated is
// absent and has a reason. No sample may be added after.
func (k *Collector) Analyse() Analysis { return k.sorted().analyse() }

// collect makes the dataset of samples that are all in memory.
func collect(samples []result.Sample, opt Options) *dataset {
	k := NewCollector(opt)
	for i := range samples {
		k.Add(&samples[i])
	}
	return k.sorted()
}

// sorted puts cells and blocks in their order. Of a block with several measured
// attempts the last one counts.
func (k *Collector) sorted() *dataset {
	c := k.c
	slices.SortFunc(c.cells, func(a, b *cellData) int { return a.cell.Compare(b.cell) })
	seen := map[int]bool{}
	for _, d := range c.cells {
		d.order()
		for _, s := range d.ok {
			seen[s.block()] = true
		}
	}
	c.blocks = slices.Sorted(maps.Keys(seen))
	c.idle = newIdleRates(c.cells)
	byName := map[string]derivation{}
	for _, m := range derivations() {
		byName[m.Name] = m
	}
	for _, d := range c.cells {
		d.meter.idle, d.derived, d.rates = c.idle, byName, map[string]column{}
		d.primary = c.primaryOf(d)
		if b := c.baseline(d); b != nil {
			c.dependents[b.cell] = append(c.dependents[b.cell], d)
		}
	}
	return c
}

func (d *cellData) add(s *result.Sample) {
	switch s.Status {
	case result.StatusOK:
		d.columns.add(s)
	case result.StatusUnsupported:
		// With several reasons the first in the alphabet: any fixed choice.
		if d.unsupported == "" || s.Reason < d.unsupported {
			d.unsupported = cmp.Or(s.Reason, "no reason recorded")
		}
	default:
		d.failed++
		d.reasons[cmp.Or(s.Reason, "no reason recorded")]++
		d.attempted[s.Block] = true
	}
}

func (d *cellData) order() {
	d.ok = make([]record, len(d.rows))
	for i := range d.ok {
		d.ok[i] = record{d, i}
	}
	slices.SortFunc(d.ok, compareRecords)
	d.ok = slices.CompactFunc(d.ok, func(a, b record) bool { return a.block() == b.block() })
	for _, s := range d.ok {
		if d.attempted[s.block()] {
			d.recovered++
		}
	}
}

// sortedReasons lists the reasons of failure, the most frequent first.
func (d *cellData) sortedReasons() []Reason {
	var out []Reason
	for r, n := range d.reasons {
		out = append(out, Reason{r, n})
	}
	slices.SortFunc(out, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// baseline is the data of d's baseline cell; nil where d is one itself or
// where the campaign has none that was measured.
func (c *dataset) baseline(d *cellData) *cellData {
	if d.cell.IsBaseline() {
		return nil
	}
	return c.byCell[d.cell.Baseline()]
}

// primaryOf is the metric that the cell is judged by.
func (c *dataset) primaryOf(d *cellData) string {
	if name := c.opt.Primary(d.cell); name != "" {
		return name
	}
	for _, m := range unit.Metrics() {
		if m.Better == unit.Neither {
			continue
		}
		for _, s := range d.ok {
			if _, ok := measured(s, m.Name); ok {
				return m.Name
			}
		}
	}
	return ""
}

// measuredNames names every metric that any sample of the cell has, derived ones
// included.
func (d *cellData) measuredNames() []string {
	names := map[string]bool{}
	for name := range d.columns.metrics {
		names[name] = true
	}
	if d.probed() {
		for name := range d.derived {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// series is a metric by block; blocks without it are left out, never 0.
func (d *cellData) series(metric string) []point {
	from, isDerived := d.derived[metric]
	if isDerived && !d.probed() {
		return nil
	}
	out := make([]point, 0, len(d.ok))
	var derived column
	if isDerived {
		derived = d.derive(from)
	}
	for i, s := range d.ok {
		v, ok := measured(s, metric)
		if !ok && isDerived {
			v, ok = derived.at(i)
		}
		if ok {
			out = append(out, point{s.block(), v})
		}
	}
	return out
}

// probed reports whether any sample has a value of a probe.
func (d *cellData) probed() bool { return len(d.probes) > 0 }

func values(points []point) []float64 {
	out := make([]float64, len(points))
	for i, p := range points {
		out[i] = p.value
	}
	return out
}

// logRatios is log(a/b) in each block that has both, as goodness: turned round
// for a metric of which less is better, so that more is always better. Values
// that are not above zero have no logarithm and are left out.
func logRatios(a, b []point, better unit.Better) []point {
	return inBoth(a, b, func(x, y float64) (float64, bool) {
		if x > 0 && y > 0 {
			return goodness(math.Log(x/y), better), true
		}
		return 0, false
	})
}

// differencesOf is a − b in each block that has both.
func differencesOf(a, b []point) []point {
	return inBoth(a, b, func(x, y float64) (float64, bool) { return x - y, true })
}

// inBoth is what f makes of the values of each block that has both, where it
// makes something of them. Both series are in the order of their blocks.
func inBoth(a, b []point, f func(x, y float64) (float64, bool)) []point {
	out := make([]point, 0, min(len(a), len(b)))
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i].block < b[j].block:
			i++
		case a[i].block > b[j].block:
			j++
		default:
			if v, ok := f(a[i].value, b[j].value); ok {
				out = append(out, point{a[i].block, v})
			}
			i, j = i+1, j+1
		}
	}
	return out
}

// logs is the log of each value, as goodness.
func logs(points []point, better unit.Better) []point {
	out := make([]point, 0, len(points))
	for _, p := range points {
		if p.value > 0 {
			out = append(out, point{p.block, goodness(math.Log(p.value), better)})
		}
	}
	return out
}

func goodness(log float64, better unit.Better) float64 {
	if better == unit.Lower {
		return -log
	}
	return log
}

func betterSides() map[string]unit.Better {
	out := map[string]unit.Better{}
	for _, m := range append(unit.Metrics(), Derived()...) {
		out[m.Name] = m.Better
	}
	return out
}
