//go:build linux

package traffic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// role is what one connection or flow of a run is for.
type role byte

const (
	upload     role = iota // the client sends
	download               // the server sends
	roundTrips             // requests from the client, responses from the server
	background             // the client sends at BackgroundRate; not measured
)

// roles lists the connections or flows of a run; both halves make the same
// list, and a connection names its index in it.
func roles(cfg Config) []role {
	var list []role
	add := func(r role, n int) {
		for range n {
			list = append(list, r)
		}
	}
	switch {
	case cfg.roundTrips():
		add(roundTrips, cfg.Streams)
	case cfg.Direction == Reverse:
		add(download, cfg.Streams)
	case cfg.Direction == Bidirectional:
		add(upload, cfg.Streams)
		add(download, cfg.Streams)
	default:
		add(upload, cfg.Streams)
	}
	if cfg.Test == LatencyUnderLoad {
		add(roundTrips, 1)
	}
	add(background, cfg.BackgroundStreams)
	return list
}

// worker is one thread of a half.
type worker interface {
	// work runs to the end of the worker's part; an error fails the run.
	work() error
	// report adds what it counted.
	report(*tally)
}

// run is what all threads of one half share.
type run struct {
	cfg   Config
	token [tokenBytes]byte
	cpus  []int
	// in beats when something of the other half came, out when the kernel took
	// something for it.
	in, out heartbeat
	rest    int64 // see restOf
	// carriers are processes that carry a server's packets in user space.
	carriers []int
	// recv is the window of what this half receives (bytes, or responses), send
	// that of what it sends.
	recv, send *window

	// conditions are those in force, as read back; mu guards them.
	conditions map[string]string
	// seen are the CPUs that threads were on; mu guards them.
	seen []int

	over      atomic.Bool // the other half is through
	stopped   atomic.Bool // the run has failed or was cancelled
	strangers atomic.Int64
	lastMarks atomic.Int64 // streams of the client that know that they are through

	mu  sync.Mutex
	err error
}

func newRun(cfg Config, server bool) (*run, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	token, err := cfg.token()
	if err != nil {
		return nil, err
	}
	cpus, err := usable(cfg.CPUs)
	if err == nil && cpus == nil {
		cpus, err = ChooseCPUs(cfg.Placement, server)
	}
	if err != nil {
		return nil, err
	}
	r := &run{cfg: cfg, token: token, cpus: cpus, rest: restOf(cfg), recv: newWindow(cfg), send: newWindow(cfg)}
	r.in.idle = int64(silenceOf(cfg))
	r.out.idle = r.in.idle
	return r, nil
}

// fail ends all threads of this half; the first reason is kept.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.stopped.Store(true)
}

// do runs the workers, each on a thread of its own, and adds up what they
// counted. main is the window that this half's probes follow.
func (r *run) do(ctx context.Context, workers []worker, main *window, h Hooks) (Report, error) {
	room(len(workers))
	stop := context.AfterFunc(ctx, func() { r.fail(context.Cause(ctx)) })
	defer stop()
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		main.watch(h, over)
	}()
	var threads sync.WaitGroup
	for i, w := range workers {
		threads.Add(1)
		go func() {
			defer threads.Done()
			if err := r.own(i); err != nil {
				r.fail(err)
				return
			}
			stop, err := tick()
			if err == nil {
				err = errors.Join(w.work(), stop())
			}
			r.noteCPU(currentCPU())
			if err != nil {
				r.fail(err)
			}
		}()
	}
	threads.Wait()
	close(over)
	<-watched
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return Report{}, r.err
	}
	t := tally{cfg: r.cfg}
	for _, w := range workers {
		w.report(&t)
	}
	report, err := t.report()
	report.Strangers, report.Conditions, report.CPUs = r.strangers.Load(), r.conditions, r.seen
	return report, err
}

// noteCPU keeps which CPU a thread was on at its end, for the report.
func (r *run) noteCPU(cpu int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = union(r.seen, []int{cpu})
}

// errSilent is the reason when nothing was heard for too long.
func (r *run) errSilent(what string) error {
	return fmt.Errorf("%s for %.3g s: the other end is gone, or the path is cut", what, float64(r.in.idle)/1e9)
}

var (
	errEarly = errors.New("the other end closed the connection before the measured window was over")
	errDead  = errors.New("the other end does not end the run: it is gone, or the path is cut")
)
