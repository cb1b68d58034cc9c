//go:build linux

package traffic

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An open loop sends requests when they are due, whatever happened to those
// before. Request k of a stream is due at start + k × interval, and latency
// counts from there: a stall of the server, the path or this program is seen by
// every request that it delays (what closed loops leave out: Tene, "coordinated
// omission"). A request belongs to the window in which it was due.

// openTail is how long requests continue after the window, so that its last ones
// get the same load as the others.
const openTail = int64(10 * time.Millisecond)

// schedule is one stream of an open loop. Two threads share it: one sends, the
// other receives.
type schedule struct {
	*run
	fd       int
	interval float64
	number   uint64 // of the first request of a flow of datagrams
	start    atomic.Int64
	sent     atomic.Int64 // requests sent so far
	done     atomic.Bool  // the sender has ended
	finished atomic.Bool  // the receiver wants no more
}

func newSchedule(r *run, fd int) *schedule {
	streams := r.cfg.Streams
	if r.cfg.Test == LatencyUnderLoad {
		streams = 1
	}
	return &schedule{run: r, fd: fd, interval: float64(streams) * 1e9 / r.cfg.RatePerSecond}
}

func (s *schedule) due(k int64) int64 { return s.start.Load() + int64(float64(k)*s.interval) }

// dispatch sends each request when it is due.
func (s *schedule) dispatch(ask func(k int64) error) error {
	defer s.done.Store(true)
	now := nanotime()
	s.start.Store(now)
	_, end := s.recv.first(now)
	for k := int64(0); !s.stopped.Load() && !s.finished.Load(); {
		due := s.due(k)
		if due >= end+openTail || now > end+s.in.idle {
			return nil
		}
		if now < due {
			sleepUntil(due)
			now = nanotime()
			continue
		}
		if err := ask(k); err != nil {
			return err
		}
		k++
		s.sent.Store(k)
		now = nanotime()
	}
	return nil
}

// closeAfterSender closes the socket that both threads used.
func (s *schedule) closeAfterSender() {
	s.finished.Store(true)
	for !s.done.Load() {
		time.Sleep(time.Millisecond)
	}
	_ = unix.Close(s.fd) // all that counts was received
}

type tcpDispatcher struct {
	*schedule
	req []byte
}

func (d *tcpDispatcher) work() error {
	return d.dispatch(func(int64) error { return d.sendAll(d.fd, d.req) })
}

func (d *tcpDispatcher) report(*tally) {}

// tcpCollector takes the responses of a connection, which come in order.
type tcpCollector struct {
	*schedule
	resp    []byte
	latency *recorder
	n       int64
}

func newTCPSchedule(r *run, fd int) []worker {
	s := newSchedule(r, fd)
	return []worker{
		&tcpDispatcher{schedule: s, req: make([]byte, r.cfg.requestBytes())},
		&tcpCollector{schedule: s, resp: make([]byte, max(streamBuffer, r.cfg.responseBytes())), latency: newRecorder()},
	}
}

func (c *tcpCollector) work() error {
	defer c.closeAfterSender()
	size, got, k := c.cfg.responseBytes(), 0, int64(0)
	for !c.stopped.Load() {
		n, errno := recv(c.fd, unsafe.Pointer(&c.resp[0]), len(c.resp), 0)
		now := nanotime()
		if errno != 0 || n == 0 {
			if err := c.silence(n, errno); err != nil {
				return err
			}
		} else {
			c.in.beat()
		}
		begin := c.recv.begin.Load()
		end := begin + c.recv.length
		for got += max(n, 0); got >= size; got -= size {
			due := c.due(k)
			if due >= end {
				return nil
			}
			if due >= begin {
				c.latency.record(now - due)
				c.n++
			}
			k++
		}
		if c.done.Load() && k >= c.sent.Load() {
			return nil // the sender could not keep up with the rate; the report shows it
		}
	}
	return nil
}

func (c *tcpCollector) report(t *tally) {
	count(&t.transactions, c.n)
	t.latency = append(t.latency, c.latency)
}
