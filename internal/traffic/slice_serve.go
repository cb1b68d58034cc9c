//go:build linux

package traffic

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sliceServer is one thread of a sliced run's serving half.
type sliceServer interface {
	worker
	interrupt()
	thread() *sliceWorker
}

// runSliced serves one client's slices until the run is over.
func (s *Server) runSliced(ctx context.Context) (Report, error) {
	servers, release, err := s.openSliced(ctx)
	if err != nil {
		return Report{}, err
	}
	r := s.run
	room(len(servers))
	over := make(chan struct{})
	var ending sync.WaitGroup
	ending.Go(func() { r.endSliced(ctx, servers, over) })
	var mu sync.Mutex
	var cpus []int
	var threads sync.WaitGroup
	for i, w := range servers {
		threads.Go(func() {
			err := r.own(i)
			if err == nil {
				err = w.thread().onThread()
			}
			r.noteScheduling()
			if err == nil {
				err = errors.Join(w.work(), w.thread().offThread())
			}
			if err != nil {
				r.fail(err)
			}
			mu.Lock()
			defer mu.Unlock()
			cpus = union(cpus, []int{currentCPU()})
		})
	}
	threads.Wait()
	close(over)
	ending.Wait()
	release()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return Report{}, r.err
	}
	t := tally{cfg: r.cfg}
	for _, w := range servers {
		w.report(&t)
	}
	report, err := t.report()
	report.WindowSeconds = 0 // the client knows how long the slices were
	report.Strangers, report.Conditions, report.CPUs = r.strangers.Load(), r.conditions, cpus
	return report, err
}

// endSliced interrupts the threads once the run is over, has failed or was cancelled:
// they block without a timeout.
func (r *run) endSliced(ctx context.Context, servers []sliceServer, over <-chan struct{}) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !r.over.Load() && !r.stopped.Load() {
		select {
		case <-over:
			return
		case <-tick.C:
		case <-ctx.Done():
			r.fail(context.Cause(ctx))
		}
	}
	for _, w := range servers {
		w.interrupt()
	}
}

// openSliced waits for the client's connections or flows, and makes a thread for
// each. release closes them, once the threads have ended.
func (s *Server) openSliced(ctx context.Context) (servers []sliceServer, release func(), err error) {
	if s.run.cfg.Test == TCPCRR {
		return s.crrSinks()
	}
	list := roles(s.run.cfg)
	fds, release, err := s.slicedConns(ctx, list)
	if err != nil {
		return nil, nil, err
	}
	r := s.run
	clocks := r.serverClocks()
	for i, fd := range fds {
		var w sliceServer
		conn := newSliceConn(r, fd)
		if i == 0 {
			conn.shared = clocks
		}
		switch {
		case r.cfg.Test == UDPRR:
			e := newUDPSliceEcho(r, fd, i)
			e.shared = conn.shared
			w = e
		case r.cfg.Test == UDPStream:
			var sink *udpSliceSink
			if sink, err = newUDPSliceSink(r, fd, i); err == nil {
				sink.shared = conn.shared
				w = sink
			}
		case list[i] == roundTrips:
			w = &tcpSliceEcho{conn, make([]byte, r.cfg.requestBytes()), make([]byte, r.cfg.responseBytes())}
		case list[i] == download:
			w = &tcpSource{conn, make([]byte, r.cfg.MessageBytes)}
		default:
			w = &tcpSink{conn, make([]byte, max(streamBuffer, r.cfg.MessageBytes))}
		}
		if err != nil {
			release()
			return nil, nil, err
		}
		servers = append(servers, w)
	}
	return servers, release, nil
}

// serverClocks are those that are not the client's already: on one kernel both
// ends see the same threads of the kernel.
func (r *run) serverClocks() []int32 {
	if r.cfg.SharedClock {
		return processClocks(r.carriers)
	}
	return sharedClocks(r.carriers)
}

// slicedConns are the sockets of the client's connections or flows.
func (s *Server) slicedConns(ctx context.Context, list []role) (fds []int, release func(), err error) {
	if s.udp != nil {
		stop := make(chan struct{})
		if err := s.udp.gather(ctx); err != nil {
			s.udp.closeFlows()
			return nil, nil, errors.Join(err, unix.Close(s.udp.fd))
		}
		var listening sync.WaitGroup
		listening.Go(func() { s.udp.listen(stop) })
		return s.udp.flows, func() {
			close(stop)
			shut(s.udp.fd)
			listening.Wait()
			s.udp.countDropped()
			_ = unix.Close(s.udp.fd) // strangers' datagrams alone
			s.udp.closeFlows()
		}, nil
	}
	d := &acceptor{run: s.run, l: s.tcp, expected: len(list), arrived: make(chan arrival, len(list)), seen: map[int]bool{}}
	closed := make(chan struct{})
	go func() { defer close(closed); d.open() }()
	conns, err := d.gather(ctx)
	if err == nil {
		fds, err = s.run.take(conns, list)
	}
	if err != nil {
		err = errors.Join(err, s.tcp.Close())
		<-closed
		return nil, nil, err
	}
	return fds, func() {
		_ = s.tcp.Close() // nothing is to be flushed to a listener
		<-closed
		_ = closeFDs(fds) // all that counts was received
	}, nil
}

func (s *Server) crrSinks() (servers []sliceServer, release func(), err error) {
	fd, err := dup(s.tcp)
	if err = errors.Join(err, s.tcp.Close()); err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd))
	}
	// A listener that waits for long parks.
	if err := timeouts(fd); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd))
	}
	counts := &crrCounts{clocks: s.run.serverClocks()}
	var mu sync.Mutex
	var known sync.WaitGroup
	for range min(s.run.cfg.Streams, max(1, runtime.NumCPU())) {
		w := &crrSink{crrGate: newCRRGate(s.run, fd), shared: counts, resp: make([]byte, s.run.cfg.responseBytes()+answerBytes)}
		w.serve = w.answer
		w.conn.Store(-1)
		known.Add(1)
		servers = append(servers, &crrThread{crrSink: w, mu: &mu, known: &known})
	}
	return servers, func() { _ = unix.Close(fd) }, nil // nothing is to be flushed to a listener
}

// crrThread adds its own clock to those that count, before it serves.
type crrThread struct {
	*crrSink
	mu    *sync.Mutex
	known *sync.WaitGroup // until all clocks are
}

func (t *crrThread) work() error {
	t.mu.Lock()
	t.shared.clocks = append(t.shared.clocks, threadClockID(unix.Gettid()))
	t.mu.Unlock()
	t.known.Done()
	t.known.Wait()
	return t.crrSink.work()
}

// listen hears and counts strangers until stop is closed.
func (h *udpListener) listen(stop <-chan struct{}) {
	for {
		await(h.fd)
		select {
		case <-stop:
			return
		default:
		}
		if err := h.receiveHello(); err != nil {
			h.r.fail(err)
			return
		}
	}
}

// await waits until there is something to be read, or the socket is shut down.
func await(fd int) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); err != unix.EINTR {
			return // an error shows in the next call on the socket
		}
	}
}
