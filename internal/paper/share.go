package paper

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// alone compares a cell with a number, or with what its link can carry.
func (r *resolver) alone(s summary.Cell) {
	if !r.value(s) {
		return
	}
	metric := metricOf(r.claim.Metric, s)
	c := comparison{left: s.Cell, metric: metric, bounds: r.bounds(metric), over: []result.Cell{s.Cell}}
	if r.relation.form == alone {
		c.arithmetic, c.moments = true, r.Collector.Values(metric, s.Cell)
		r.comparisons = append(r.comparisons, c)
		return
	}
	var ok bool
	if c.limit, ok = r.Collector.LinkLimit(s.Cell); !ok {
		r.miss(name(s.Cell), "what its link can carry is not known")
		return
	}
	notPositive := 0
	if c.moments, notPositive = r.Collector.Contrast(metric, c.over, nil); notPositive > 0 {
		r.miss(name(s.Cell), fmt.Sprintf("%d blocks have no value above zero", notPositive))
		return
	}
	c.moments.Mean -= math.Log(c.limit)
	if high, short := r.baselineShort(c); short {
		r.miss(name(s.Cell), fmt.Sprintf("the bare network itself carries at most %.0f %% of what the link can with this traffic: this machine's CPUs are the limit, and the link is not", 100*high))
		return
	}
	c.not = r.claim.Except != nil && r.claim.Except.matchesAny(factorsOf(c.left))
	r.comparisons = append(r.comparisons, c)
}

// baselineShort tells whether a share of the link is one that even the bare network is
// shown not to reach with the same traffic, and the upper end of the bare network's share.
// What a pod network reaches then says nothing about the claim. In a lab, what the bare
// network reaches says nothing either: its nodes have nothing between them but the link's
// rate and the CPUs that they share.
func (r *resolver) baselineShort(c comparison) (high float64, short bool) {
	base := c.left.Baseline()
	if inLab := r.Environment != nil && r.Environment.Testbed == campaign.Lab; base == c.left && !inLab {
		return 0, false
	}
	m, _ := r.Collector.Contrast(c.metric, []result.Cell{base}, nil)
	_, top, ok := m.Interval(r.confidence())
	if !ok {
		return 0, false
	}
	high = math.Exp(top) / c.limit
	return high, high < c.bounds.failLow
}
