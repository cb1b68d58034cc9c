// Package dataset has the records of a campaign as cells with blocks: what was measured of
// a cell by block, what that cost, and how much of it its link can carry. It is pure.
package dataset

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// Dataset has the samples of a campaign, sorted by cell and block. The samples
// are added first, then it is sorted; all its fields are then to be read.
type Dataset struct {
	// Options say how the samples are judged, without zero values.
	Options Options
	// Tables are those of the options' confidence.
	Tables *estimate.Tables
	// Cells are in the order of result.Cell.Compare.
	Cells []*CellData
	// ByCell has the same by cell.
	ByCell map[result.Cell]*CellData
	// Blocks are those that have any measured sample, in order.
	Blocks []int
	// Dependents are the cells that are compared with a baseline cell.
	Dependents map[result.Cell][]*CellData
	// Better has the better side of each metric.
	Better map[string]unit.Better
	// Idle is what machines do while nothing is measured.
	Idle IdleRates
	// Speeds are those of the machines' processors.
	Speeds Speeds
}

// CellData is what was recorded of one cell.
type CellData struct {
	Cell result.Cell
	// Meter reads costs off its records.
	Meter   Meter
	derived map[string]derivation
	// rates keeps costs and works by name, each of many derived metrics; NaN
	// where one is not known. They are of ok, not of rows.
	rates map[string]Column
	// Primary is the metric that the cell is judged by; "" where nothing was measured.
	Primary string
	columns
	// OK has one measured record for each block, by block.
	OK []Record
	// Failed is the number of failed records, recovered that of blocks which a retry
	// made good, reasons how often each reason of failure occurred.
	Failed    int
	Recovered int
	Reasons   map[string]int
	// Unsupported is why this testbed cannot build the cell; "" where it can.
	Unsupported string
	attempted   map[int]bool // blocks with a failed record
}

// New makes one that has no sample yet.
func New(opt Options) *Dataset {
	opt = opt.withDefaults()
	return &Dataset{Options: opt, Tables: estimate.NewTables(opt.Confidence), ByCell: map[result.Cell]*CellData{},
		Dependents: map[result.Cell][]*CellData{}, Better: betterSides()}
}

// Add takes a sample and keeps only its values.
func (c *Dataset) Add(s *result.Sample) {
	d := c.ByCell[s.Cell]
	if d == nil {
		d = &CellData{Cell: s.Cell, columns: newColumns(), Reasons: map[string]int{}, attempted: map[int]bool{},
			Meter: Meter{oneMachine: c.Options.Environment.Testbed == "lab" || s.Cell.Placement == result.IntraHost}}
		c.ByCell[s.Cell] = d
		c.Cells = append(c.Cells, d)
	}
	d.add(s)
}

// Collect makes the dataset of samples that are all in memory.
func Collect(samples []result.Sample, opt Options) *Dataset {
	c := New(opt)
	for i := range samples {
		c.Add(&samples[i])
	}
	c.Sort()
	return c
}

// Sort puts cells and blocks in their order, after the last sample. Of a block with
// several measured attempts the last one counts.
func (c *Dataset) Sort() {
	slices.SortFunc(c.Cells, func(a, b *CellData) int { return a.Cell.Compare(b.Cell) })
	seen := map[int]bool{}
	for _, d := range c.Cells {
		d.order()
		for _, s := range d.OK {
			seen[s.Block()] = true
		}
	}
	c.Blocks = slices.Sorted(maps.Keys(seen))
	c.Idle, c.Speeds = newIdleRates(c.Cells), newSpeeds(c.Cells)
	byName := map[string]derivation{}
	for _, m := range derivations() {
		byName[m.Name] = m
	}
	for _, d := range c.Cells {
		d.Meter.idle, d.derived, d.rates = c.Idle, byName, map[string]Column{}
		d.Primary = c.primaryOf(d)
		if b := c.Baseline(d); b != nil {
			c.Dependents[b.Cell] = append(c.Dependents[b.Cell], d)
		}
	}
}

func (d *CellData) add(s *result.Sample) {
	switch s.Status {
	case result.StatusOK:
		d.columns.add(s)
	case result.StatusUnsupported:
		// With several reasons the first in the alphabet: any fixed choice.
		if d.Unsupported == "" || s.Reason < d.Unsupported {
			d.Unsupported = cmp.Or(s.Reason, "no reason recorded")
		}
	default:
		d.Failed++
		d.Reasons[cmp.Or(s.Reason, "no reason recorded")]++
		d.attempted[s.Block] = true
	}
}

func (d *CellData) order() {
	d.OK = make([]Record, len(d.rows))
	for i := range d.OK {
		d.OK[i] = Record{d, i}
	}
	slices.SortFunc(d.OK, compareRecords)
	d.OK = slices.CompactFunc(d.OK, func(a, b Record) bool { return a.Block() == b.Block() })
	for _, s := range d.OK {
		if d.attempted[s.Block()] {
			d.Recovered++
		}
	}
}

// SortedReasons lists the reasons of failure, the most frequent first.
func (d *CellData) SortedReasons() []Reason {
	var out []Reason
	for r, n := range d.Reasons {
		out = append(out, Reason{r, n})
	}
	slices.SortFunc(out, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// Baseline is the data of d's baseline cell; nil where d is one itself or
// where the campaign has none that was measured.
func (c *Dataset) Baseline(d *CellData) *CellData {
	if d.Cell.IsBaseline() {
		return nil
	}
	return c.ByCell[d.Cell.Baseline()]
}

// primaryOf is the metric that the cell is judged by.
func (c *Dataset) primaryOf(d *CellData) string {
	if name := c.Options.Primary(d.Cell); name != "" {
		return name
	}
	for _, m := range unit.Metrics() {
		if m.Better == unit.Neither {
			continue
		}
		for _, s := range d.OK {
			if _, ok := Measured(s, m.Name); ok {
				return m.Name
			}
		}
	}
	return ""
}

// MeasuredNames names every metric that any sample of the cell has, derived ones
// included.
func (d *CellData) MeasuredNames() []string {
	names := map[string]bool{}
	for name := range d.columns.metrics {
		names[name] = true
	}
	if d.costed() {
		for name := range d.derived {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Series is a metric by block; blocks without it are left out, never 0.
func (d *CellData) Series(metric string) []estimate.Point {
	from, isDerived := d.derived[metric]
	if isDerived && !d.costed() {
		return nil
	}
	out := make([]estimate.Point, 0, len(d.OK))
	var derived Column
	if isDerived {
		derived = d.derive(from)
	}
	for i, s := range d.OK {
		v, ok := Measured(s, metric)
		if !ok && isDerived {
			v, ok = derived.At(i)
		}
		if ok {
			out = append(out, estimate.Point{Block: s.Block(), Value: v})
		}
	}
	return out
}

// costed reports whether any sample has what a cost is read from: a value of a probe, or the
// CPU time of its slices.
func (d *CellData) costed() bool {
	_, sliced := d.columns.metrics["client_cpu_seconds"]
	return sliced || len(d.Probes) > 0
}

func betterSides() map[string]unit.Better {
	out := map[string]unit.Better{}
	for _, m := range append(unit.Metrics(), Derived()...) {
		out[m.Name] = m.Better
	}
	return out
}

// Reason is why samples failed, and how many.
type Reason struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}
