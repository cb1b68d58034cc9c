//go:build linux

package traffic

import (
	"errors"
	"sync"
)

// errInterrupted ends a thread that waited for others of its run; the run has its reason.
var errInterrupted = errors.New("interrupted while it waited for the other streams")

// sliceGate keeps the threads of a driving half together: they take or leave out each
// turn as one, and all have ended their lead-in before any begins the counted part.
// Otherwise the threads that share a CPU would come one after the other: late ones would
// leave the turn out, and the lead-in of one would run in the counted part of another.
type sliceGate struct {
	mu      sync.Mutex
	changed *sync.Cond
	threads int
	arrived int
	round   int
	broken  bool
	taken   []decision // by turn
}

// decision is what the first thread of a turn found.
type decision byte

const (
	undecidedTurn decision = iota
	inTime
	tooLate
)

func newSliceGate(threads int) *sliceGate {
	g := &sliceGate{threads: threads}
	g.changed = sync.NewCond(&g.mu)
	return g
}

// begin prepares for a schedule of so many turns.
func (g *sliceGate) begin(turns int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken = make([]decision, turns)
}

// takes reports whether a turn is taken. late is what the calling thread found; that of
// the first one holds for all.
func (g *sliceGate) takes(turn int, late bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.taken[turn] == undecidedTurn {
		g.taken[turn] = inTime
		if late {
			g.taken[turn] = tooLate
		}
	}
	return g.taken[turn] == inTime
}

// wait returns when all threads have come.
func (g *sliceGate) wait() error {
	if g.threads == 1 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.arrived++
	if g.arrived == g.threads {
		g.arrived = 0
		g.round++
		g.changed.Broadcast()
		return nil
	}
	for round := g.round; g.round == round; {
		if g.broken {
			return errInterrupted
		}
		g.changed.Wait()
	}
	return nil
}

// interrupt ends every wait, now and later: one of the threads will not come.
func (g *sliceGate) interrupt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = true
	g.changed.Broadcast()
}
