package dataset

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// Charged are the components that the traffic is charged with.
func Charged() []string {
	var names []string
	for _, c := range unit.Components() {
		if c.Charged {
			names = append(names, c.Name)
		}
	}
	return names
}

// AttributedWork is the unit of work that a cell's time is divided by: the first of these that it has.
func (d *CellData) AttributedWork() (Work, bool) {
	for _, name := range []string{"transaction", "packet", "byte"} {
		for _, w := range works() {
			if w.Name != name {
				continue
			}
			for _, s := range d.OK {
				if rate, ok := w.rate(besideProbes(s)); ok && rate > 0 {
					return w, true
				}
			}
		}
	}
	return Work{}, false
}

// PerWork is the time of some components per unit of work, in each block that
// has both. What the machine does while idle is subtracted: a component of which
// that leaves nothing may come out below zero by chance, and then counts so.
func (d *CellData) PerWork(components []string, w Work) []estimate.Point {
	var values []string
	for _, name := range components {
		values = append(values, unit.ComponentSeconds(name))
	}
	var out []estimate.Point
	for _, s := range d.OK {
		seconds, measured := d.Meter.Machines(s, values)
		rate, ok := w.rate(besideProbes(s))
		if measured && ok && rate > 0 {
			out = append(out, estimate.Point{Block: s.Block(), Value: seconds / rate})
		}
	}
	return out
}

// Elsewhere is the mean share of busy time that was other programs'.
func (d *CellData) Elsewhere() *float64 {
	raw := Meter{oneMachine: d.Meter.oneMachine} // as it was, nothing subtracted
	var all []string
	for _, name := range append(Charged(), unit.ElsewhereComponent) {
		all = append(all, unit.ComponentSeconds(name))
	}
	var sum float64
	n := 0
	for _, s := range d.OK {
		others, known := raw.Machines(s, []string{unit.ComponentSeconds(unit.ElsewhereComponent)})
		busy, ok := raw.Machines(s, all)
		if known && ok && busy > 0 {
			sum += others / busy
			n++
		}
	}
	if n == 0 {
		return nil
	}
	share := sum / float64(n)
	return &share
}

// SeriesOf is a metric by block; that of a probe is of both ends' machines, per
// second, less what they do while idle.
func (c *Dataset) SeriesOf(cell result.Cell, metric string) []estimate.Point {
	d := c.ByCell[cell]
	if d == nil {
		return nil
	}
	if out := d.Series(metric); len(out) > 0 {
		return out
	}
	for _, w := range works() {
		if component, ok := strings.CutSuffix(metric, "_component_seconds_per_"+w.Name); ok {
			return d.PerWork([]string{component}, w)
		}
	}
	if slices.ContainsFunc(unit.NodeMetrics(), func(m unit.Metric) bool { return m.Name == metric }) {
		return d.nodeSeries(metric)
	}
	var out []estimate.Point
	for _, s := range d.OK {
		if v, ok := d.Meter.Machines(s, []string{metric}); ok {
			out = append(out, estimate.Point{Block: s.Block(), Value: v})
		}
	}
	return out
}

// nodeSeries is what a node held, by block: the mean of both ends' nodes, in samples
// that have both.
func (d *CellData) nodeSeries(metric string) []estimate.Point {
	var out []estimate.Point
	for _, s := range d.OK {
		client, okClient := s.Probe(result.ClientNode, metric)
		server, okServer := s.Probe(result.ServerNode, metric)
		if okClient && okServer {
			out = append(out, estimate.Point{Block: s.Block(), Value: (client + server) / 2})
		}
	}
	return out
}

// CostPerWork is a cost of both ends per unit of work, in each block that has both.
func (d *CellData) CostPerWork(cost string, w Work) []estimate.Point {
	var out []estimate.Point
	for _, known := range costs() {
		if known.name != cost {
			continue
		}
		for _, s := range d.OK {
			v, measured := known.rate(s, d.Meter)
			rate, ok := known.workOf(s, w)
			if measured && ok && rate > 0 {
				out = append(out, estimate.Point{Block: s.Block(), Value: v / rate})
			}
		}
	}
	return out
}
