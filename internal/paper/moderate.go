package paper

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// alike is what comparisons have in common whose spreads are taken to be alike: a metric of a
// workload, in a quotient of as many samples.
type alike struct {
	metric, workload string
	samples          int
}

// moderate gives the comparisons of claims what those of their kind say of their spread. A
// comparison that several claims ask for is one of them. Where values are differences, or spreads
// themselves, each has its own.
func moderate(cases []*resolver) {
	of, seen := map[alike][]estimate.Moments{}, map[string]bool{}
	each := func(do func(alike, *comparison)) {
		for _, r := range cases {
			for i := range r.comparisons {
				c := &r.comparisons[i]
				if !c.arithmetic && r.relation.name != variesMore {
					do(alike{c.metric, c.left.Workload, len(c.over) + len(c.under)}, c)
				}
			}
		}
	}
	each(func(k alike, c *comparison) {
		if one := fmt.Sprint(k, c.over, c.under); !seen[one] {
			seen[one] = true
			of[k] = append(of[k], c.moments)
		}
	})
	priors := map[alike]estimate.Prior{}
	for k, contrasts := range of {
		priors[k] = estimate.PriorOf(contrasts)
	}
	each(func(k alike, c *comparison) { c.prior = priors[k] })
}
