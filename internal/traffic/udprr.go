//go:build linux

package traffic

import (
	"crypto/rand"
	"encoding/binary"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// lossAfter is when a closed loop gives a request up, counts it as lost and
	// sends the next: a lost datagram must not stall the run.
	lossAfter = int64(200 * time.Millisecond)
	// openLossAfter is when an open loop does: later, so that it sees stalls.
	openLossAfter = int64(time.Second)
)

// numberMask keeps the bits of a request's number that a datagram of n bytes
// has room for.
func numberMask(n int) uint64 {
	if n >= wordBytes {
		return ^uint64(0) >> flagBits
	}
	return 0xff >> flagBits
}

// firstNumber is where the requests of a flow begin to count, a multiple of step: somebody
// who does not see the requests cannot guess the number of one, and forge its answer. It
// leaves room for 2^61 more.
func firstNumber(step int) uint64 {
	var b [wordBytes]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	n := binary.LittleEndian.Uint64(b[:]) >> (flagBits + 1)
	return n - n%uint64(step)
}

// udpAsker is the client of closed-loop round trips on one flow. Request k
// takes slot k modulo burst; an answer to any other than the slot's present
// request is late, and dropped.
type udpRequester struct {
	*run
	fd, index int
	req, resp []byte
	mask      uint64
	number    []uint64
	sentAt    []int64
	latency   *recorder
	n, lost   int64

	begin, end int64 // of the window; 0 before the first response
	turn       int   // the slot to look at next
}

func newUDPRequester(r *run, fd, index int) *udpRequester {
	a := &udpRequester{
		run: r, fd: fd, index: index, latency: newRecorder(),
		req: make([]byte, r.cfg.requestBytes()), resp: make([]byte, max(r.cfg.responseBytes(), 2*controlBytes)),
		mask:   numberMask(min(r.cfg.requestBytes(), r.cfg.responseBytes())),
		number: make([]uint64, r.cfg.burst()), sentAt: make([]int64, r.cfg.burst()),
	}
	putToken(a.req, &r.token)
	return a
}

func (a *udpRequester) work() error {
	defer a.sendControlThrice(a.fd, endControl, a.index)
	now := nanotime()
	first := firstNumber(len(a.number))
	for i := range a.number {
		a.number[i] = first + uint64(i)
		if err := a.ask(i, now); err != nil {
			return err
		}
	}
	for !a.stopped.Load() {
		n, errno := recv(a.fd, unsafe.Pointer(&a.resp[0]), len(a.resp), 0)
		now = nanotime()
		if a.end != 0 && now >= a.end {
			return nil
		}
		var err error
		switch {
		case temporary(errno):
			err = a.quiet(now)
		case errno != 0:
			err = sendError(errno)
		case !a.response(a.resp[:n]):
		default:
			err = a.answered(word(a.resp[:n])>>flagBits&a.mask, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// response reports whether a datagram is a response of this run. One of another size, or
// without the token that it has room for, is a stranger's and counted.
func (r *run) response(p []byte) bool {
	if len(p) > 0 && p[0]&flagControl != 0 {
		return false // the server's, or dropped like it
	}
	if len(p) != r.cfg.responseBytes() || !hasToken(p, binary.LittleEndian.Uint64(r.token[:])) {
		r.strangers.Add(1)
		return false
	}
	return true
}

// inside reports whether a time is in the window.
func (a *udpRequester) inside(now int64) bool { return a.end != 0 && now >= a.begin && now < a.end }

// answered takes the response to a request, and sends the next.
func (a *udpRequester) answered(number uint64, now int64) error {
	a.in.beat()
	if a.end == 0 {
		a.begin, a.end = a.recv.first(now)
	}
	slot := a.slot(number)
	if slot < 0 {
		return nil // it was given up
	}
	if a.inside(now) {
		a.latency.record(now - a.sentAt[slot])
		a.n++
	}
	a.number[slot] += uint64(len(a.number))
	if err := a.ask(slot, now); err != nil {
		return err
	}
	// One slot is looked at in turn, so that a loss is found while others are
	// answered.
	if a.turn++; a.turn >= len(a.sentAt) {
		a.turn = 0
	}
	return a.expire(a.turn, now)
}

// quiet looks at all requests when no response came for a while.
func (a *udpRequester) quiet(now int64) error {
	if a.in.silent() {
		return a.errSilent("no response came")
	}
	for i := range a.sentAt {
		if err := a.expire(i, now); err != nil {
			return err
		}
	}
	return nil
}

// slot is where the request with a number is under way; -1: nowhere.
func (a *udpRequester) slot(got uint64) int {
	slot := int(got % uint64(len(a.number)))
	if a.number[slot]&a.mask != got {
		return -1
	}
	return slot
}

// expire gives a request up that is too old, and sends another.
func (a *udpRequester) expire(slot int, now int64) error {
	if now-a.sentAt[slot] < lossAfter {
		return nil
	}
	if a.inside(now) {
		a.lost++
	}
	a.number[slot] += uint64(len(a.number))
	return a.ask(slot, now)
}

func (a *udpRequester) ask(slot int, now int64) error {
	a.sentAt[slot] = now
	return a.askNumber(a.fd, a.req, a.number[slot], now)
}

// askNumber sends one request.
func (r *run) askNumber(fd int, req []byte, number uint64, now int64) error {
	putHeader(req, number<<flagBits&^flagControl, now)
	for {
		_, errno := send(fd, unsafe.Pointer(&req[0]), len(req), unix.MSG_NOSIGNAL)
		switch {
		case errno == 0, errno == unix.ENOBUFS:
			return nil // what the device drops is lost like any other
		case !temporary(errno):
			return sendError(errno)
		case r.stopped.Load():
			return nil
		}
	}
}

func (a *udpRequester) report(t *tally) {
	count(&t.transactions, a.n)
	count(&t.lost, a.lost)
	t.latency = append(t.latency, a.latency)
}

// udpEcho is the server of round trips on one flow.
type udpEcho struct {
	*run
	fd, index int
	req, resp []byte
}

func newUDPEcho(r *run, fd, index int) *udpEcho {
	e := &udpEcho{run: r, fd: fd, index: index, req: make([]byte, max(r.cfg.requestBytes(), 2*controlBytes)), resp: make([]byte, r.cfg.responseBytes())}
	putToken(e.resp, &r.token)
	return e
}

func (e *udpEcho) work() error {
	opened := false
	token := binary.LittleEndian.Uint64(e.token[:])
	for !e.stopped.Load() {
		n, errno := recv(e.fd, unsafe.Pointer(&e.req[0]), len(e.req), 0)
		switch {
		case temporary(errno):
			if e.over.Load() {
				return nil
			}
			if e.in.silent() {
				return e.errSilent("no request came")
			}
			continue
		case errno == unix.ECONNREFUSED:
			return nil // the client is through, and its port is closed
		case errno != 0:
			return sendError(errno)
		}
		if n > 0 && e.req[0]&flagControl != 0 {
			switch kind, _ := e.readControl(e.req[:n]); kind {
			case helloControl:
				e.sendControl(e.fd, ackControl, e.index)
			case endControl:
				return nil
			}
			continue
		}
		if n != e.cfg.requestBytes() || !hasToken(e.req[:n], token) {
			e.strangers.Add(1)
			continue
		}
		e.in.beat()
		if !opened {
			opened = true
			e.recv.first(nanotime())
		}
		copy(e.resp[:min(wordBytes, len(e.resp))], e.req[:min(wordBytes, n)])
		if err := e.answer(); err != nil {
			return err
		}
	}
	return nil
}

func (e *udpEcho) answer() error {
	for {
		_, errno := send(e.fd, unsafe.Pointer(&e.resp[0]), len(e.resp), unix.MSG_NOSIGNAL)
		switch {
		case errno == 0, errno == unix.ENOBUFS, errno == unix.ECONNREFUSED:
			return nil // the loop's next call shows what this means
		case !temporary(errno):
			return sendError(errno)
		case e.stopped.Load():
			return nil
		}
	}
}

func (e *udpEcho) report(*tally) {}

type udpDispatcher struct {
	*schedule
	req []byte
}

func (d *udpDispatcher) work() error {
	return d.dispatch(func(k int64) error { return d.askNumber(d.fd, d.req, d.number+uint64(k), nanotime()) })
}

func (d *udpDispatcher) report(*tally) {}

// udpCollector takes the responses of a flow, in any order.
type udpCollector struct {
	*schedule
	index   int
	resp    []byte
	seen    seen
	latency *recorder
	n       int64
	first   int64 // the number of the first request due in the window
	last    int64 // and one more than the last's, of those that were sent
}

func newUDPSchedule(r *run, fd, index int) []worker {
	s := newSchedule(r, fd)
	s.number = firstNumber(1)
	d := &udpDispatcher{schedule: s, req: make([]byte, r.cfg.requestBytes())}
	putToken(d.req, &r.token)
	return []worker{d, &udpCollector{schedule: s, index: index, resp: make([]byte, max(r.cfg.responseBytes(), 2*controlBytes)), latency: newRecorder()}}
}

func (c *udpCollector) work() error {
	defer c.settle()
	for !c.stopped.Load() {
		n, errno := recv(c.fd, unsafe.Pointer(&c.resp[0]), len(c.resp), 0)
		now := nanotime()
		begin := c.recv.begin.Load()
		end := begin + c.recv.length
		switch {
		case temporary(errno):
			if c.in.silent() {
				return c.errSilent("no response came")
			}
		case errno != 0:
			return sendError(errno)
		case !c.response(c.resp[:n]):
		default:
			k, asked := c.ordinalOf(c.resp[:n])
			if !asked {
				c.strangers.Add(1)
				continue
			}
			c.in.beat()
			due := c.due(int64(k))
			if _, duplicate := c.seen.mark(k); !duplicate && due >= begin && due < end && now-due < openLossAfter {
				c.latency.record(now - due)
				c.n++
			}
		}
		if c.done.Load() && (c.complete() || now > end+openLossAfter) {
			return nil
		}
	}
	return nil
}

// ordinalOf is which request a response answers, counted from 0. It reports whether that
// was asked: a number that was not is a stranger's, and a high one would make all others late.
func (c *udpCollector) ordinalOf(p []byte) (k uint64, asked bool) {
	k = (word(p)>>flagBits - c.number) & (^uint64(0) >> flagBits)
	return k, k <= uint64(c.sent.Load()) // the last one may be answered before it is counted
}

// complete reports whether every request of the window was answered.
func (c *udpCollector) complete() bool {
	c.bounds()
	return c.n >= c.last-c.first
}

// bounds finds the numbers of the window's requests.
func (c *udpCollector) bounds() {
	begin := c.recv.begin.Load()
	c.first, c.last = c.ordinal(begin), min(c.ordinal(begin+c.recv.length), c.sent.Load())
}

// ordinal is the number of the first request that is due at a time or later.
func (c *udpCollector) ordinal(at int64) int64 {
	k := max(0, int64(float64(at-c.start.Load())/c.interval)-1)
	for c.due(k) < at {
		k++
	}
	return k
}

// settle lets the sender end, and ends the server's side.
func (c *udpCollector) settle() {
	c.finished.Store(true)
	for !c.done.Load() {
		time.Sleep(time.Millisecond)
	}
	c.bounds()
	c.sendControlThrice(c.fd, endControl, c.index)
}

func (c *udpCollector) report(t *tally) {
	count(&t.transactions, c.n)
	count(&t.lost, max(0, c.last-c.first)-c.n)
	t.latency = append(t.latency, c.latency)
}
