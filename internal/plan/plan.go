// Package plan turns a campaign into cells and seeded random blocks. Pure.
package plan

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
)

// Schema is the version of plan.json that this program writes; it reads older ones
// too. Version 2 has conditions in its cells, and slices.
const Schema = 2

// Plan is plan.json: what will be measured, in which order.
type Plan struct {
	Schema int `json:"schema"`
	// Seed makes the order: the same seed and cells give the same blocks.
	Seed uint64 `json:"seed"`
	// NullTest: each network is in it twice, under two names (result.SecondName), and is
	// compared with itself.
	NullTest bool `json:"null_test,omitempty"`
	// Cells are all cells; cell i has the id c%03d of its index.
	Cells []result.Cell `json:"cells"`
	// MinBlocks and MaxBlocks bound the number of blocks.
	MinBlocks int `json:"min_blocks"`
	MaxBlocks int `json:"max_blocks"`
	// SampleSeconds and WarmupSeconds are the lengths of a sample. Samples of
	// other lengths must not be mixed with these.
	SampleSeconds float64 `json:"sample_seconds"`
	WarmupSeconds float64 `json:"warmup_seconds"`
	// SliceSeconds is the length of a slice of native traffic; 0 or absent: samples
	// are one long window each.
	SliceSeconds float64 `json:"slice_seconds,omitempty"`
	// Conflists maps a network of the user's own to the SHA-256 of its
	// conflists: after a change it is another network.
	Conflists map[string]string `json:"conflists,omitempty"`
}

// New is the plan of a campaign.
func New(c campaign.Campaign, seed uint64) Plan {
	return Plan{
		Schema: Schema, Seed: seed, Cells: Cells(c),
		MinBlocks: c.Sampling.MinBlocks, MaxBlocks: c.Sampling.MaxBlocks,
		SampleSeconds: c.Sampling.Seconds, WarmupSeconds: c.Sampling.WarmupSeconds, SliceSeconds: c.Sampling.SliceSeconds,
		Conflists: digests(c.Networks),
	}
}

// NewNullTest is the plan of a campaign in which each network is measured twice,
// under two names (result.SecondName), in the same blocks. The baseline stays as it is,
// so that blocks are what they are in the campaign itself; where it is alone, it
// has the second name.
func NewNullTest(c campaign.Campaign, seed uint64) Plan {
	alone := !slices.ContainsFunc(c.Networks, func(n campaign.Network) bool { return n.Name != result.HostNetwork })
	p := New(c, seed)
	p.NullTest = true
	for _, cell := range p.Cells { // a copy: the second names are not doubled again
		if !cell.IsBaseline() || alone {
			cell.Network = result.SecondName(cell.Network)
			p.Cells = append(p.Cells, cell)
		}
	}
	slices.SortFunc(p.Cells, result.Cell.Compare)
	return p
}

// Slot is one sample that the plan asks for.
type Slot struct {
	// ID is "b03-c017": sorted as text, slots are in the order of blocks and
	// cells.
	ID string
	// Block counts from 1.
	Block int
	// Index is the cell's place in Plan.Cells.
	Index int
	Cell  result.Cell
	// Round is one number for the pairs of nodes that are measured at the same
	// time, which are together; 0: the sample is measured alone.
	Round int
}

// Block is one sample of every active cell in random order, in groups whose order is random
// too. Cells of one profile and MTU are together, as changing those of a machine takes longer
// than a sample. Of these, cells that are compared with one baseline are together: a machine's
// speed changes within a minute, and two samples that follow each other differ less by it. So
// are the pairs of nodes of one round.
//
// The order is that of all cells, with those that are not active left out: it depends on the
// seed and the block alone, so dropping a cell does not move the others. A baseline stays as
// long as any cell that is compared with it, and a pair as long as any of its round: the pairs
// measured at the same time thereby stay the same. active may be nil for all.
func (p Plan) Block(n int, active func(cell int) bool) []Slot {
	order, rounds := p.order(n)
	wanted := p.wanted(active, rounds)
	slots := make([]Slot, 0, len(p.Cells))
	for _, i := range order {
		if wanted[i] {
			slots = append(slots, Slot{ID: p.id(n, i), Block: n, Index: i, Cell: p.Cells[i], Round: rounds[i]})
		}
	}
	return slots
}

// wanted are the active cells, their baselines, and who is in a round with either.
func (p Plan) wanted(active func(cell int) bool, rounds []int) []bool {
	wanted := make([]bool, len(p.Cells))
	baselines := make(map[result.Cell]bool)
	for i, c := range p.Cells {
		wanted[i] = active == nil || active(i)
		if wanted[i] {
			baselines[c.Baseline()] = true
		}
	}
	held := map[int]bool{}
	for i, c := range p.Cells {
		wanted[i] = wanted[i] || baselines[c]
		held[rounds[i]] = held[rounds[i]] || wanted[i]
	}
	for i, round := range rounds {
		wanted[i] = wanted[i] || round > 0 && held[round]
	}
	return wanted
}

// order is the permutation of all cells in block n, and the rounds of those that
// are of pairs of nodes. The generator is ChaCha8, so that neighbouring seeds and
// blocks have nothing in common.
func (p Plan) order(n int) (order, rounds []int) {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], p.Seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(n))
	rng := rand.New(rand.NewChaCha8(key))
	order = rng.Perm(len(p.Cells))
	rounds = p.rounds(rng)
	// The groups are in the order of their first cells: random as well.
	nodes, compared, turn := firsts[settings]{}, firsts[result.Cell]{}, firsts[int]{}
	places := make([][3]int, len(p.Cells)) // of its settings, of what it is compared with, its own
	for at, i := range order {
		place := [3]int{nodes.of(p.settings(i), at), compared.of(p.Cells[i].OfAnyPair().Baseline(), at), at}
		if round := rounds[i]; round > 0 {
			place[2] = turn.of(round, at)
		}
		places[i] = place
	}
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(places[a][:], places[b][:]) })
	return order, rounds
}

// firsts are the places in a permutation at which each group first appears.
type firsts[G comparable] map[G]int

// of is the place of a group, one of whose members is at a place. Members come in the order of
// the permutation.
func (f firsts[G]) of(group G, at int) int {
	if first, have := f[group]; have {
		return first
	}
	f[group] = at
	return at
}

// settings are the factors that are settings of nodes.
type settings struct {
	profile string
	mtu     int
}

func (p Plan) settings(cell int) settings {
	return settings{p.Cells[cell].Profile, p.Cells[cell].MTU}
}

// id gives all slots of a plan ids of the same length.
func (p Plan) id(block, cell int) string {
	return fmt.Sprintf("b%0*d-c%0*d", max(2, digits(p.MaxBlocks)), block, max(3, digits(len(p.Cells)-1)), cell)
}

func digits(n int) int { return len(fmt.Sprint(n)) }

// Estimate is the expected time of the shortest and of the longest run, without
// retries. overhead is what a sample takes in addition to its warm-up and window. A
// time budget ends a run only after its least number of blocks.
//
// tuning is what changing profile or MTU takes, where it takes long.
func (p Plan) Estimate(s campaign.Sampling, overhead, tuning time.Duration) (least, most time.Duration) {
	turns, _ := p.Turns()
	block := float64(turns) * (s.Warmup() + s.Window() + overhead).Seconds()
	groups := map[settings]bool{}
	for i := range p.Cells {
		groups[p.settings(i)] = true
	}
	if len(groups) > 1 { // each block goes through all of them
		block += float64(len(groups)) * tuning.Seconds()
	}
	least, most = duration(float64(p.MinBlocks)*block), duration(float64(p.MaxBlocks)*block)
	if budget := duration(s.MaxSeconds); budget > 0 {
		most = max(least, min(most, budget))
	}
	return least, most
}

// duration is a number of seconds, or the longest duration there is.
func duration(seconds float64) time.Duration {
	if ns := seconds * float64(time.Second); ns < math.MaxInt64 {
		return time.Duration(math.Round(ns))
	}
	return math.MaxInt64
}
