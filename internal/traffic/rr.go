//go:build linux

package traffic

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tcpAsker is the client of closed-loop round trips on one connection: burst
// requests are under way at any time. One clock reading ends a round trip and
// begins the next, so that the latencies of a stream add up to its time.
type tcpRequester struct {
	*run
	fd        int
	req, resp []byte
	sent      []int64 // when each request under way was sent, a ring
	latency   *recorder
	n         int64
}

func newTCPRequester(r *run, fd int) *tcpRequester {
	return &tcpRequester{run: r, fd: fd, req: make([]byte, r.cfg.requestBytes()), resp: make([]byte, max(r.cfg.responseBytes(), streamBuffer)), sent: make([]int64, r.cfg.burst()), latency: newRecorder()}
}

func (a *tcpRequester) work() error {
	defer unix.Close(a.fd) // all that counts was received
	now := nanotime()
	for i := range a.sent {
		a.sent[i] = now
		if err := a.ask(); err != nil {
			return err
		}
	}
	var begin, end int64
	size, got, next := a.cfg.responseBytes(), 0, 0
	// A single round trip reads exactly its response; a burst what has arrived.
	want := size
	if len(a.sent) > 1 {
		want = len(a.resp)
	}
	for !a.stopped.Load() {
		n, errno := recv(a.fd, unsafe.Pointer(&a.resp[0]), want-got%want, 0)
		now = nanotime()
		if errno != 0 || n == 0 {
			if err := a.silence(n, errno); err != nil {
				return err
			}
			continue
		}
		a.in.beat()
		for got += n; got >= size; got -= size {
			if begin == 0 {
				begin, end = a.recv.first(now)
			}
			if now >= begin && now < end {
				a.latency.record(now - a.sent[next])
				a.n++
			} else if now >= end {
				return nil
			}
			a.sent[next] = now
			if next++; next == len(a.sent) {
				next = 0
			}
			if err := a.ask(); err != nil {
				return err
			}
		}
	}
	return nil
}

// silence says what it means that nothing was read.
func (r *run) silence(n int, errno unix.Errno) error {
	switch {
	case errno == 0 && n == 0:
		return errEarly
	case errno != 0 && !temporary(errno):
		return fmt.Errorf("receive: %w", errno)
	case r.in.silent():
		return r.errSilent("no response came")
	}
	return nil
}

// ask sends one request.
func (a *tcpRequester) ask() error { return a.run.sendAll(a.fd, a.req) }

// sendAll sends a whole message. It waits as long as the other end takes
// anything at all.
func (r *run) sendAll(fd int, message []byte) error {
	for off := 0; off < len(message) && !r.stopped.Load(); {
		n, errno := send(fd, unsafe.Pointer(&message[off]), len(message)-off, unix.MSG_NOSIGNAL)
		if errno == 0 {
			off += n
			r.out.beat()
			continue
		}
		if !temporary(errno) {
			return fmt.Errorf("send: %w", errno)
		}
		if r.out.silent() {
			return r.errSilent("nothing could be sent")
		}
	}
	return nil
}

func (a *tcpRequester) report(t *tally) {
	count(&t.transactions, a.n)
	t.latency = append(t.latency, a.latency)
}

// tcpEcho is the server of round trips on one connection.
type tcpEcho struct {
	*run
	fd        int
	req, resp []byte
}

func newTCPEcho(r *run, fd int) *tcpEcho {
	return &tcpEcho{run: r, fd: fd, req: make([]byte, r.cfg.requestBytes()), resp: make([]byte, r.cfg.responseBytes())}
}

func (e *tcpEcho) work() error {
	defer unix.Close(e.fd) // the client has all that it asked for
	got, opened := 0, false
	for !e.stopped.Load() {
		n, errno := recv(e.fd, unsafe.Pointer(&e.req[got]), len(e.req)-got, 0)
		switch {
		case errno == 0 && n == 0, errno == unix.ECONNRESET:
			return nil // the client is through, or has failed and says so
		case errno == 0:
			e.in.beat()
			if got += n; got < len(e.req) {
				continue
			}
			got = 0
			if !opened {
				e.recv.first(nanotime())
				opened = true
			}
			err := e.sendAll(e.fd, e.resp)
			if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
				return nil // the client is through, and wants no more responses
			}
			if err != nil {
				return err
			}
		case !temporary(errno):
			return fmt.Errorf("receive: %w", errno)
		case e.over.Load():
			return nil
		case e.in.silent():
			return e.errSilent("no request came")
		}
	}
	return nil
}

func (e *tcpEcho) report(*tally) {}
