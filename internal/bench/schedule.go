package bench

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/buildable"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

// shaped reports whether a cell's link lets through no more than its rate.
func shaped(c result.Cell) bool {
	_, limited := buildable.LinkRate(c.Link)
	return limited
}

// stream reports whether a cell's traffic goes one way, as fast as it can.
func stream(c result.Cell) bool {
	test := workload.NativeTest(c.Workload)
	return test == traffic.TCPStream || test == traffic.UDPStream
}

// schedule gives each try its turns, in rounds: in each, all that take part come
// once, in random order. It gives the length of the whole.
func (r *run) schedule(tries []*slicedTry) time.Duration {
	if len(tries) == 0 {
		return 0
	}
	rounds := 0
	for _, t := range tries {
		t.slices = r.slicesOf(t.slot)
		t.turns = make([]traffic.Turn, 0, t.slices)
		rounds = max(rounds, t.slices)
		path := pathOf(t.sample.Cell)
		if least, known := r.opens[path]; !known || t.opened < least {
			r.opens[path] = t.opened
		}
	}
	rng := rand.New(rand.NewChaCha8(r.batchKey(tries[0].slot)))
	at := time.Duration(0)
	for round := range rounds {
		for _, i := range rng.Perm(len(tries)) {
			t := tries[i]
			if (round+1)*t.slices/rounds == round*t.slices/rounds {
				continue // it has fewer slices than there are rounds
			}
			cell := t.sample.Cell
			leadIn, length := workload.SliceOf(r.Sampling.Slice(), r.opens[pathOf(cell)], longSlices(cell))
			if len(t.turns) == 0 {
				leadIn = workload.WarmupOf(workload.NativeTest(cell.Workload), leadIn)
			}
			t.turns = append(t.turns, traffic.Turn{At: at, LeadIn: leadIn, Length: length})
			at += leadIn + length + r.drainAfter(cell, t.ends.Carried) + betweenSlices
		}
	}
	return at
}

// pathOf is a cell without its traffic. The time that a connection takes to open bounds the round
// trip of its path from above. On a busy CPU it is a hundred times as long (198 ms were seen in a
// lab where programs in user space carry packets), and the kernel does not know the round trips of
// UDP.
func pathOf(c result.Cell) result.Cell {
	return result.Cell{
		Cluster: c.Cluster, Network: c.Network, Link: c.Link, Profile: c.Profile, MTU: c.MTU, Family: c.Family, Encryption: c.Encryption,
		Path: c.Path, Placement: c.Placement, ClientNode: c.ClientNode, ServerNode: c.ServerNode,
	}
}

// drainBefore is what a slice takes beyond its length before any was measured. Parallel streams
// share their CPUs, and the scheduler goes on to the next thread at its ticks (4 ms): each of
// the two ends of each stream has one turn in the lead-in, and one in the counted part. Measured
// were up to 22 ms for a stream (Linux 6.18, two to 64 streams). Round trips wait for each other
// and leave the CPU at once. carried means that programs in user space carry the packets: what a
// stream left in their buffers took up to 24 ms (flannel/udp, weave/sleeve, Open vSwitch).
func drainBefore(c result.Cell, carried bool) (drain time.Duration) {
	drain = parallel(c) * firstDrain
	if parallel(c) > 1 && stream(c) {
		drain = parallel(c) * streamDrain
	}
	if fillsLink(c) {
		drain += shapedDrain
	}
	if carried && stream(c) {
		drain += carriedDrain
	}
	if rate, ok := buildable.LinkRate(c.Link); ok && workload.NativeTest(c.Workload) == traffic.TCPStream {
		const bits = 8 * sendBuffer
		drain += time.Duration(bits / rate * float64(time.Second))
	}
	return drain
}

// parallel is how many threads of each end have traffic of a cell: two for each stream where it
// goes both ways.
func parallel(c result.Cell) time.Duration {
	n := max(1, c.Streams)
	if c.Direction == traffic.Bidirectional {
		n *= 2
	}
	return time.Duration(n)
}

// fillsLink reports whether a cell's traffic leaves buffers full at the end of a slice: that of
// a lab's link, which holds what the link carries in 10 ms (internal/testbed/lab/wire), and with TCP
// that of the sender, whose bound (net.ipv4.tcp_wmem) is 4 MiB or, with some profiles, 16 MiB.
// Datagrams wait in a socket's buffer of a few hundred KiB.
func fillsLink(c result.Cell) bool { return stream(c) && shaped(c) }

// longSlices reports whether slices of a cell are longer than the campaign says: on a shaped link
// (workload.SliceOf), and of TCP in both directions at once. There, of four threads on one CPU,
// those that run first have more of a short slice. In slices of 20 ms the efficiency of a bridge
// was 71 to 75 % and varied by 13 to 26 % between blocks, in slices of 100 and 250 ms it was 67 and
// 68 % and varied by 4 to 5 % (2026-11-27).
func longSlices(c result.Cell) bool {
	return fillsLink(c) || c.Direction == traffic.Bidirectional && workload.NativeTest(c.Workload) == traffic.TCPStream
}

// drainAfter is the time that is left after a slice of a cell. How full a slice leaves its buffers
// varies, and so do the turns of parallel streams: in one run, one slice in ten of a second block
// took longer than the two of the first.
func (r *run) drainAfter(c result.Cell, carried bool) time.Duration {
	drain, known := r.drains[c]
	if !known {
		return drainBefore(c, carried)
	}
	least := time.Duration(0)
	if fillsLink(c) {
		least = shapedDrain
	}
	if n := parallel(c); n > 1 && stream(c) {
		least += n * streamTicks
	}
	if least == 0 {
		return drain
	}
	return max(drain+drain/4, least)
}

// slicedOverhead is what a sliced sample takes in addition to its slices: connections are opened
// side by side. Measured were 33 to 44 ms (560 cells in batches of four, 2026-11-26).
const slicedOverhead = 40 * time.Millisecond

// SlicedTime is what a sample of a cell takes in slices, with its part of the explaining
// windows of the fewest blocks, for estimates before anything is measured; 0 where it is
// not sliced. Drains are those of a short path.
func SlicedTime(s campaign.Sampling, c result.Cell) time.Duration {
	if s.Slice() <= 0 || !workload.Sliceable(c) {
		return 0
	}
	leadIn, length := workload.SliceOf(s.Slice(), 0, longSlices(c))
	all := time.Duration(slicesFor(s, c, cmp.Or(s.Slices, firstSlices))) * (leadIn + length + drainBefore(c, false) + betweenSlices)
	all += workload.WarmupOf(workload.NativeTest(c.Workload), leadIn) - leadIn + slicedOverhead
	if s.Explain() > 0 {
		every := max(1, s.ExplainEvery)
		blocks := max(every, s.MinBlocks)
		explained := (blocks + every - 1) / every
		all += explainTime(s) * time.Duration(explained) / time.Duration(blocks)
	}
	return all
}

// batchKey seeds the order of turns: by the plan, the block and the batch.
func (r *run) batchKey(first plan.Slot) (key [32]byte) {
	binary.LittleEndian.PutUint64(key[:], r.Plan.Seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(first.Block))
	binary.LittleEndian.PutUint64(key[16:], uint64(first.Index)+1)
	return key
}

// slicesOf is the number of slices of a sample: what the campaign names or the noise asks for, and at
// least as many as the campaign asks for in seconds.
func (r *run) slicesOf(slot plan.Slot) int {
	return slicesFor(r.Sampling, slot.Cell, r.slicesByNoise(slot))
}

// slicesFor is a number of slices of a cell, or as many as its campaign asks for in seconds.
func slicesFor(s campaign.Sampling, c result.Cell, n int) int {
	_, length := workload.SliceOf(s.Slice(), 0, longSlices(c))
	return max(n, int(math.Ceil(s.SlicedSeconds/length.Seconds()-1e-9)))
}

// slicesByNoise is the number of slices that a campaign names. Where it leaves that open, the
// noise of slices within a typical sample is to be about as large as what the campaign
// aims at; the rest is between blocks. It is the same for all cells: one slice that
// the hypervisor interrupted in the first block says nothing about its cell. It depends on
// the records of the first block alone, so that a resumed run takes the same. A time budget
// bounds it: more blocks of fewer slices give a narrower interval than few long blocks.
func (r *run) slicesByNoise(slot plan.Slot) int {
	if r.Sampling.Slices > 0 {
		return r.Sampling.Slices
	}
	if slot.Block == 1 || len(r.spread) == 0 || r.Sampling.TargetRelativeHalfwidth <= 0 {
		return firstSlices
	}
	typical := median(slices.Collect(maps.Values(r.spread)))
	n := math.Ceil(math.Pow(typical/r.Sampling.TargetRelativeHalfwidth, 2))
	return int(max(min(n, mostSlices, r.slicesInBudget()), fewestSlices))
}

// noteSpread keeps by how much a first block's slices differ, as a share: the median
// distance from their median, scaled to a standard deviation, which a few interrupted
// slices do not change.
func (r *run) noteSpread(s *result.Sample) {
	if s.Block != 1 || s.Status != result.StatusOK || s.Slices == nil || len(s.Slices.PerSecond) < 2 {
		return
	}
	const toStandardDeviation = 1.4826
	typical := median(s.Slices.PerSecond)
	if typical <= 0 {
		return
	}
	distances := make([]float64, len(s.Slices.PerSecond))
	for i, v := range s.Slices.PerSecond {
		distances[i] = math.Abs(v - typical)
	}
	r.spread[s.Cell] = toStandardDeviation * median(distances) / typical
}

func median(xs []float64) float64 {
	sorted := slices.Sorted(slices.Values(xs))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// drainOf is the longest that a slice of a sample took beyond its length. One that the
// machine held up counts for four lengths at most, or for twice what is usual on a path
// that queues for longer than that.
func drainOf(t *slicedTry) (longest time.Duration) {
	var drains []time.Duration
	var length time.Duration
	for _, s := range t.report.Native.Slices {
		turn := t.turns[s.Turn]
		length = max(length, turn.Length)
		drains = append(drains, s.End-turn.At-turn.LeadIn-turn.Length)
	}
	if len(drains) == 0 {
		return 0
	}
	slices.Sort(drains)
	return min(drains[len(drains)-1], max(4*length, 2*drains[len(drains)/2]))
}

// dropOverlaps leaves out slices whose drain ran into the time of the next one:
// both were on the path at the same time. It notes how long drains take.
func (r *run) dropOverlaps(tries []*slicedTry) {
	type span struct {
		try        *slicedTry
		slice      int
		leadIn     time.Duration
		begin, end time.Duration // of the counted part
	}
	var spans []span
	for _, t := range tries {
		if t.err != nil || t.report.Native == nil {
			continue
		}
		for i, s := range t.report.Native.Slices {
			spans = append(spans, span{t, i, t.turns[s.Turn].At, s.Begin, s.End})
		}
		r.drains[t.sample.Cell] = max(r.drains[t.sample.Cell], drainOf(t))
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.leadIn, b.leadIn) })
	bad := map[*slicedTry]map[int]bool{}
	mark := func(s span) {
		if bad[s.try] == nil {
			bad[s.try] = map[int]bool{}
		}
		bad[s.try][s.slice] = true
	}
	for i := 1; i < len(spans); i++ {
		for j := i - 1; j >= 0 && j >= i-3; j-- { // a drain is bounded, so no older one can reach
			if spans[j].end > spans[i].leadIn {
				mark(spans[j])
				if spans[j].end > spans[i].begin {
					mark(spans[i])
				}
			}
		}
	}
	for t, of := range bad {
		n := t.report.Native
		kept := n.Slices[:0:0]
		for i, s := range n.Slices {
			if !of[i] {
				kept = append(kept, s)
			}
		}
		n.Slices = kept
	}
}
