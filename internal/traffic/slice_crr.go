//go:build linux

package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// The slice of tcp_crr. The first byte of a request marks an end, as that of round
// trips does; the connection that ends a slice is answered with what was counted.

// crrSliceAsker makes one connection after the other.
type crrSliceRequester struct {
	*run
	sliceWorker
	address []byte
	family  int
	server  netip.AddrPort
	req     []byte
	resp    []byte
	algo    string // to be set on each connection; "": it is the namespace's
	bounded bool   // give each call on the socket a timeout
	fd      atomic.Int64
	latency *recorder
	connect *recorder
	// asked and answered are as in crrRequester.
	asked, answered int64
}

func (r *run) crrEnds(server netip.AddrPort) ([]sliceEnd, error) {
	address, family := sockaddr(server)
	algo, err := r.algorithmToSet(family)
	if err != nil {
		return nil, err
	}
	var ends []sliceEnd
	for range r.cfg.Streams {
		a := &crrSliceRequester{
			run: r, address: address, family: family, server: server, algo: algo, latency: newRecorder(), connect: newRecorder(),
			req:  append(r.token[:], make([]byte, r.cfg.requestBytes())...),
			resp: make([]byte, r.cfg.responseBytes()+answerBytes),
		}
		a.fd.Store(-1)
		ends = append(ends, a)
	}
	// The path and the token are tried before the first slice.
	first := ends[0].(*crrSliceRequester)
	first.bounded = true // nothing ticks for this thread
	err = first.transact(leadInMark)
	first.bounded = false
	return ends, err
}

func (a *crrSliceRequester) interrupt() {
	if fd := a.fd.Load(); fd >= 0 {
		shut(int(fd))
	}
}

func (a *crrSliceRequester) release() {}

// transact is one connection from beginning to end.
func (a *crrSliceRequester) transact(mark byte) error {
	fd, err := unix.Socket(a.family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	a.fd.Store(int64(fd))
	defer func() {
		a.fd.Store(-1)
		closeNow(fd) // the server has closed already
	}()
	if a.bounded {
		if err := timeouts(fd); err != nil {
			return err
		}
	}
	if a.algo != "" {
		if err := setAlgorithm(fd, a.algo); err != nil {
			return err
		}
	}
	a.asked = nanotime()
	for {
		e := connect(fd, a.address)
		if e == 0 || e == unix.EISCONN {
			break
		}
		if !connecting(e) || a.stopped.Load() {
			return fmt.Errorf("connect to %v: %w", a.server, e)
		}
	}
	a.answered = nanotime()
	c := sliceConn{run: a.run, fd: fd}
	a.req[tokenBytes] = mark
	if err := c.writeWhole(a.req); err != nil {
		return err
	}
	want := a.cfg.responseBytes()
	if mark == countedMark {
		want += answerBytes
	}
	return c.readWhole(a.resp[:want])
}

func (a *crrSliceRequester) marked(mark byte) error { return a.transact(mark) }

// exchange makes connections until a time.
func (a *crrSliceRequester) exchange(now, until int64, record bool) (n, end int64, err error) {
	for now < until {
		start := now
		if err := a.transact(0); err != nil {
			return n, now, err
		}
		now = nanotime()
		if record {
			a.latency.record(now - start)
			a.connect.record(a.answered - a.asked)
		}
		n++
	}
	return n, now, nil
}

func (a *crrSliceRequester) slice(leadIn, length time.Duration, out *Slice) error {
	if err := exchangeSlice(a, leadIn, length, out); err != nil {
		return err
	}
	n, answer := out.Transactions, a.resp[a.cfg.responseBytes():]
	// One server counts for all streams, so each takes its share.
	served := max(1, int64(binary.LittleEndian.Uint64(answer)))
	out.ServerCPU = time.Duration(int64(binary.LittleEndian.Uint64(answer[8:])) * n / max(n, served))
	return nil
}

func (a *crrSliceRequester) finish(t *tally) {
	t.latency = append(t.latency, a.latency)
	t.connect = append(t.connect, a.connect)
}

// crrSink serves connections one after the other, until one says nothing: its gate
// then waits for all at once, for a while. All threads of a server share the listener
// and the counts.
type crrSink struct {
	crrGate
	sliceWorker
	shared *crrCounts
	conn   atomic.Int64
	resp   []byte
}

// crrCounts is what all threads of a server counted since the last mark.
type crrCounts struct {
	served atomic.Int64
	clocks []int32 // of the threads
	since  atomic.Int64
}

func (s *crrSink) interrupt() {
	shut(s.listener)
	if fd := s.conn.Load(); fd >= 0 {
		shut(int(fd))
	}
}

func (s *crrSink) work() (err error) {
	if err := s.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for !s.stopped.Load() && !s.over.Load() {
		if !s.unsuspicious() {
			if _, err := s.all(nanotime()); err != nil {
				return err
			}
			continue
		}
		conn, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(s.listener), 0, 0, unix.SOCK_CLOEXEC, 0, 0)
		switch {
		case temporary(errno):
			if err := s.park(s.listener); err != nil { // nothing came for a while: the slice is over
				return err
			}
			continue
		case errno == unix.EINVAL: // shut down
			return nil
		case errno != 0:
			continue // a connection that went at once
		}
		s.conn.Store(int64(conn))
		err := s.one(int32(conn))
		s.conn.Store(-1)
		if err != nil {
			return err
		}
	}
	return nil
}

// answer answers one request. The one that ends a slice gets what was counted too.
func (s *crrSink) answer(fd int32, mark byte) error {
	c := sliceConn{run: s.run, fd: int(fd)}
	s.shared.served.Add(1)
	size := s.cfg.responseBytes()
	if mark == countedMark {
		binary.LittleEndian.PutUint64(s.resp[size:], uint64(s.shared.served.Load()))
		binary.LittleEndian.PutUint64(s.resp[size+8:], uint64(s.spentByAll()))
		size += answerBytes
	}
	if mark == leadInMark {
		s.shared.served.Store(0)
		s.shared.since.Store(clocksOf(s.shared.clocks))
	}
	return c.ended(c.writeWhole(s.resp[:size]))
}

// spentByAll is the CPU time of all threads since the lead-in was over.
func (s *crrSink) spentByAll() int64 { return clocksOf(s.shared.clocks) - s.shared.since.Load() }

func (s *crrSink) report(*tally) {}
