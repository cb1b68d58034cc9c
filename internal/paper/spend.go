package paper

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

// cnibench spends a time budget on the claims whose verdicts cost least. The spread of a few blocks
// tells what a verdict costs, so cnibench chooses again before each block. A claim that is decided,
// or that needs more than is left, makes room for others. What then remains goes to those that need
// more, as a spread is an estimate too.

// firstBlocks is how many blocks a claim has before its spread says how many more it needs.
const firstBlocks = 3

// candidateTimes is how many budgets of claims are candidates, with firstBlocks of each. Decided
// claims make room for no more, and a lab is built for all of them.
const candidateTimes = 2

// longestGap is the longest time between the beginnings of two samples that counts as measuring. A
// longer one is an interruption.
const longestGap = time.Minute

// Budget spends a time on the claims of a paper.
type Budget struct {
	paper     Paper
	testbed   Testbed
	time      time.Duration
	opt       dataset.Options
	prospects []Prospect // of each claim
	// without are the claims that do not fit by far.
	without map[int]bool
	// inForce are the cells of each claim's pairs without profiles that did not take effect, by
	// what these are.
	inForce map[string][][]result.Cell
}

// Budget gives the budget of a run whose blocks may take a time on a testbed. opt are the options
// of the analysis.
func (p Paper) Budget(all time.Duration, t Testbed, opt dataset.Options) *Budget {
	opt.Confidence, t.Cost = openConfidence, once(t.Cost)
	b := &Budget{paper: p, testbed: t, time: all, opt: opt, prospects: p.Prospects(t), without: map[int]bool{}, inForce: map[string][][]result.Cell{}}
	open, at := b.open(nil)
	_, rest := b.choose(open, candidateTimes*all, at)
	for _, x := range rest {
		b.without[x.at] = true
	}
	return b
}

// once asks for the cost of each cell once: choosing asks for it a hundred thousand times, while
// nothing is measured.
func once(cost func(result.Cell) time.Duration) func(result.Cell) time.Duration {
	known := map[result.Cell]time.Duration{}
	return func(c result.Cell) time.Duration {
		d, is := known[c]
		if !is {
			d = cost(c)
			known[c] = d
		}
		return d
	}
}

// Cells are those of all claims that may be measured, in the order of the plan. The time may be
// too short for some.
func (b *Budget) Cells() []result.Cell {
	some := map[result.Cell]bool{}
	for i, x := range b.prospects {
		for _, c := range x.Cells {
			some[c] = some[c] || !b.without[i]
		}
	}
	return slices.DeleteFunc(slices.Clone(b.paper.Used), func(c result.Cell) bool { return !some[c] })
}

// Done says of each cell whether the next block leaves it out.
func (b *Budget) Done(samples []result.Sample) map[result.Cell]bool {
	next := b.Next(samples)
	done := map[result.Cell]bool{}
	for _, c := range b.Cells() {
		done[c] = next.blocks[c] == 0
	}
	return done
}

// Spending is what a budget is spent on from the next block on.
type Spending struct {
	// Claims are measured for a verdict.
	Claims []Claim
	// Block is what the next block takes.
	Block time.Duration
	// blocks is how many each cell is measured in; none: it is not.
	blocks map[result.Cell]int
}

// Cells are those of the next block.
func (s Spending) Cells() []result.Cell {
	return slices.SortedFunc(maps.Keys(s.blocks), result.Cell.Compare)
}

// Next chooses the claims of the next block by the samples of the blocks before. A run that is
// resumed has its budget again: where the records have used one up, another begins.
func (b *Budget) Next(samples []result.Sample) Spending {
	open, at := b.open(samples)
	out, _ := b.choose(open, b.time-at.spent%b.time, at)
	out.Block = b.cost(each(out.Cells(), 1), nil, at)
	return out
}

// choose takes the claims that fit into what is left, then others of which a few blocks fit, or one,
// those that need least first, and at least one claim. It gives the rest too.
func (b *Budget) choose(open []need, left time.Duration, at clock) (out Spending, rest []need) {
	out.blocks = map[result.Cell]int{}
	take := func(few int, most time.Duration) bool {
		best, cost := b.cheapest(open, few, most, out.blocks, at)
		if best < 0 {
			return false
		}
		left -= cost
		out.take(open[best].few(few))
		open = slices.Delete(open, best, best+1)
		return true
	}
	for _, few := range []int{mostBlocks, firstBlocks, 1} {
		for take(few, left) {
		}
	}
	if len(out.Claims) == 0 { // it narrows one
		take(firstBlocks, math.MaxInt64)
	}
	return out, open
}

// cheapest is the place of the claim whose verdict adds least to the cost of others, of those that
// add no more than most with at most few blocks of each cell, and what it adds; -1 where none does.
func (b *Budget) cheapest(open []need, few int, most time.Duration, have map[result.Cell]int, at clock) (best int, adds time.Duration) {
	best = -1
	var least time.Duration
	for i, x := range open {
		if few < firstBlocks && !x.known { // they would say nothing
			continue
		}
		whole := b.cost(x.blocks, have, at)
		c := whole
		if few < mostBlocks {
			c = b.cost(x.few(few).blocks, have, at)
		}
		if c <= most && (best < 0 || x.before(open[best], whole, least)) {
			best, least, adds = i, whole, c
		}
	}
	return best, adds
}

// take adds a claim.
func (s *Spending) take(x need) {
	s.Claims = append(s.Claims, x.claim)
	for c, n := range x.blocks {
		s.blocks[c] = max(s.blocks[c], n)
	}
}

// need is what a claim needs for its verdict.
type need struct {
	at    int // in the paper's claims
	claim Claim
	// blocks is how many more each cell needs.
	blocks map[result.Cell]int
	// known: each of its pairs has so many that they say how many more it needs.
	known bool
	rank  int
}

// few is a claim with at most some blocks of what it needs.
func (x need) few(most int) need {
	some := map[result.Cell]int{}
	for c, n := range x.blocks {
		some[c] = min(n, most)
	}
	x.blocks = some
	return x
}

// each gives cells the same number of blocks.
func each(cells []result.Cell, n int) map[result.Cell]int {
	out := map[result.Cell]int{}
	for _, c := range cells {
		out[c] = n
	}
	return out
}

// before reports whether a claim is measured before another, by what each adds to the cost.
func (x need) before(y need, cost, other time.Duration) bool {
	return x.rank < y.rank || x.rank == y.rank && cost < other
}

// Ranks of claims: findings and numbers before the rest, what can be decided before what can
// only be contradicted or reproduced in part, and last what no number of blocks would decide if
// mean and spread stayed what they are.
const (
	rankNoFinding = 1
	rankPart      = 2
	rankHopeless  = 4
)

// open are the claims that are not decided.
func (b *Budget) open(samples []result.Sample) ([]need, clock) {
	r, at := b.paper.resultsOf(samples, b.opt), b.clock(samples)
	r.Cut = true
	var cases []*resolver
	if len(samples) > 0 {
		cases = b.paper.askedAll(r)
	}
	var open []need
	for i, x := range b.prospects {
		if b.without[i] {
			continue
		}
		cells := x.Cells
		if len(r.Untaken) > 0 {
			cells = b.cellsWithout(r.Untaken)[i]
		}
		one := need{at: i, claim: x.Claim, blocks: each(cells, firstBlocks)}
		if !x.Claim.Counts() {
			one.rank += rankNoFinding
		}
		if x.Part {
			one.rank += rankPart
		}
		if cases != nil && !b.after(&one, cases[i], at) || len(cells) == 0 {
			continue
		}
		open = append(open, one)
	}
	return open, at
}

// cellsWithout are the cells of each claim's pairs without those of profiles that did not take
// effect.
func (b *Budget) cellsWithout(untaken map[string][]string) [][]result.Cell {
	key := strings.Join(slices.Sorted(maps.Keys(untaken)), " ")
	if b.inForce[key] == nil {
		for i, x := range b.prospects {
			if len(x.Cells) == 0 { // another campaign measures it, or none
				b.inForce[key] = append(b.inForce[key], nil)
				continue
			}
			b.inForce[key] = append(b.inForce[key], b.paper.comparedOf(i, func(c result.Cell, metric string) bool {
				return b.testbed.Lacks(c, metric) == "" && len(untaken[c.Profile]) == 0
			}))
		}
	}
	return b.inForce[key]
}

// after says what a claim still needs after its comparisons at openConfidence, and whether it is
// open. What it needs is for that confidence too, whatever it shows at that of verdicts: claims that
// would be measured no more once they are decided at 95 % would be decided falsely in 12 % of cases,
// with looks at the third to the sixth block, if they were on a boundary.
func (b *Budget) after(x *need, of *resolver, at clock) bool {
	v := of.judged()
	switch v.Outcome {
	case NotMeasured:
		return true
	case Undecided:
	default:
		return false
	}
	if slices.ContainsFunc(v.Missing, Missing.leftOut) { // nothing is known of those pairs
		return true
	}
	j := of.decision(v)
	var first []pairNeed // pairs that have too few blocks to say how many they need
	for i, c := range j.comparisons {
		if n := c.moments.N; n < firstBlocks {
			first = append(first, pairNeed{i, firstBlocks - n})
		}
	}
	if x.blocks = j.cellsOf(first); len(first) > 0 {
		return true
	}
	x.known = true
	x.blocks = j.needs(func(blocks map[result.Cell]int) time.Duration { return b.cost(blocks, nil, at) })
	if x.blocks == nil {
		x.blocks = j.cellsOf(j.undecided(mostBlocks))
		x.rank += rankHopeless
	}
	return len(x.blocks) > 0
}

// clock is what measuring took.
type clock struct {
	spent time.Duration
	// scale is by how much longer samples took than they were said to.
	scale float64
}

// clock reads the times of the samples: a run that was resumed decides as the one before.
func (b *Budget) clock(samples []result.Sample) clock {
	out := clock{scale: 1}
	var said time.Duration
	var last *result.Sample
	profiles := map[int]map[string]int{} // of each block
	for i := range samples {
		s := &samples[i]
		if s.Status == result.StatusUnsupported {
			continue
		}
		if last != nil {
			out.spent += min(max(0, s.Started.Sub(last.Started)), longestGap)
		}
		said += b.testbed.Cost(s.Cell)
		last = s
		if profiles[s.Block] == nil {
			profiles[s.Block] = map[string]int{}
		}
		profiles[s.Block][s.Cell.Profile] = 1
	}
	if last == nil {
		return out
	}
	out.spent += b.testbed.Cost(last.Cell)
	for _, block := range profiles {
		said += b.changes(block)
	}
	if said > 0 && out.spent > 0 {
		out.scale = float64(out.spent) / float64(said)
	}
	return out
}

// cost is what some blocks of cells add to those that others have.
func (b *Budget) cost(blocks, have map[result.Cell]int, at clock) time.Duration {
	var sum time.Duration
	before, with := map[string]int{}, map[string]int{}
	for c, n := range have {
		before[c.Profile] = max(before[c.Profile], n)
	}
	maps.Copy(with, before)
	for c, n := range blocks {
		sum += time.Duration(max(0, n-have[c])) * b.testbed.Cost(c)
		with[c.Profile] = max(with[c.Profile], n)
	}
	if b.testbed.Profile > 0 {
		sum += b.changes(with) - b.changes(before)
	}
	return time.Duration(at.scale * float64(sum))
}

// changes is what changing profiles takes, each in some blocks: nothing in those that have only one.
func (b *Budget) changes(profiles map[string]int) time.Duration {
	all, most, second := 0, 0, 0
	for _, n := range profiles {
		all += n
		second = max(second, min(n, most))
		most = max(most, n)
	}
	return time.Duration(all-(most-second)) * b.testbed.Profile
}
