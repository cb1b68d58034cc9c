package paper

import "math"

// byExcess makes the comparison one of left − factor × right, which values of 0 have too: left is at
// least 20 % less than right where left − 0.8 × right is below 0. It is for a relation with one bound.
func (r *resolver) byExcess(c *comparison) bool {
	b, zero := c.bounds, math.Nextafter(0, 1)
	switch {
	case r.relation.form != pairs || len(c.over) != 1 || len(c.under) != 1 || r.relation.name == variesMore:
		return false
	case b.holdLow == 0 && b.failLow == 0 && b.holdHigh == b.failHigh:
		c.factor, c.bounds = b.holdHigh, within(math.Inf(-1), -zero)
	case math.IsInf(b.holdHigh, 1) && math.IsInf(b.failHigh, 1) && b.holdLow == b.failLow:
		c.factor, c.bounds = b.holdLow, within(zero, math.Inf(1))
	default:
		return false
	}
	c.arithmetic, c.moments = true, r.Collector.Excess(c.metric, c.left, c.right, c.factor)
	return true
}
