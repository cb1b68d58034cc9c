package paper

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/stat/dataset"
)

// form is what a relation compares.
type form int

const (
	// pairs: each left cell with each right one.
	pairs form = iota
	// alone: each left cell with a number.
	alone
	// share: each left cell with what its link can carry.
	share
	// series: left cells that differ in one factor, the last with the first.
	series
	// beyond: the last of a series with the one at a value of the factor.
	beyond
	// growth: the last by the first of a left series, against the same of a right one.
	growth
)

// relation is what a claim may say: the keys that it must and may have, what it
// compares, and what an interval of that shows.
type relation struct {
	name  string
	form  form
	takes []string // must be given
	may   []string
	doc   string
	// bounds are for a claim and the direction in which its metric is better.
	bounds func(c Claim, lowerIsBetter bool) bounds
}

// variesMore compares spreads and not values.
const variesMore = "varies_more"

// relations is the one list of them. The schema, the manual, the loader and the
// verdicts are made from it; a new relation is a new row.
func relations() []relation {
	up := func(c Claim, _ bool) bounds { return more(c) }
	down := func(c Claim, _ bool) bounds { return fewer(c) }
	inRange := func(c Claim, _ bool) bounds { return rangeBounds(c.Range) }
	amount := []string{"by", "up_to"}
	return []relation{
		{"greater", pairs, []string{"right"}, amount, "left is more than right: at least `by` more, at most `up_to` more. Without either it is contradicted where left is at most 3 % more.", up},
		{"less", pairs, []string{"right"}, amount, "left is less than right, in the same way.", down},
		{"better", pairs, []string{"right"}, amount, "greater, or less for a metric of which less is better.", betterBounds},
		{"worse", pairs, []string{"right"}, amount, "less, or greater for a metric of which less is better.", func(c Claim, lower bool) bounds { return betterBounds(c, !lower) }},
		{"not_greater", pairs, []string{"right"}, []string{"within"}, "left is at most `within` more than right (3 % by default).", func(c Claim, _ bool) bounds { return within(0, 1+margin(c)) }},
		{"not_less", pairs, []string{"right"}, []string{"within"}, "left is at most `within` less than right (3 % by default).", func(c Claim, _ bool) bounds { return within(1/(1+margin(c)), math.Inf(1)) }},
		{"indistinguishable", pairs, []string{"right", "within"}, nil, "left / right is within 1 / (1 + `within`) and 1 + `within`.", func(c Claim, _ bool) bounds { return within(1/(1+c.Within), 1+c.Within) }},
		{"ratio_within", pairs, []string{"right", "range"}, nil, "left / right is within `range`.", inRange},
		{"difference_within", pairs, []string{"right", "range"}, nil, "left − right is within `range`, in the metric's base unit.", inRange},
		{variesMore, pairs, []string{"right"}, amount, "left varies more than right from block to block: the ratio of their spreads is above 1, or 1 + `by`.", up},
		{"value_within", alone, []string{"range"}, nil, "left is within `range`, in the metric's base unit.", inRange},
		{"link_share_within", share, []string{"range"}, nil, "left is within `range` as a share of what its link can carry. A pod network is not judged where the bare network, too, is shown to stay below the range; in a lab, whose nodes share their CPUs, the bare network is not judged then either.", inRange},
		{"fills_link", share, nil, nil, fmt.Sprintf("left reaches %.0f %% of what its link can carry. A pod network is not judged where the bare network, too, is shown to reach less; in a lab, whose nodes share their CPUs, the bare network is not judged then either.", 100*dataset.FillsLink), func(Claim, bool) bounds { return within(dataset.FillsLink, math.Inf(1)) }},
		{"short_of_link", share, nil, nil, fmt.Sprintf("left reaches less than %.0f %% of what its link can carry.", 100*dataset.FillsLink), func(Claim, bool) bounds { return within(0, math.Nextafter(dataset.FillsLink, 0)) }},
		{"rises_with", series, []string{"factor"}, amount, "The last of the left cells by `factor` is more than the first, and no step between is shown to fall by more than 3 %.", up},
		{"falls_with", series, []string{"factor"}, amount, "The last of the left cells by `factor` is less than the first, and no step between is shown to rise by more than 3 %.", down},
		{"rises_beyond", beyond, []string{"factor", "at"}, amount, "The left cell with the greatest `factor` is more than the cell at `at`.", up},
		{"falls_beyond", beyond, []string{"factor", "at"}, amount, "The left cell with the greatest `factor` is less than the cell at `at`.", down},
		{"grows_more", growth, []string{"factor", "right"}, amount, "The last of the left cells by `factor`, divided by the first, is more than the same ratio of the right cells. With measure difference: the last minus the first is more than the same difference of the right cells.", up},
		{"grows_less", growth, []string{"factor", "right"}, amount, "The last of the left cells by `factor`, divided by the first, is less than the same ratio of the right cells. With measure difference: the last minus the first is less.", down},
	}
}

// find is the relation of a name.
func findRelation(name string) (relation, bool) {
	for _, r := range relations() {
		if r.name == name {
			return r, true
		}
	}
	return relation{}, false
}

// margin is what a claim of "not more" lets pass.
func margin(c Claim) float64 {
	if c.Within > 0 {
		return c.Within
	}
	return negligible
}

func betterBounds(c Claim, lowerIsBetter bool) bounds {
	if lowerIsBetter && c.Measure != efficiencyMeasure {
		return fewer(c)
	}
	return more(c)
}

// more are the bounds of a gain: of left / right, or of left − right.
func more(c Claim) bounds {
	if c.Measure == differenceMeasure {
		least := math.Nextafter(0, 1)
		return bounds{holdLow: least, holdHigh: math.Inf(1), failLow: least, failHigh: math.Inf(1)}
	}
	b := bounds{holdLow: math.Nextafter(1, 2), holdHigh: math.Inf(1), failLow: 1 + negligible, failHigh: math.Inf(1)}
	if c.UpTo > 0 {
		b.holdHigh, b.failHigh, b.failLow = 1+c.UpTo, 1+c.UpTo, 1
	}
	if c.By > 0 {
		b.holdLow, b.failLow = 1+c.By, 1+c.By
	}
	return b
}

// fewer are those of a loss.
func fewer(c Claim) bounds {
	if c.Measure == differenceMeasure {
		most := -math.Nextafter(0, 1)
		return bounds{holdLow: math.Inf(-1), holdHigh: most, failLow: math.Inf(-1), failHigh: most}
	}
	b := bounds{holdHigh: math.Nextafter(1, 0), failHigh: 1 / (1 + negligible)}
	if c.UpTo > 0 {
		b.holdLow, b.failLow, b.failHigh = 1-c.UpTo, 1-c.UpTo, 1
	}
	if c.By > 0 {
		b.holdHigh, b.failHigh = 1-c.By, 1-c.By
	}
	return b
}

// rangeBounds are those of two ends, either of which may be open.
func rangeBounds(ends []*float64) bounds {
	low, high := math.Inf(-1), math.Inf(1)
	if ends[0] != nil {
		low = *ends[0]
	}
	if ends[1] != nil {
		high = *ends[1]
	}
	return within(low, high)
}
