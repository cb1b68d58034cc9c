package summary

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// Ladder is what a network costs more than the bare one, in steps: differences of
// partial networks that were measured in the same blocks.
type Ladder struct {
	// Metric is what the steps are of, by its derived name: instructions where they
	// were counted, else the ends' own CPU time, else the machine's, per Work.
	Metric string       `json:"metric"`
	Work   string       `json:"work"`
	Steps  []LadderStep `json:"steps"`
	// Sum is that of all steps, in the blocks that have every step; Direct is the
	// network less the host in all blocks that have these two.
	Sum    estimate.Estimate `json:"sum"`
	Direct estimate.Estimate `json:"direct"`
	// Checks compare the steps with sampled stacks; none where none were sampled.
	Checks []LadderCheck `json:"checks,omitempty"`
}

// LadderStep is what a step costs.
type LadderStep struct {
	// Network is the one with it, Below the one without.
	Network string `json:"network"`
	Below   string `json:"below"`
	// Adds is what it has more, in words. Where networks between were not measured
	// it is several things.
	Adds []string `json:"adds"`
	// More is Network less Below.
	More estimate.Estimate `json:"more"`

	components []string
}

// LadderCheck compares the steps of a ladder with sampled stacks, for the same components,
// in CPU time per unit of work.
type LadderCheck struct {
	// Components are those that the steps name as their own, Networks the steps'.
	Components []string `json:"components"`
	Networks   []string `json:"networks"`
	// Steps is their sum, Stacks what sampled stacks charge these components with
	// more than with the host's, Difference the first less the second.
	Steps      estimate.Estimate `json:"steps"`
	Stacks     estimate.Estimate `json:"stacks"`
	Difference estimate.Estimate `json:"difference"`
	// Disagree reports that the interval of Difference does not hold 0. Elsewhere is
	// then what the stacks say of other components on the way up these steps, the
	// largest first; Share is not set.
	Disagree  bool        `json:"disagree"`
	Elsewhere []Component `json:"elsewhere,omitempty"`
}

// ladder splits what a cell costs more than its baseline into steps; nil where no
// network between was measured with it.
func ladder(c *dataset.Dataset, d *dataset.CellData) *Ladder {
	cells := stepCells(c, d)
	if len(cells) < 3 { // the host and the network itself: one step is the difference
		return nil
	}
	w, ok := d.AttributedWork()
	if !ok {
		return nil
	}
	for _, name := range append([]string{"instructions"}, ladderTimes()...) {
		points := make([][]estimate.Point, len(cells))
		for i, r := range cells {
			points[i] = r.CostPerWork(name, w)
		}
		ups := increments(estimate.Common(points))
		if len(ups) == 0 || len(ups[0]) == 0 {
			continue
		}
		l := &Ladder{Metric: name + "_per_" + w.Name, Work: w.Name, Sum: c.Tables.Mean(estimate.Sum(ups))}
		if direct := more(c, points[len(points)-1], points[0]); direct != nil {
			l.Direct = *direct
		}
		for i, up := range ups {
			l.Steps = append(l.Steps, LadderStep{Network: cells[i+1].Cell.Network, Below: cells[i].Cell.Network,
				Adds: cells[i+1].adds, More: c.Tables.Mean(up), components: cells[i+1].components})
		}
		l.Checks = ladderChecks(c, l.Steps, cells, w)
		return l
	}
	return nil
}

// ladderTimes are the CPU times that steps can be given in; the first that every step has
// is used: that of the ends alone is the same where others work on the machine too.
func ladderTimes() []string { return []string{"own_cpu_seconds", "cpu_seconds"} }

// cellOn is a measured cell of a ladder, and what it has more than the one below.
type stepCell struct {
	*dataset.CellData
	adds, components []string
}

// stepCells are the measured cells from the baseline up to d. What a network adds
// that was not measured is the next one's that was.
func stepCells(c *dataset.Dataset, d *dataset.CellData) []stepCell {
	b := c.Baseline(d)
	if b == nil || len(b.OK) == 0 || len(d.OK) == 0 {
		return nil
	}
	out := []stepCell{{CellData: b}}
	var adds, components []string
	for _, r := range c.Options.Ladder(d.Cell.Network) {
		adds = append(adds, r.Adds)
		for _, name := range r.Components {
			if !slices.Contains(components, name) {
				components = append(components, name)
			}
		}
		if at := cellOn(c, d.Cell, r.Network); at != nil && len(at.OK) > 0 {
			out = append(out, stepCell{at, adds, components})
			adds, components = nil, nil
		}
	}
	if out[len(out)-1].CellData != d {
		return nil
	}
	return out
}

// cellOn is a cell on another network; one that enforces no policies is
// measured without.
func cellOn(c *dataset.Dataset, cell result.Cell, network string) *dataset.CellData {
	cell.Network = network
	if d := c.ByCell[cell]; d != nil {
		return d
	}
	cell.Policies = 0
	return c.ByCell[cell]
}

// increments is each less the one before, of points in the same blocks.
func increments(all [][]estimate.Point) [][]estimate.Point {
	var out [][]estimate.Point
	for i := 1; i < len(all); i++ {
		out = append(out, estimate.Differences(all[i], all[i-1]))
	}
	return out
}

// ladderChecks compares steps with stacks, those with a component in common
// together: the stacks of netfilter do not separate tracking from rules.
func ladderChecks(c *dataset.Dataset, steps []LadderStep, cells []stepCell, w dataset.Work) []LadderCheck {
	var out []LadderCheck
	for _, group := range grouped(steps) {
		if check := ladderCheck(c, group, steps, cells, w); check != nil {
			out = append(out, *check)
		}
	}
	return out
}

// grouped are the indices of steps that have components in common.
func grouped(steps []LadderStep) [][]int {
	var out [][]int
	for i, s := range steps {
		group := []int{i}
		var rest [][]int
		for _, g := range out {
			shares := slices.ContainsFunc(g, func(j int) bool {
				return slices.ContainsFunc(steps[j].components, func(name string) bool { return slices.Contains(s.components, name) })
			})
			if shares {
				group = append(slices.Clone(g), group...)
			} else {
				rest = append(rest, g)
			}
		}
		slices.Sort(group)
		out = append(rest, group)
	}
	slices.SortFunc(out, func(a, b []int) int { return a[0] - b[0] })
	return out
}

func ladderCheck(c *dataset.Dataset, group []int, steps []LadderStep, cells []stepCell, w dataset.Work) *LadderCheck {
	check := &LadderCheck{}
	for _, i := range group {
		check.Networks = append(check.Networks, steps[i].Network)
		for _, name := range steps[i].components {
			if !slices.Contains(check.Components, name) {
				check.Components = append(check.Components, name)
			}
		}
	}
	top, host := cells[len(cells)-1], cells[0]
	byStacks := estimate.Differences(top.PerWork(check.Components, w), host.PerWork(check.Components, w))
	for _, time := range ladderTimes() {
		bySteps := upSteps(group, cells, func(r stepCell) []estimate.Point { return r.CostPerWork(time, w) })
		both := estimate.Common([][]estimate.Point{bySteps, byStacks})
		if len(both[0]) == 0 {
			continue
		}
		check.Steps, check.Stacks = c.Tables.Mean(both[0]), c.Tables.Mean(both[1])
		check.Difference = c.Tables.Mean(estimate.Differences(both[0], both[1]))
		if check.Disagree = awayFromZero(check.Difference); check.Disagree {
			check.Elsewhere = ladderElsewhere(c, group, check.Components, cells, w)
		}
		return check
	}
	return nil
}

// upSteps is what some steps add together, in the blocks that all their cells have.
func upSteps(group []int, cells []stepCell, of func(stepCell) []estimate.Point) []estimate.Point {
	var ups [][]estimate.Point
	for _, i := range group {
		ups = append(ups, estimate.Differences(of(cells[i+1]), of(cells[i])))
	}
	return estimate.Sum(ups)
}

// awayFromZero recognises an estimate whose interval does not hold 0.
func awayFromZero(e estimate.Estimate) bool {
	low, high, ok := e.Interval()
	return ok && (low > 0 || high < 0)
}

// ladderElsewhere is what steps change in components that are not their own, where
// that differs significantly from 0.
func ladderElsewhere(c *dataset.Dataset, group []int, own []string, cells []stepCell, w dataset.Work) []Component {
	var out []Component
	for _, name := range dataset.Charged() {
		if slices.Contains(own, name) {
			continue
		}
		points := upSteps(group, cells, func(r stepCell) []estimate.Point { return r.PerWork([]string{name}, w) })
		if len(points) == 0 {
			continue
		}
		if e := c.Tables.Mean(points); awayFromZero(e) {
			out = append(out, Component{Name: name, Seconds: e})
		}
	}
	slices.SortStableFunc(out, func(a, b Component) int {
		return cmp.Compare(math.Abs(b.Seconds.Value), math.Abs(a.Seconds.Value))
	})
	return out
}
