package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	fewestSlices = 8
	mostSlices   = 50
	// betweenSlices is kept free after a slice, in addition to what its drain has taken in
	// blocks before; firstDrain, streamDrain, shapedDrain and carriedDrain are that in the first (drainBefore).
	betweenSlices = time.Millisecond
	firstDrain    = 2 * time.Millisecond
	streamDrain   = 24 * time.Millisecond
	shapedDrain   = 10 * time.Millisecond
	carriedDrain  = 30 * time.Millisecond
	// streamTicks is what a parallel stream waits for its turns by the scheduler in most slices.
	// sendBuffer is how much a sender is taken to hold, bytes: twice what the kernel lets most of
	// them have.
	streamTicks = 16 * time.Millisecond
	sendBuffer  = 8 << 20
	// leastStart is how far ahead of its first turn a schedule is sent, in addition to what
	// the control path takes; mostStart bounds both.
	leastStart = 20 * time.Millisecond
	mostStart  = 3 * time.Second
	// batchPatience is what a batch may take beyond its schedule, and opening one.
	batchPatience = 3 * time.Second
	openPatience  = 10 * time.Second
	// longestSlice bounds what a client may have its server send at once.
	longestSlice = 10 * time.Second
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
		if !r.explaining.now {
			r.speeds(ctx, slots[0].Block, tries)
		}
		for _, machine := range byMachine(tries) {
			r.measureBatch(ctx, machine)
		}
		if r.explaining.now {
			r.explainBatch(ctx, tries)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx) // what was cut short is no sample
		}
		var again []plan.Slot
		var ends error // why the run ends after this batch
		for _, t := range tries {
			t.finish()
			if t.err == nil {
				r.noteSpeed(&t.sample, t.ends)
			}
			if isLost(t.err) && !r.KeepGoing {
				ends = cmp.Or(ends, t.err)
				continue // what was measured at the same time is recorded
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
	var places []testbed.Place
	for _, t := range tries {
		places = append(places, t.ends.Client, t.ends.Server)
	}
	defer r.watchAlive(ctx, places...)()
	for _, t := range tries {
		t.verified = r.watchWay(ctx, &t.sample)
	}
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
		if t.err == nil {
			t.err = t.verified()
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
	t.params = workload.Params{Cell: t.sample.Cell, Window: r.Sampling.Slice(), Warmup: longestSlice, Sliced: true, Token: agent.NewToken(), SharedClock: t.ends.SharedClock}
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

// take makes the record of what the slices counted.
func (r *run) take(t *slicedTry) error {
	s := &t.sample
	m, err := t.work.Parse(t.params, t.served, t.report)
	if err != nil {
		return err
	}
	s.MeasuredSeconds, s.Metrics, s.Histogram = &m.MeasuredSeconds, m.Metrics, m.Histogram
	s.Warnings = m.Warnings
	last := t.turns[len(t.turns)-1]
	leadIn, length := last.LeadIn, last.Length
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
