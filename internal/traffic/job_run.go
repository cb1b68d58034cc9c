//go:build linux

package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Job is one rank of a job. Its data port is open from JoinJob on; Run or Close must
// follow.
type Job struct {
	run     *run
	cfg     JobConfig
	l       *net.TCPListener
	allowed int // CPUs
}

// JoinJob opens the data port of a rank, a free one, on all addresses.
func JoinJob(cfg JobConfig) (*Job, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	base := Config{Test: TCPRR, Token: cfg.Token, MessageBytes: 1, Streams: 1, Warmup: cfg.Warmup, Window: cfg.Window, CongestionControl: cfg.CongestionControl}
	r, err := newRun(base, true)
	if err != nil {
		return nil, err
	}
	allowed, err := allowedCPUs()
	if err != nil {
		return nil, err
	}
	if r.cpus, err = chooseRankCPU(cfg.Placement, cfg.LocalRank, allowed); err != nil {
		return nil, err
	}
	l, err := listenTCP(context.Background(), base)
	if err != nil {
		return nil, err
	}
	return &Job{run: r, cfg: cfg, l: l, allowed: len(allowed)}, nil
}

// Port is the number of the data port.
func (j *Job) Port() uint16 { return j.l.Addr().(*net.TCPAddr).AddrPort().Port() }

// Close closes the port of a rank that does not run, and ends one that does.
func (j *Job) Close() {
	j.run.fail(errJobStopped)
	_ = j.l.Close() // a second time it is closed already
}

// Run connects the rank with all others, whose addresses are in the order of ranks, and
// runs operations until the measured window is over. It closes the port. An error comes
// within 5 s of what caused it; where other ranks may be the cause it is a *JobError.
func (j *Job) Run(ctx context.Context, ranks []netip.AddrPort) (JobReport, error) {
	if len(ranks) != j.cfg.Ranks {
		j.Close()
		return JobReport{}, fmt.Errorf("%d addresses for %d ranks", len(ranks), j.cfg.Ranks)
	}
	room(1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { j.run.fail(context.Cause(ctx)) })
	defer stop()
	higher := j.cfg.Ranks - 1 - j.cfg.Rank
	d := &acceptor{run: j.run, l: j.l, expected: higher, arrived: make(chan arrival, higher), seen: map[int]bool{}}
	closed := make(chan struct{})
	go func() { defer close(closed); d.open() }()
	fds, err := j.connect(ctx, cancel, d, ranks)
	var report JobReport
	if err == nil {
		report, err = j.work(fds)
		err = errors.Join(err, closeRanks(fds))
	}
	_ = j.l.Close() // Close may have done it
	<-closed
	d.turnAway()
	if err != nil {
		return JobReport{}, j.because(err)
	}
	report.Strangers = j.run.strangers.Load()
	return report, nil
}

// because is the reason of a rank's end: that of its cancelling, if it was cancelled.
func (j *Job) because(err error) error {
	j.run.mu.Lock()
	defer j.run.mu.Unlock()
	if j.run.err != nil && errors.Is(err, errJobStopped) {
		return j.run.err
	}
	var e *JobError
	if errors.As(err, &e) {
		return e
	}
	return err
}

// work runs the rank on a thread of its own.
func (j *Job) work(fds []int) (report JobReport, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err = j.run.own(0); err != nil {
			return
		}
		k := newRank(j.run, j.cfg, fds)
		report, err = k.repeat()
		j.run.noteCPU(currentCPU())
	}()
	<-done
	report.CPUs, report.AllowedCPUs, report.Conditions = j.run.seen, j.allowed, j.run.conditions
	return report, err
}

// closeRanks closes the connections to other ranks. After an error they are reset by the
// kernel where something was not read, which other ranks see at once.
func closeRanks(fds []int) error {
	var errs error
	for _, fd := range fds {
		if fd >= 0 {
			errs = errors.Join(errs, unix.Close(fd))
		}
	}
	return errs
}

// connect gives a connection to each other rank, by rank: this one calls those below it
// and is called by those above it. Each call begins with the token.
func (j *Job) connect(ctx context.Context, cancel context.CancelCauseFunc, d *acceptor, ranks []netip.AddrPort) ([]int, error) {
	type answer struct {
		conns []*net.TCPConn
		err   error
	}
	came := make(chan answer, 1)
	go func() {
		if d.expected == 0 {
			came <- answer{}
			return
		}
		conns, err := d.gather(ctx)
		came <- answer{conns, err}
	}()
	called, err := j.call(ctx, ranks[:j.cfg.Rank])
	if err != nil {
		cancel(err) // nobody needs those that still come
	}
	above := <-came
	if err == nil && above.err != nil {
		err = j.missing(ctx, d, above.err)
	}
	if err != nil {
		return nil, errors.Join(err, closeAll(called), closeAll(above.conns))
	}
	all := append(called, above.conns...)
	list := make([]role, len(all))
	for i := range list {
		list[i] = roundTrips
	}
	open, err := j.run.take(all, list)
	if err != nil {
		return nil, err
	}
	fds := append(append(append([]int{}, open[:j.cfg.Rank]...), -1), open[j.cfg.Rank:]...)
	for _, fd := range open {
		if err := timeouts(fd); err != nil {
			return nil, errors.Join(err, closeRanks(fds))
		}
	}
	return fds, nil
}
