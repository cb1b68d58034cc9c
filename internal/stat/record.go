package stat

import (
	"cmp"
	"math"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

// columns are what was measured of one cell, kept value by value: a campaign of
// 100,000 records has millions of values, and a map for each record would be
// most of the memory.
type columns struct {
	rows    []row
	metrics map[string]column
	probes  map[probeName]column
	read    map[string][]string // the names of probes, by end
}

// row is what a record has one of.
type row struct {
	id             string
	block, attempt int
	started        time.Time
	seconds        float64 // measured; NaN where that is not known
	histogram      *packed // nil: none
	client, server string  // machines; "" where they are not known
}

// column is a value of each row, NaN where it is absent. Rows after its end have
// none.
type column []float64

type probeName struct{ end, name string }

func newColumns() columns {
	return columns{metrics: map[string]column{}, probes: map[probeName]column{}, read: map[string][]string{}}
}

// add keeps what a sample measured, and nothing else of it.
func (c *columns) add(s *result.Sample) {
	i := len(c.rows)
	r := row{
		id: s.ID, block: s.Block, attempt: s.Attempt, started: s.Started, seconds: math.NaN(), histogram: pack(s.Histogram),
		client: s.Machines[result.ClientNode], server: s.Machines[result.ServerNode],
	}
	if s.MeasuredSeconds != nil {
		r.seconds = *s.MeasuredSeconds
	}
	if i > 0 { // mostly the same: then one string serves all
		r.client, r.server = same(r.client, c.rows[i-1].client), same(r.server, c.rows[i-1].server)
	}
	c.rows = append(c.rows, r)
	for name, v := range s.Metrics {
		c.metrics[name] = c.metrics[name].put(i, v)
	}
	for end, values := range s.Probes {
		for name, v := range values {
			key := probeName{end, name}
			old, known := c.probes[key]
			if !known {
				c.read[end] = append(c.read[end], name)
			}
			c.probes[key] = old.put(i, v)
		}
	}
}

func same(s, before string) string {
	if s == before {
		return before
	}
	return s
}

// put gives row i a value; the rows before it that have none get NaN.
func (c column) put(i int, v float64) column {
	for len(c) < i {
		c = append(c, math.NaN())
	}
	return append(c, v)
}

// at is the value of a row. One that is not a finite number is no value.
func (c column) at(i int) (float64, bool) {
	if i >= len(c) {
		return 0, false
	}
	v := c[i]
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

// probe is what a probe read at an end.
func (r record) probe(end, name string) (float64, bool) {
	return r.probes[probeName{end, name}].at(r.at)
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
