//go:build linux

package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The slice of round trips. The first byte of a request says what it is for: most
// are 0. A request with leadInMark ends the lead-in, one with countedMark the
// slice; the server answers that one with what it counted, after the response.

// tcpSliceAsker is the driving end of round trips on one connection: burst requests
// are under way at any time.
type tcpSliceRequester struct {
	sliceConn
	req, resp []byte
	sent      []int64 // when each request under way was sent, a ring
	latency   *recorder
}

func newTCPSliceRequester(r *run, fd int) *tcpSliceRequester {
	return &tcpSliceRequester{sliceConn: sliceConn{run: r, fd: fd}, req: make([]byte, r.cfg.requestBytes()), resp: make([]byte, r.cfg.responseBytes()), sent: make([]int64, r.cfg.burst()), latency: newRecorder()}
}

// ask sends one request with a mark, or with none.
func (a *tcpSliceRequester) ask(mark byte) error {
	a.req[0] = mark
	return a.writeWhole(a.req)
}

// marked is one round trip with a mark.
func (a *tcpSliceRequester) marked(mark byte) error {
	if err := a.ask(mark); err != nil {
		return err
	}
	return a.readWhole(a.resp)
}

// exchange makes round trips until a time, and takes all responses. It records
// them where record is set.
func (a *tcpSliceRequester) exchange(now, until int64, record bool) (n, end int64, err error) {
	for i := range a.sent {
		a.sent[i] = now
		if err := a.ask(0); err != nil {
			return n, now, err
		}
	}
	next := 0
	for under := len(a.sent); under > 0; {
		if err := a.readWhole(a.resp); err != nil {
			return n, now, err
		}
		now = nanotime()
		if record {
			a.latency.record(now - a.sent[next])
		}
		n++
		under--
		if now < until {
			a.sent[next] = now
			if err := a.ask(0); err != nil {
				return n, now, err
			}
			under++
		}
		if next++; next == len(a.sent) {
			next = 0
		}
	}
	return n, now, nil
}

func (a *tcpSliceRequester) slice(leadIn, length time.Duration, out *Slice) error {
	if err := exchangeSlice(a, leadIn, length, out); err != nil {
		return err
	}
	if err := a.readWhole(a.answer[:]); err != nil {
		return err
	}
	n := out.Transactions
	out.ServerCPU = serverShare(a.answer[:], n)
	if served := int64(binary.LittleEndian.Uint64(a.answer[:])); served != n+1 {
		return fmt.Errorf("the server served %d requests of a slice of %d: the counts cannot be right", served-1, n)
	}
	return nil
}

// serverShare is the server's CPU time of the n requests of a slice; it was read
// when the request that ends the slice had come as well.
func serverShare(answer []byte, n int64) time.Duration {
	cpu := int64(binary.LittleEndian.Uint64(answer[8:]))
	return time.Duration(cpu * n / (n + 1))
}

func (a *tcpSliceRequester) finish(t *tally) { t.latency = append(t.latency, a.latency) }

// tcpSliceEcho is the serving end of round trips on one connection.
type tcpSliceEcho struct {
	sliceConn
	req, resp []byte
}

func (e *tcpSliceEcho) work() error {
	var served int64
	waits := true // between slices
	for {
		if waits {
			if err := e.park(e.fd); err != nil {
				return err
			}
		}
		if err := e.readWhole(e.req); err != nil {
			return e.ended(err)
		}
		served++
		waits = e.req[0] == countedMark
		spent := time.Duration(0)
		if waits {
			spent = e.spent()
		}
		if err := e.writeWhole(e.resp); err != nil {
			return e.ended(err)
		}
		switch e.req[0] {
		case leadInMark:
			e.start()
			served = 0
		case countedMark:
			binary.LittleEndian.PutUint64(e.answer[:], uint64(served))
			binary.LittleEndian.PutUint64(e.answer[8:], uint64(spent))
			if err := e.writeWhole(e.answer[:]); err != nil {
				return e.ended(err)
			}
		}
	}
}

func (e *tcpSliceEcho) report(*tally) {}

// Slices of datagrams are marked by control datagrams, as data may be as small as
// one byte. One that is lost is sent again; the number of its slice identifies a
// repetition from the next.
const (
	markControl   = 7 // client to server: the lead-in, or the slice, is over
	answerControl = 8 // server to client: what was counted
	// markAgain is how long an answer may take before the mark is sent again.
	markAgain = int64(4 * time.Millisecond)
	// sliceLoss is when a request of a slice is given up.
	sliceLoss = 20 * time.Millisecond
	// markBytes is a control datagram with its slice and six numbers.
	markBytes = controlBytes + 8 + 6*8
)

// flowAnswer is what a serving end counted since the mark before.
type flowAnswer struct {
	packets, bytes, reordered, duplicated int64
	cpu, took                             int64 // nanoseconds
}

// mark makes a control datagram with the number of a mark and, in an answer, what
// was counted.
func (r *run) mark(kind byte, index int, number uint64, a flowAnswer) [markBytes]byte {
	var p [markBytes]byte
	c := r.control(kind, index)
	copy(p[:], c[:])
	binary.LittleEndian.PutUint64(p[controlBytes:], number)
	for i, v := range []int64{a.packets, a.bytes, a.reordered, a.duplicated, a.cpu, a.took} {
		binary.LittleEndian.PutUint64(p[controlBytes+8+8*i:], uint64(v))
	}
	return p
}

// readMark reads such a datagram; kind is 0 for any other.
func (r *run) readMark(p []byte) (kind byte, number uint64, a flowAnswer) {
	if len(p) != markBytes {
		return 0, 0, a
	}
	if kind, _ = r.readControl(p[:controlBytes]); kind == 0 {
		return 0, 0, a
	}
	number = binary.LittleEndian.Uint64(p[controlBytes:])
	for i, v := range []*int64{&a.packets, &a.bytes, &a.reordered, &a.duplicated, &a.cpu, &a.took} {
		*v = int64(binary.LittleEndian.Uint64(p[controlBytes+8+8*i:]))
	}
	return kind, number, a
}

// sliceFlow is a driving end of datagrams.
type sliceFlow struct {
	*run
	sliceWorker
	fd, index int
	marks     uint64
}

func (f *sliceFlow) interrupt() { shut(f.fd) }

func (f *sliceFlow) release() { _ = unix.Close(f.fd) } // what counts was received

// ask marks an end, and waits for what the server counted since the mark before.
// Whatever else comes meanwhile is late, and dropped.
func (f *sliceFlow) ask() (flowAnswer, error) {
	f.marks++
	p := f.mark(markControl, f.index, f.marks, flowAnswer{})
	var b [2 * markBytes]byte
	for !f.stopped.Load() {
		if _, errno := send(f.fd, unsafe.Pointer(&p), len(p), unix.MSG_NOSIGNAL); errno != 0 && errno != unix.ENOBUFS && !temporary(errno) {
			return flowAnswer{}, sendError(errno)
		}
		for again := nanotime() + markAgain; nanotime() < again; {
			n, errno := recv(f.fd, unsafe.Pointer(&b), len(b), 0)
			switch {
			case temporary(errno):
				continue
			case errno != 0:
				return flowAnswer{}, sendError(errno)
			}
			if kind, number, a := f.readMark(b[:n]); kind == answerControl && number == f.marks {
				return a, nil
			}
		}
	}
	return flowAnswer{}, errors.New("stopped")
}

// flowMarks is what a serving end knows of marks.
type flowMarks struct {
	sliceWorker
	last   uint64
	answer flowAnswer
	begin  int64
}

// marked answers a mark; counted is what was counted in all until now.
func (m *flowMarks) marked(r *run, fd, index int, number uint64, counted flowAnswer) {
	if number != m.last {
		m.last = number
		counted.cpu = int64(m.spent())
		m.answer = counted
		m.start()
		m.begin = nanotime()
	}
	p := r.mark(answerControl, index, number, m.answer)
	_, _ = send(fd, unsafe.Pointer(&p), len(p), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT) // one that is lost is asked for again
}

// udpSliceAsker is the driving end of round trips of datagrams.
type udpSliceRequester struct {
	sliceFlow
	req, resp []byte
	mask      uint64
	number    uint64
	latency   *recorder
}

func newUDPSliceRequester(r *run, fd, index int) *udpSliceRequester {
	a := &udpSliceRequester{sliceFlow: sliceFlow{run: r, fd: fd, index: index}, req: make([]byte, r.cfg.requestBytes()), resp: make([]byte, max(r.cfg.responseBytes(), 2*markBytes)), mask: numberMask(min(r.cfg.requestBytes(), r.cfg.responseBytes())), number: firstNumber(1), latency: newRecorder()}
	putToken(a.req, &r.token)
	return a
}

// exchange makes round trips until a time. One that takes too long is lost.
func (a *udpSliceRequester) exchange(now, until int64, record bool) (n, lost, end int64, err error) {
	for now < until && !a.stopped.Load() {
		a.number++
		if err := a.askNumber(a.fd, a.req, a.number, now); err != nil {
			return n, lost, now, err
		}
		sent := now
		for {
			got, errno := recv(a.fd, unsafe.Pointer(&a.resp[0]), len(a.resp), 0)
			now = nanotime()
			if errno == 0 && a.response(a.resp[:got]) && word(a.resp[:got])>>flagBits&a.mask == a.number&a.mask {
				if record {
					a.latency.record(now - sent)
				}
				n++
				break
			}
			if errno != 0 && !temporary(errno) {
				return n, lost, now, sendError(errno)
			}
			if now-sent >= int64(sliceLoss) || a.stopped.Load() {
				lost++
				break
			}
		}
	}
	return n, lost, now, nil
}

func (a *udpSliceRequester) slice(leadIn, length time.Duration, out *Slice) error {
	if now := nanotime(); leadIn > 0 {
		if _, _, _, err := a.exchange(now, now+int64(leadIn), false); err != nil {
			return err
		}
	}
	if err := a.gate.wait(); err != nil {
		return err
	}
	if _, err := a.ask(); err != nil {
		return err
	}
	a.start()
	begin := nanotime()
	n, lost, end, err := a.exchange(begin, begin+int64(length), true)
	if err != nil {
		return err
	}
	out.ClientCPU = a.spent()
	counted, err := a.ask()
	if err != nil {
		return err
	}
	out.Begin, out.End = time.Duration(begin), time.Duration(end)
	out.Transactions, out.TransactionsLost = n, lost
	out.ServerCPU = time.Duration(counted.cpu * n / (n + 1))
	return nil
}

func (a *udpSliceRequester) finish(t *tally) { t.latency = append(t.latency, a.latency) }

// udpSliceEcho is the serving end of round trips of datagrams.
type udpSliceEcho struct {
	*run
	flowMarks
	fd, index int
	req, resp []byte
}

func newUDPSliceEcho(r *run, fd, index int) *udpSliceEcho {
	e := &udpSliceEcho{run: r, fd: fd, index: index, req: make([]byte, max(r.cfg.requestBytes(), 2*markBytes)), resp: make([]byte, r.cfg.responseBytes())}
	putToken(e.resp, &r.token)
	return e
}

func (e *udpSliceEcho) interrupt() { shut(e.fd) }

func (e *udpSliceEcho) work() error {
	token := binary.LittleEndian.Uint64(e.token[:])
	var counted flowAnswer
	for !e.stopped.Load() && !e.over.Load() {
		n, errno := recv(e.fd, unsafe.Pointer(&e.req[0]), len(e.req), 0)
		switch {
		case temporary(errno):
			if err := e.park(e.fd); err != nil { // nothing came for a while: the slice is over
				return err
			}
			continue
		case errno == unix.ECONNREFUSED || errno == 0 && n == 0:
			continue // the client is through, or this end is shut down
		case errno != 0:
			return sendError(errno)
		}
		if kind, number, _ := e.readMark(e.req[:n]); kind == markControl {
			e.marked(e.run, e.fd, e.index, number, counted)
			continue
		}
		if e.req[0]&flagControl != 0 && n == controlBytes {
			if kind, _ := e.readControl(e.req[:n]); kind == helloControl {
				e.sendControl(e.fd, ackControl, e.index)
			}
			continue
		}
		if n != e.cfg.requestBytes() || !hasToken(e.req[:n], token) {
			e.strangers.Add(1)
			continue
		}
		counted.packets++
		copy(e.resp[:min(wordBytes, len(e.resp))], e.req[:min(wordBytes, n)])
		if _, errno := send(e.fd, unsafe.Pointer(&e.resp[0]), len(e.resp), unix.MSG_NOSIGNAL); errno != 0 && errno != unix.ENOBUFS && errno != unix.ECONNREFUSED && !temporary(errno) {
			return sendError(errno)
		}
	}
	return nil
}

func (e *udpSliceEcho) report(*tally) {}
