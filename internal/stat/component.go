package stat

import (
	"math"

	"github.com/cnibench/cnibench/internal/unit"
)

// Component is what a part of the kernel, or user space, costs a cell.
type Component struct {
	// Name is one of unit.Components.
	Name string `json:"name"`
	// Seconds is its CPU time per unit of work, both ends together.
	Seconds Estimate `json:"seconds"`
	// Share is its share of Attribution.Total's value; nil where that, or its interval,
	// is not above zero: idle time is subtracted, and a noisy machine may leave nothing.
	Share *float64 `json:"share,omitempty"`
	// More is Seconds less that of the baseline, in blocks that have both; nil
	// for a baseline, and where there is none.
	More *Estimate `json:"more,omitempty"`
}

// Attribution is where a cell's CPU time goes, by sampled stacks. It is of means
// over blocks: only those add up.
type Attribution struct {
	// Work is what the time is per: "transaction", "packet" or "byte".
	Work string `json:"work"`
	// Total is all of the traffic's CPU time per unit of work, More what it is
	// more than the baseline's.
	Total Estimate  `json:"total"`
	More  *Estimate `json:"more,omitempty"`
	// Components add up to Total, in the order of unit.Components.
	Components []Component `json:"components"`
	// ElsewhereShare is the share of the machines' busy time that other programs
	// had: it is in no component. Nil where it is not known.
	ElsewhereShare *float64 `json:"elsewhere_share,omitempty"`
}

// Component finds a component's cost.
func (a Attribution) Component(name string) (Component, bool) {
	for _, c := range a.Components {
		if c.Name == name {
			return c, true
		}
	}
	return Component{}, false
}

// charged are the components that the traffic is charged with.
func charged() []string {
	var names []string
	for _, c := range unit.Components() {
		if c.Charged {
			names = append(names, c.Name)
		}
	}
	return names
}

// attribution says where a cell's time goes; nil where no stacks were sampled,
// or no work was counted.
func (c *dataset) attribution(d *cellData) *Attribution {
	work, ok := d.attributedWork()
	if !ok {
		return nil
	}
	names := charged()
	own := d.perWork(names, work)
	if len(own) == 0 {
		return nil
	}
	var base []point
	b := c.baseline(d)
	if b != nil {
		base = b.perWork(names, work)
	}
	a := &Attribution{Work: work.name, Total: c.tables.mean(own), More: c.more(own, base)}
	for _, name := range names {
		one := []string{name}
		points := d.perWork(one, work)
		part := Component{Name: name, Seconds: c.tables.mean(points)}
		if low, _, known := a.Total.Interval(); a.Total.Value > 0 && (!known || low > 0) {
			share := part.Seconds.Value / a.Total.Value
			part.Share = &share
		}
		if b != nil {
			part.More = c.more(points, b.perWork(one, work))
		}
		a.Components = append(a.Components, part)
	}
	a.ElsewhereShare = d.elsewhere()
	return a
}

// attributedWork is the unit of work that a cell's time is divided by: the first of these that it has.
func (d *cellData) attributedWork() (work, bool) {
	for _, name := range []string{"transaction", "packet", "byte"} {
		for _, w := range works() {
			if w.name != name {
				continue
			}
			for _, s := range d.ok {
				if rate, ok := w.rate(besideProbes(s)); ok && rate > 0 {
					return w, true
				}
			}
		}
	}
	return work{}, false
}

// perWork is the time of some components per unit of work, in each block that
// has both. What the machine does while idle is subtracted: a component of which
// that leaves nothing may come out below zero by chance, and then counts so.
func (d *cellData) perWork(components []string, w work) []point {
	var values []string
	for _, name := range components {
		values = append(values, unit.ComponentSeconds(name))
	}
	var out []point
	for _, s := range d.ok {
		seconds, measured := d.meter.machines(s, values)
		rate, ok := w.rate(besideProbes(s))
		if measured && ok && rate > 0 {
			out = append(out, point{s.block(), seconds / rate})
		}
	}
	return out
}

// more is the mean of a less b, in the blocks that have both.
func (c *dataset) more(a, b []point) *Estimate {
	differences := differencesOf(a, b)
	if len(differences) == 0 {
		return nil
	}
	e := c.tables.mean(differences)
	return &e
}

// elsewhere is the mean share of busy time that was other programs'.
func (d *cellData) elsewhere() *float64 {
	raw := meter{oneMachine: d.meter.oneMachine} // as it was, nothing subtracted
	var all []string
	for _, name := range append(charged(), unit.ElsewhereComponent) {
		all = append(all, unit.ComponentSeconds(name))
	}
	var sum float64
	n := 0
	for _, s := range d.ok {
		others, known := raw.machines(s, []string{unit.ComponentSeconds(unit.ElsewhereComponent)})
		busy, ok := raw.machines(s, all)
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

// mean is the arithmetic mean with its t interval. An interval takes two.
func (t *tables) mean(points []point) Estimate {
	m := momentsOf(points)
	e := Estimate{Value: m.mean, N: m.n, Method: ArithmeticMean}
	if m.n < 2 {
		e.Needed = 2
		return e
	}
	if h := m.halfwidth(t); !math.IsInf(h, 0) {
		e.bound(m.mean-h, m.mean+h, t.confidence)
	}
	return e
}
