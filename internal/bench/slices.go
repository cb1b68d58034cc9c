package bench

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

// Samples of native traffic come in slices, in random turns with the samples that
// they are compared with: those of one block and one baseline are a batch. The
// connections of a batch are opened, then all its clients follow one schedule on
// the monotonic clock of the machine that they share.

const (
	// firstSlices is the number of slices in the first block, from whose noise that
	// of the others follows; fewestSlices and mostSlices bound it.
	firstSlices  = 10
	fewestSlices = 5
	mostSlices   = 50
	// betweenSlices is kept free after a slice, beside what its drain has taken in
	// blocks before; firstDrain is that in the first.
	betweenSlices = time.Millisecond
	firstDrain    = 2 * time.Millisecond
	// leastStart is how far ahead of its first turn a schedule is sent, beside what
	// the control path takes; mostStart bounds both.
	leastStart = 20 * time.Millisecond
	mostStart  = 3 * time.Second
	// batchPatience is what a batch may take beyond its schedule, and opening one.
	batchPatience = 3 * time.Second
	openPatience  = 10 * time.Second
	// openAtOnce is how many samples are opened at the same time.
	openAtOnce = 8
)

// turnsOf are what a block measures one after the other: a batch of sliced samples,
// or samples that have one window each.
type turnsOf struct {
	slots  []plan.Slot
	sliced bool
}

// inTurns splits the samples of a block. Those of one batch are gathered at the
// place of the first of them.
func (r *run) inTurns(todo []plan.Slot) []turnsOf {
	var out []turnsOf
	at := map[result.Cell]int{}
	for _, together := range plan.Together(todo) {
		first := together[0]
		if first.Round > 0 || r.Sampling.Slice() <= 0 || !workload.Sliceable(first.Cell) {
			out = append(out, turnsOf{slots: together})
			continue
		}
		key := first.Cell.Baseline()
		i, known := at[key]
		if !known {
			i = len(out)
			at[key] = i
			out = append(out, turnsOf{sliced: true})
		}
		out[i].slots = append(out[i].slots, first)
	}
	return out
}

// batch measures sliced samples in turns, with their retries, and records each.
func (r *run) batch(ctx context.Context, slots []plan.Slot) error {
	for len(slots) > 0 {
		tries := make([]*slicedTry, len(slots))
		for i, slot := range slots {
			tries[i] = &slicedTry{try: r.prepare(ctx, slot), slot: slot}
		}
		for _, machine := range byMachine(tries) {
			r.measureBatch(ctx, machine)
		}
		if r.explains(slots[0].Block) {
			r.explainBatch(ctx, tries)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx) // what was cut short is no sample
		}
		var again []plan.Slot
		var ends error // why the run ends after this batch
		for _, t := range tries {
			t.finish()
			if isLost(t.err) && !r.KeepGoing {
				ends = cmp.Or(ends, t.err)
				continue // what was measured beside it is recorded
			}
			if err := r.record(t.try); err != nil {
				return err
			}
			if s := t.sample; s.Status != result.StatusOK && s.Attempt <= r.Sampling.Retries {
				again = append(again, t.slot)
			}
		}
		if ends != nil {
			return ends
		}
		slots = again
	}
	return nil
}

// slicedTry is one attempt at a sliced sample.
type slicedTry struct {
	*try
	slot           plan.Slot
	params         workload.Params
	server, client string // sessions
	opened         time.Duration
	turns          []traffic.Turn
	slices         int
	report         workload.Output
}

// byMachine splits tries by the machine that their clients are on, whose clock they
// share. Those whose servers need the same port come after each other.
func byMachine(tries []*slicedTry) [][]*slicedTry {
	type taken struct {
		at   *agent.Client
		port uint16
	}
	var out [][]*slicedTry
	at, busy := map[string]int{}, map[taken]int{}
	for _, t := range tries {
		if t.err != nil {
			continue
		}
		id := machine(t.ends.Client)
		if port := t.ends.ServerPort; port != 0 { // one server at a time has it
			key := taken{t.ends.Server.Agent, port}
			id = fmt.Sprintf("%s %d", id, busy[key])
			busy[key]++
		}
		i, known := at[id]
		if !known {
			i = len(out)
			at[id] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], t)
	}
	return out
}

// measureBatch opens, runs and ends the traffic of samples whose clients share a
// clock. What goes wrong with one is its own error.
func (r *run) measureBatch(ctx context.Context, tries []*slicedTry) {
	begin := time.Now()
	each(tries, openAtOnce, func(t *slicedTry) { r.open(ctx, t) })
	live := slices.DeleteFunc(slices.Clone(tries), func(t *slicedTry) bool { return t.err != nil })
	length := r.schedule(live)
	if len(live) > 0 {
		r.follow(ctx, live, length)
	}
	each(tries, openAtOnce, func(t *slicedTry) { r.end(ctx, t) })
	if len(live) > 0 && live[0].slot.Block >= steadyBlock {
		r.clock.measuring += min(length.Seconds(), time.Since(begin).Seconds())
	}
	r.dropOverlaps(live)
	for _, t := range live {
		if t.err == nil {
			t.err = r.take(t)
		}
	}
}

// each calls f for all tries, some at the same time.
func each(tries []*slicedTry, atOnce int, f func(*slicedTry)) {
	var wait sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, t := range tries {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			f(t)
		})
	}
	wait.Wait()
}

// open starts the server of a sample and connects its client.
func (r *run) open(ctx context.Context, t *slicedTry) {
	ctx, cancel := context.WithTimeoutCause(ctx, openPatience, fmt.Errorf("the connections were not open after %v", openPatience))
	defer cancel()
	t.params = workload.Params{Cell: t.sample.Cell, Window: r.Sampling.Slice(), Warmup: r.Sampling.Slice(), Sliced: true, Token: newToken(), SharedClock: t.ends.SharedClock}
	if shaped(t.sample.Cell) {
		t.params.Warmup *= 10 // the bound of a slice that a client may order
	}
	serve, err := t.work.Serve(t.params)
	if err != nil {
		t.err = err
		return
	}
	var session agent.ServeResult
	if err := t.ends.Server.Agent.Call(ctx, agent.MethodServe, agent.ServeParams{Program: serve, Port: t.ends.ServerPort}, &session); err != nil {
		t.err = fmt.Errorf("server at %s: %w", t.ends.Server.Name, err)
		return
	}
	t.server = session.Session
	target := netip.AddrPortFrom(t.ends.ServerAddress, cmp.Or(t.ends.TargetPort, session.Port))
	drive, err := t.work.Drive(t.params, target)
	if err != nil {
		t.err = err
		return
	}
	var opened agent.OpenResult
	if err := t.ends.Client.Agent.Call(ctx, agent.MethodOpen, agent.DriveParams{Program: drive, Server: target.String()}, &opened); err != nil {
		t.err = fmt.Errorf("client at %s: %w", t.ends.Client.Name, err)
		return
	}
	t.client, t.opened = opened.Session, time.Duration(opened.OpenNanoseconds)
}

// shaped tells whether a cell's link lets through no more than its rate.
func shaped(c result.Cell) bool { return c.Link != "unshaped" && c.Link != "local" && c.Link != "" }

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
	}
	rng := rand.New(rand.NewChaCha8(r.batchKey(tries[0].slot)))
	at := time.Duration(0)
	for round := range rounds {
		for _, i := range rng.Perm(len(tries)) {
			t := tries[i]
			if (round+1)*t.slices/rounds == round*t.slices/rounds {
				continue // it has fewer slices than there are rounds
			}
			stream := t.sample.Cell.Workload == traffic.TCPStream || t.sample.Cell.Workload == traffic.UDPStream
			leadIn, length := workload.SliceOf(r.Sampling.Slice(), t.opened, stream && shaped(t.sample.Cell))
			t.turns = append(t.turns, traffic.Turn{At: at, LeadIn: leadIn, Length: length})
			drain, known := r.drains[t.sample.Cell]
			if !known {
				drain = firstDrain
			}
			at += leadIn + length + drain + betweenSlices
		}
	}
	return at
}

// batchKey seeds the order of turns: by the plan, the block and the batch.
func (r *run) batchKey(first plan.Slot) (key [32]byte) {
	binary.LittleEndian.PutUint64(key[:], r.Plan.Seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(first.Block))
	binary.LittleEndian.PutUint64(key[16:], uint64(first.Index)+1)
	return key
}

// slicesOf is the number of slices of a sample. Where the campaign leaves it open, the
// noise of slices within a sample is to be about as large as what the campaign aims
// at; the rest is the blocks' to tell. It depends on the records of the first block
// alone, so that a resumed run takes the same.
func (r *run) slicesOf(slot plan.Slot) int {
	if r.Sampling.Slices > 0 {
		return r.Sampling.Slices
	}
	spread, known := r.spread[slot.Cell]
	if slot.Block == 1 || !known || r.Sampling.TargetRelativeHalfwidth <= 0 {
		return firstSlices
	}
	n := math.Ceil(math.Pow(spread/r.Sampling.TargetRelativeHalfwidth, 2))
	return int(min(max(n, fewestSlices), mostSlices))
}

// noteSpread keeps the coefficient of variation of a first block's slices.
func (r *run) noteSpread(s result.Sample) {
	if s.Block != 1 || s.Status != result.StatusOK || s.Slices == nil || len(s.Slices.PerSecond) < 2 {
		return
	}
	var mean, ss float64
	for i, v := range s.Slices.PerSecond {
		d := v - mean
		mean += d / float64(i+1)
		ss += d * (v - mean)
	}
	if mean > 0 {
		r.spread[s.Cell] = math.Sqrt(ss/float64(len(s.Slices.PerSecond)-1)) / mean
	}
}

// follow has all clients follow the schedule, on their machine's clock.
func (r *run) follow(ctx context.Context, tries []*slicedTry, length time.Duration) {
	var control time.Duration // what the control path takes
	for _, t := range tries {
		control = max(control, t.opened)
	}
	begin := time.Now()
	var clock agent.ClockResult
	first := tries[0].ends.Client.Agent
	short, cancel := context.WithTimeoutCause(ctx, batchPatience, errors.New("the agent does not answer"))
	err := first.Call(short, agent.MethodClock, struct{}{}, &clock)
	cancel()
	if err != nil {
		for _, t := range tries {
			t.err = fmt.Errorf("client at %s: %w", t.ends.Client.Name, err)
		}
		return
	}
	ahead := min(leastStart+4*max(time.Since(begin), control), mostStart)
	start := clock.Now + int64(ahead)
	bound := ahead + length + batchPatience
	ctx, cancel = context.WithTimeoutCause(ctx, bound, fmt.Errorf("no answer %v after the last slice", batchPatience))
	defer cancel()
	var places []testbed.Place
	for _, t := range tries {
		places = append(places, t.ends.Client, t.ends.Server)
	}
	defer r.watchAlive(ctx, places...)()
	each(tries, len(tries), func(t *slicedTry) {
		params := agent.SlicesParams{Session: t.client, Start: start, Turns: t.turns}
		if err := t.ends.Client.Agent.Call(ctx, agent.MethodSlices, params, &t.report); err != nil {
			t.err = fmt.Errorf("client at %s: %w", t.ends.Client.Name, err)
		}
	})
}

// end ends the server of a sample, and all of one that failed.
func (r *run) end(ctx context.Context, t *slicedTry) {
	if t.err != nil {
		r.cancelSliced(ctx, t)
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, batchPatience, errors.New("the agent does not answer"))
	defer cancel()
	var server workload.Output
	if err := t.ends.Server.Agent.Call(ctx, agent.MethodFinish, agent.FinishParams{Session: t.server}, &server); err != nil {
		t.err = fmt.Errorf("server at %s: %w", t.ends.Server.Name, err)
		return
	}
	t.served = server
}

// cancelSliced ends what is left of a sample that failed. Other samples of the
// batch may have their ends in the same agents, which go on.
func (r *run) cancelSliced(ctx context.Context, t *slicedTry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchPatience)
	defer cancel()
	for _, e := range []struct {
		at      testbed.Place
		session string
	}{{t.ends.Client, t.client}, {t.ends.Server, t.server}} {
		if e.session != "" && e.at.Agent != nil {
			// An agent that does not answer is replaced by the next Ends.
			_ = e.at.Agent.Call(ctx, agent.MethodAbandon, agent.FinishParams{Session: e.session}, nil)
		}
	}
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
		longest := r.drains[t.sample.Cell]
		for i, s := range t.report.Native.Slices {
			turn := t.turns[s.Turn]
			spans = append(spans, span{t, i, turn.At, s.Begin, s.End})
			longest = max(longest, min(s.End-turn.At-turn.LeadIn-turn.Length, 4*turn.Length))
		}
		r.drains[t.sample.Cell] = longest
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

// take makes the record of what the slices counted.
func (r *run) take(t *slicedTry) error {
	s := &t.sample
	m, err := t.work.Parse(t.params, t.served, t.report)
	if err != nil {
		return err
	}
	s.MeasuredSeconds, s.Metrics, s.Histogram = &m.MeasuredSeconds, m.Metrics, m.Histogram
	s.Warnings = m.Warnings
	leadIn, length := t.turns[0].LeadIn, t.turns[0].Length
	s.RequestedSeconds = float64(t.slices) * length.Seconds()
	s.Slices = &result.Slices{LengthSeconds: length.Seconds(), LeadInSeconds: leadIn.Seconds(), Asked: t.slices, PerSecond: m.SliceRates}
	if left := len(m.SliceRates); left < t.slices/2 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d of %d slices are left: the others began too late or ran into another's time; leave the client more CPU, or set a larger sampling.slice_seconds", left, t.slices))
	}
	profileOf(s, t.ends)
	conditionsOf(s, t.report, t.served)
	mtuOf(s, t.ends)
	return nil
}

// finish makes a try's sample a record.
func (t *slicedTry) finish() {
	s := &t.sample
	if t.err == nil {
		s.Status = result.StatusOK
		t.err = s.Validate()
	}
	if t.err != nil {
		failed(s, t.err)
	}
}

// explains tells whether the samples of a block have explaining windows.
func (r *run) explains(block int) bool {
	every := max(1, r.Sampling.ExplainEvery)
	return r.Sampling.Explain() > 0 && !r.noProbes() && (block-1)%every == 0
}

// explainBatch reads the probes in a window of each sample's traffic apart from its
// slices. A window that fails leaves the sample without probes, and says so.
func (r *run) explainBatch(ctx context.Context, tries []*slicedTry) {
	for _, t := range tries {
		if t.err != nil || ctx.Err() != nil {
			continue
		}
		if err := r.explain(ctx, t); err != nil {
			t.sample.Warnings = append(t.sample.Warnings, "no probe was read: "+oneLine(err))
		}
	}
}

func (r *run) explain(ctx context.Context, t *slicedTry) error {
	s := &t.sample
	r.idle(ctx, s.Block, t.ends)
	p := workload.Params{Cell: s.Cell, Warmup: min(r.Sampling.Warmup(), r.Sampling.Explain()/2), Window: r.Sampling.Explain(), Token: newToken(), SharedClock: t.ends.SharedClock}
	readAgain := r.watchNodes(ctx, s, t.ends)
	server, client, err := r.traffic(ctx, p, t.try)
	if rawErr := r.saveRaw(s, server, client); rawErr != nil {
		err = errors.Join(err, rawErr)
	}
	if err != nil {
		return err
	}
	m, err := t.work.Parse(p, server, client)
	if err != nil {
		return err
	}
	s.Explaining = &result.Explaining{MeasuredSeconds: m.MeasuredSeconds, Metrics: m.Metrics}
	r.probes(s, t.ends, client, server)
	readAgain()
	return nil
}
