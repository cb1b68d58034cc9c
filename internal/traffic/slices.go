//go:build linux

package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Slices. The speed of a machine changes within a second, so a sample that is one
// long window is compared with windows of another speed. A sliced run sends for a
// few milliseconds at a time, in turns with the runs that it is compared with, over
// connections that stay open. Its driving half follows a list of turns on its own
// monotonic clock, so the control path may be slow.
//
// A slice is a lead-in, which is not counted, and a counted part. Each part ends
// only when the other end has consumed all of it: what is counted is all of the
// work over all of the time that it took, and nothing of it is left over for the
// next slice.

const (
	// sliceStall is how long a slice may take beyond its length before its run
	// fails: the other end is gone, stopped, or the path is cut.
	sliceStall = 2 * time.Second
	// sliceLate is how late the first thread of a run may begin a slice; one that
	// would be later is left out, as its time belongs to another run.
	sliceLate = 2 * time.Millisecond
)

// Now is the monotonic clock that turns are on, nanoseconds.
func Now() int64 { return nanotime() }

// sliceEnd is one thread of a sliced run's driving half.
type sliceEnd interface {
	// slice runs a lead-in and a counted part. It fills in all but the turn.
	slice(leadIn, length time.Duration, s *Slice) error
	// interrupt ends a call that blocks; the run has failed or is over.
	interrupt()
	// release closes the connection, once the thread has ended.
	release()
	// thread is what every thread of a sliced run has.
	thread() *sliceWorker
}

// Slicer is the driving half of a sliced run. Its connections are open from
// OpenSlices on, and its threads wait; Close must follow.
type Slicer struct {
	run     *run
	threads []*sliceThread
	gate    *sliceGate
	busy    sync.WaitGroup
	opened  time.Duration
}

// sliceThread is one of its threads.
type sliceThread struct {
	end    sliceEnd
	work   chan sliceWork
	due    atomic.Int64 // when the present slice must be over; 0: none is under way
	slices []Slice
	missed int
	cpus   []int
}

type sliceWork struct {
	start int64
	turns []Turn
	done  *sync.WaitGroup
}

// OpenSlices connects to the server's data port. carriers are processes whose CPU
// time belongs to the driving end's.
func OpenSlices(ctx context.Context, cfg Config, server netip.AddrPort, carriers []int) (*Slicer, error) {
	cfg.Sliced = true
	r, err := newRun(cfg, false)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	ends, err := r.openEnds(ctx, server)
	if err != nil {
		return nil, err
	}
	d := &Slicer{run: r, gate: newSliceGate(len(ends)), opened: time.Since(begin)}
	ends[0].thread().shared = sharedClocks(carriers)
	d.opened = min(d.opened, openTime(ends))
	room(len(ends))
	for i, e := range ends {
		e.thread().gate = d.gate
		t := &sliceThread{end: e, work: make(chan sliceWork)}
		d.threads = append(d.threads, t)
		d.busy.Add(1)
		go func() {
			defer d.busy.Done()
			d.serve(t, i)
		}()
	}
	return d, nil
}

// openEnds makes the driving ends of all connections or flows.
func (r *run) openEnds(ctx context.Context, server netip.AddrPort) ([]sliceEnd, error) {
	list := roles(r.cfg)
	if r.cfg.Test == TCPCRR {
		return r.crrEnds(server)
	}
	var fds []int
	var err error
	if r.cfg.udp() {
		fds, err = r.dialUDP(ctx, server)
	} else {
		var conns, dialErr = dial(ctx, r, server, len(list))
		if err = dialErr; err == nil {
			fds, err = r.take(conns, list)
		}
	}
	if err != nil {
		return nil, err
	}
	var ends []sliceEnd
	for i, fd := range fds {
		if r.cfg.udp() {
			err = timeoutOf(fd, time.Duration(markAgain))
		}
		var e sliceEnd
		switch {
		case err != nil:
		case r.cfg.Test == UDPRR:
			e = newUDPSliceRequester(r, fd, i)
		case r.cfg.Test == UDPStream:
			e, err = newUDPSliceSender(r, fd, i)
		case list[i] == roundTrips:
			e = newTCPSliceRequester(r, fd)
		case list[i] == download:
			e = newTCPSliceReceiver(r, fd)
		default:
			e = newTCPSliceSender(r, fd)
		}
		if err != nil {
			return nil, errors.Join(err, closeFDs(fds))
		}
		ends = append(ends, e)
	}
	return ends, nil
}

// OpenTime is how long connecting took, which bounds the round trip from above. What a
// lost packet added to it is left out where the kernel knows the round trip.
func (d *Slicer) OpenTime() time.Duration { return d.opened }

// serve is the life of one thread.
func (d *Slicer) serve(t *sliceThread, index int) {
	err := d.run.own(index)
	if err == nil {
		err = t.end.thread().onThread()
	}
	if err != nil {
		d.run.fail(err)
	}
	d.run.noteScheduling()
	for w := range t.work {
		for i, turn := range w.turns {
			if d.run.stopped.Load() {
				break
			}
			if err := d.turn(t, index, i, turn, w.start); err != nil {
				d.run.fail(err)
				d.interrupt()
			}
		}
		t.due.Store(0)
		w.done.Done()
	}
	if err := t.end.thread().offThread(); err != nil {
		d.run.fail(err)
	}
}

// turn waits for one turn and runs its slice.
func (d *Slicer) turn(t *sliceThread, index, i int, turn Turn, start int64) error {
	at := start + int64(turn.At)
	waitUntil(at)
	if !d.gate.takes(i, nanotime() > at+int64(sliceLate)) {
		t.missed++
		return nil
	}
	t.due.Store(at + int64(turn.LeadIn+turn.Length+sliceStall))
	s := Slice{Turn: i}
	err := t.end.thread().ticking(true)
	if err == nil {
		err = errors.Join(t.end.slice(turn.LeadIn, turn.Length, &s), t.end.thread().ticking(false))
	}
	t.due.Store(0)
	if err != nil {
		if d.run.stopped.Load() {
			return nil // interrupted: the reason is known already
		}
		return err
	}
	s.Begin -= time.Duration(start)
	s.End -= time.Duration(start)
	t.slices = append(t.slices, s)
	if cpu := currentCPU(); !slices.Contains(t.cpus, cpu) {
		t.cpus = append(t.cpus, cpu)
	}
	return nil
}

// Run follows a schedule that begins at start on this half's monotonic clock. An
// error means that nothing can be said of the run.
func (d *Slicer) Run(ctx context.Context, start int64, turns []Turn) (Report, error) {
	stop := context.AfterFunc(ctx, func() {
		d.run.fail(context.Cause(ctx))
		d.interrupt()
	})
	defer stop()
	var done sync.WaitGroup
	d.gate.begin(len(turns))
	for _, t := range d.threads {
		t.slices, t.missed, t.cpus = make([]Slice, 0, len(turns)), 0, nil
		done.Add(1)
		t.work <- sliceWork{start, turns, &done}
	}
	over := make(chan struct{})
	go func() { done.Wait(); close(over) }()
	d.watch(over)
	d.run.mu.Lock()
	err := d.run.err
	d.run.mu.Unlock()
	if err != nil {
		return Report{}, err
	}
	return d.report(turns)
}

// watch fails the run when a slice takes too long.
func (d *Slicer) watch(over <-chan struct{}) {
	tick := time.NewTicker(sliceStall / 8)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		now := nanotime()
		for _, t := range d.threads {
			if due := t.due.Load(); due != 0 && now > due {
				d.run.fail(fmt.Errorf("no answer for %v: the other end is gone or stopped, or the path is cut", sliceStall))
				d.interrupt()
			}
		}
	}
}

func (d *Slicer) interrupt() {
	d.gate.interrupt()
	for _, t := range d.threads {
		t.end.interrupt()
	}
}

// report adds up what the threads counted.
func (d *Slicer) report(turns []Turn) (Report, error) {
	sums := make([]Slice, len(turns))
	counted := make([]int, len(turns))
	t := tally{cfg: d.run.cfg}
	missed := 0
	for _, th := range d.threads {
		missed = max(missed, th.missed)
		for _, s := range th.slices {
			sums[s.Turn].add(s)
			counted[s.Turn]++
		}
		if e, ok := th.end.(interface{ finish(*tally) }); ok { // what it kept over all slices
			e.finish(&t)
		}
	}
	if len(turns) > 0 && missed == len(turns) {
		return Report{}, errors.New("every slice would have begun too late: the schedule arrived after its time, or this end gets no CPU")
	}
	r, err := t.report()
	for i, s := range sums {
		if counted[i] == len(d.threads) { // all streams took part
			r.Slices = append(r.Slices, s)
		}
	}
	r.MissedSlices = len(turns) - len(r.Slices)
	r.Strangers = d.run.strangers.Load()
	r.Conditions = d.run.conditions
	for _, th := range d.threads {
		r.CPUs = union(r.CPUs, th.cpus)
	}
	r.WindowSeconds = 0
	for _, s := range r.Slices {
		r.WindowSeconds += s.Seconds()
	}
	return r, err
}

// Close ends the threads and closes the connections.
func (d *Slicer) Close() {
	d.run.fail(errors.New("closed"))
	d.interrupt()
	for _, t := range d.threads {
		close(t.work)
	}
	d.busy.Wait()
	for _, t := range d.threads {
		t.end.release()
	}
}

func union(a, b []int) []int {
	for _, v := range b {
		if !slices.Contains(a, v) {
			a = append(a, v)
		}
	}
	slices.Sort(a)
	return a
}

// waitUntil sleeps until a time of nanotime. Unlike sleepUntil it lets the Go
// scheduler know, as a wait between slices may be long.
func waitUntil(t int64) {
	ts := unix.NsecToTimespec(t)
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil) == unix.EINTR {
		continue
	}
}

// shut ends all calls that block on a socket.
func shut(fd int) { _ = unix.Shutdown(fd, unix.SHUT_RDWR) } // it may be shut already
