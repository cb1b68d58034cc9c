package dataset

import (
	"cmp"
	"math"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/histogram"
)

// columns are what was measured of one cell, kept value by value: a campaign of
// 100,000 records has millions of values, and a map for each record would be
// most of the memory.
type columns struct {
	rows    []row
	metrics map[string]*Column
	// Probes are by end and name, plugins, in seconds, by CNI verb and name.
	Probes  map[string]map[string]*Column
	Plugins map[string]map[string]*Column
	beside  map[string]*Column // metrics of explaining windows
}

// row is what a record has one of.
type row struct {
	id             string
	block, attempt int
	started        time.Time
	seconds        float64           // measured; NaN where that is not known
	histogram      *histogram.Packed // nil: none
	window         *series32         // nil: none
	client, server string            // machines; "" where they are not known
	// explained reports that the probes are of an explaining window.
	explained bool
}

// Column is a value of each row, NaN where it is absent. Rows after its end have
// none.
type Column []float64

func newColumns() columns {
	return columns{metrics: map[string]*Column{}, Probes: map[string]map[string]*Column{}, Plugins: map[string]map[string]*Column{}, beside: map[string]*Column{}}
}

// add keeps what a sample measured, and nothing else of it.
func (c *columns) add(s *result.Sample) {
	i := len(c.rows)
	r := row{
		id: s.ID, block: s.Block, attempt: s.Attempt, started: s.Started, seconds: math.NaN(), histogram: histogram.Pack(s.Histogram), window: packSeries(s.Series),
		client: s.Machines[result.ClientNode], server: s.Machines[result.ServerNode],
	}
	if s.MeasuredSeconds != nil {
		r.seconds = *s.MeasuredSeconds
	}
	if s.Explaining != nil {
		r.explained = true
		put(c.beside, i, s.Explaining.Metrics)
	}
	if i > 0 { // mostly the same: then one string serves all
		r.client, r.server = same(r.client, c.rows[i-1].client), same(r.server, c.rows[i-1].server)
	}
	c.rows = append(c.rows, r)
	put(c.metrics, i, s.Metrics)
	putAll(c.Probes, i, s.Probes)
	putAll(c.Plugins, i, s.PluginSeconds)
}

func same(s, before string) string {
	if s == before {
		return before
	}
	return s
}

func putAll(columns map[string]map[string]*Column, i int, values map[string]map[string]float64) {
	for of, v := range values {
		if columns[of] == nil {
			columns[of] = map[string]*Column{}
		}
		put(columns[of], i, v)
	}
}

// put gives row i its values; the rows before it that have none get NaN.
func put(columns map[string]*Column, i int, values map[string]float64) {
	for name, v := range values {
		c := columns[name]
		if c == nil {
			c = new(Column)
			columns[name] = c
		}
		for len(*c) < i {
			*c = append(*c, math.NaN())
		}
		*c = append(*c, v)
	}
}

// At is the value of a row. One that is not a finite number is no value.
func (c *Column) At(i int) (float64, bool) {
	if c == nil || i >= len(*c) {
		return 0, false
	}
	v := (*c)[i]
	return v, !math.IsNaN(v) && !math.IsInf(v, 0)
}

// Record is a row of a cell's columns.
type Record struct {
	*CellData
	At int
}

func (r Record) row() *row { return &r.rows[r.At] }

// Block is the block that the record is of.
func (r Record) Block() int { return r.row().block }

// Measured is a metric of one record.
func Measured(r Record, metric string) (float64, bool) { return r.metrics[metric].At(r.At) }

// atProbes is a metric of the window that the probes were read in: the explaining
// one, or the measured one.
func atProbes(r Record, metric string) (float64, bool) {
	if r.row().explained {
		return r.beside[metric].At(r.At)
	}
	return Measured(r, metric)
}

// Probe is what a probe read at an end.
func (r Record) Probe(end, name string) (float64, bool) {
	return r.Probes[end][name].At(r.At)
}

// seconds is the length of the measured window.
func (r Record) seconds() (float64, bool) {
	s := r.row().seconds
	return s, !math.IsNaN(s)
}

// TakeHistogram is the record's histogram, which it lets go of; nil where it has none.
func (r Record) TakeHistogram() *histogram.Packed {
	h := r.row().histogram
	r.row().histogram = nil
	return h
}

// Window is the throughput in each interval of the measured window, in bit/s, and how many
// seconds an interval has; there are no values where none were recorded.
func (r Record) Window() (interval float64, values []float32) {
	if w := r.row().window; w != nil {
		return w.interval, w.values
	}
	return 0, nil
}

// machine is that of an end; "" where it is not known.
func (r Record) machine(end string) string {
	if end == result.ClientNode {
		return r.row().client
	}
	return r.row().server
}

// compareRecords orders a cell's records by block, those that count first.
func compareRecords(a, b Record) int {
	x, y := a.row(), b.row()
	return cmp.Or(cmp.Compare(x.block, y.block), cmp.Compare(y.attempt, x.attempt), y.started.Compare(x.started), cmp.Compare(x.id, y.id))
}

// series32 is a recorded series, kept small: charts need no more digits.
type series32 struct {
	interval float64 // seconds
	values   []float32
}

func packSeries(s *result.Series) *series32 {
	if s == nil || !(s.IntervalSeconds > 0) || len(s.ThroughputBitsPerSecond) == 0 {
		return nil
	}
	out := &series32{interval: s.IntervalSeconds, values: make([]float32, len(s.ThroughputBitsPerSecond))}
	for i, v := range s.ThroughputBitsPerSecond {
		out.values[i] = float32(v)
	}
	return out
}
