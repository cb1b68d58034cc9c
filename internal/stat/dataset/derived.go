package dataset

import (
	"math"

	"github.com/cnibench/cnibench/internal/unit"
)

// The derived metrics that others name: CPU time, both ends together, of user,
// system, irq and softirq, what the machine does while idle subtracted.
const (
	CPUPerByte        = "cpu_seconds_per_byte"
	CPUPerPacket      = "cpu_seconds_per_packet"
	CPUPerTransaction = "cpu_seconds_per_transaction"
)

// derivation is a cost divided by the work that it was for.
type derivation struct {
	unit.Metric
	cost cost
	work Work
}

// Work is what a cost is divided by, per second.
type Work struct {
	Name, label, unit string
	rate              func(reading) (float64, bool)
}

// reading gives a metric of a record, of the window that a cost was measured in.
type reading func(metric string) (float64, bool)

// besideProbes reads the window that the probes were read in.
func besideProbes(s Record) reading {
	return func(metric string) (float64, bool) { return atProbes(s, metric) }
}

// inSlices reads the sample's own window.
func inSlices(s Record) reading {
	return func(metric string) (float64, bool) { return Measured(s, metric) }
}

func works() []Work {
	return []Work{
		{"byte", "byte", "B", bytesPerSecond},
		{"packet", "packet", "packet", func(of reading) (float64, bool) { return of("packets_per_second") }},
		{"segment", "segment (bytes / MSS)", "segment", segmentsPerSecond},
		{"transaction", "transaction", "transaction", transactionsPerSecond},
	}
}

// derivations are all costs by all kinds of work.
func derivations() []derivation {
	var out []derivation
	for _, w := range works() {
		for _, c := range costs() {
			out = append(out, derivation{unit.Metric{
				Name: c.name + "_per_" + w.Name, Label: c.label + " per " + w.label, Unit: c.unit + "/" + w.unit, Better: unit.Lower,
			}, c, w})
		}
	}
	return out
}

// Derived lists the metrics that are computed from a sample's metrics and
// probes. They are in summary.Cell.Absolute, with the measured ones.
func Derived() []unit.Metric {
	var out []unit.Metric
	for _, d := range derivations() {
		out = append(out, d.Metric)
	}
	return out
}

// derive is a derived metric of each of the cell's records; it is not known
// where the cost or the work is not, or where nothing is left of the cost.
func (d *CellData) derive(m derivation) Column {
	name := "work " + m.work.Name
	if m.cost.sliced {
		name = "sliced " + name
	}
	works := d.rate(name, func(s Record) (float64, bool) { return m.cost.workOf(s, m.work) })
	costs := d.rate("cost "+m.cost.name, func(s Record) (float64, bool) { return m.cost.rate(s, d.Meter) })
	out := make(Column, len(d.OK))
	for i := range out {
		out[i] = math.NaN()
		if costs[i] > 0 && works[i] > 0 {
			out[i] = costs[i] / works[i]
		}
	}
	return out
}

// rate is a cost or a work of each record, computed once.
func (d *CellData) rate(name string, of func(Record) (float64, bool)) Column {
	if known, ok := d.rates[name]; ok {
		return known
	}
	out := make(Column, len(d.OK))
	for i, s := range d.OK {
		v, ok := of(s)
		if !ok {
			v = math.NaN()
		}
		out[i] = v
	}
	d.rates[name] = out
	return out
}

// bytesPerSecond is the payload received, of both ways where both are measured,
// and of background streams: what they cost is in the cost.
func bytesPerSecond(of reading) (float64, bool) {
	bits, ok := of("throughput_bits_per_second")
	if back, both := of("reverse_throughput_bits_per_second"); both {
		bits += back
	}
	if background, there := of("background_throughput_bits_per_second"); there {
		bits += background
	}
	return bits / 8, ok
}

// segmentsPerSecond is how many segments of the full size the bytes would fill:
// the packets of TCP are not counted, and offloads make larger ones of them.
func segmentsPerSecond(of reading) (float64, bool) {
	bytes, ok := bytesPerSecond(of)
	mss, known := of("tcp_mss_bytes")
	if !ok || !known || mss <= 0 {
		return 0, false
	}
	return bytes / mss, true
}

// transactionsPerSecond counts a request with its answer as one.
func transactionsPerSecond(of reading) (float64, bool) {
	if v, ok := of("transactions_per_second"); ok {
		return v, true
	}
	return of("requests_per_second")
}

// probeMax is the larger of both ends' values of a probe.
func probeMax(s Record, name string) (float64, bool) {
	var most float64
	var found bool
	for _, end := range Ends() {
		if v, ok := s.Probe(end, name); ok && (!found || v > most) {
			most, found = v, true
		}
	}
	return most, found
}
