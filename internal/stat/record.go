package stat

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
	metrics map[string]*column
	probes  map[string]map[string]*column // by end and name
	plugins map[string]map[string]*column // seconds, by CNI verb and name
	beside  map[string]*column            // metrics of explaining windows
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
	// slices is the coefficient of variation of its slices; NaN where it has none.
	slices float64
}

// column is a value of each row, NaN where it is absent. Rows after its end have
// none.
type column []float64

func newColumns() columns {
	return columns{metrics: map[string]*column{}, probes: map[string]map[string]*column{}, plugins: map[string]map[string]*column{}, beside: map[string]*column{}}
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
	r.slices = variationOf(s.Slices)
	if s.Explaining != nil {
		r.explained = true
		put(c.beside, i, s.Explaining.Metrics)
	}
	if i > 0 { // mostly the same: then one string serves all
		r.client, r.server = same(r.client, c.rows[i-1].client), same(r.server, c.rows[i-1].server)
	}
	c.rows = append(c.rows, r)
	put(c.metrics, i, s.Metrics)
	putAll(c.probes, i, s.Probes)
	putAll(c.plugins, i, s.PluginSeconds)
}

func same(s, before string) string {
	if s == before {
		return before
	}
	return s
}

func putAll(columns map[string]map[string]*column, i int, values map[string]map[string]float64) {
	for of, v := range values {
		if columns[of] == nil {
			columns[of] = map[string]*column{}
		}
		put(columns[of], i, v)
	}
}

// put gives row i its values; the rows before it that have none get NaN.
func put(columns map[string]*column, i int, values map[string]float64) {
	for name, v := range values {
		c := columns[name]
		if c == nil {
			c = new(column)
			columns[name] = c
		}
		for len(*c) < i {
			*c = append(*c, math.NaN())
		}
		*c = append(*c, v)
	}
}

// at is the value of a row. One that is not a finite number is no value.
func (c *column) at(i int) (float64, bool) {
	if c == nil || i >= len(*c) {
		return 0, false
	}
	v := (*c)[i]
	return v, !math.IsNaN(v) && !math.IsInf(v, 0)
}

// record is a row of a cell's columns.
type record struct {
	*cellData
	at int
}

func (r record) row() *row { return &r.rows[r.at] }

func (r record) block() int { return r.row().block }

// measured is a metric of one record.
func measured(r record, metric string) (float64, bool) { return r.metrics[metric].at(r.at) }

// atProbes is a metric of the window that the probes were read in: the explaining
// one, or the measured one.
func atProbes(r record, metric string) (float64, bool) {
	if r.row().explained {
		return r.beside[metric].at(r.at)
	}
	return measured(r, metric)
}

// variationOf is the coefficient of variation of a sample's slices; NaN where it has
// fewer than two.
func variationOf(s *result.Slices) float64 {
	if s == nil || len(s.PerSecond) < 2 {
		return math.NaN()
	}
	var mean, ss float64
	for i, v := range s.PerSecond {
		d := v - mean
		mean += d / float64(i+1)
		ss += d * (v - mean)
	}
	if mean <= 0 {
		return math.NaN()
	}
	return math.Sqrt(ss/float64(len(s.PerSecond)-1)) / mean
}

// probe is what a probe read at an end.
func (r record) probe(end, name string) (float64, bool) {
	return r.probes[end][name].at(r.at)
}

// seconds is the length of the measured window.
func (r record) seconds() (float64, bool) {
	s := r.row().seconds
	return s, !math.IsNaN(s)
}

// machine is that of an end; "" where it is not known.
func (r record) machine(end string) string {
	if end == result.ClientNode {
		return r.row().client
	}
	return r.row().server
}

// compareRecords orders a cell's records by block, those that count first.
func compareRecords(a, b record) int {
	x, y := a.row(), b.row()
	return cmp.Or(cmp.Compare(x.block, y.block), cmp.Compare(y.attempt, x.attempt), y.started.Compare(x.started), cmp.Compare(x.id, y.id))
}
