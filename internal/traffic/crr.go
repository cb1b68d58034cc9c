//go:build linux

package traffic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tcp_crr: connect, one transaction, close. Each connection begins with the
// run's token, in the same segment as the request. The server closes first, so
// that the waiting ends (TIME_WAIT) are the server's and the client's ports can
// be used again at once.

// crrAsker makes one connection after the other.
type crrRequester struct {
	*run
	server    netip.AddrPort
	req, resp []byte
	latency   *recorder
	connect   *recorder
	n         int64
	// asked and answered are when the first packet of the present connection was sent, and
	// when its answer came.
	asked, answered int64
	marks           *marks // nil where one server serves the client
}

func (r *run) callCRR(server netip.AddrPort, switched func()) ([]worker, error) {
	var workers []worker
	for range r.cfg.Streams {
		workers = append(workers, &crrRequester{
			run: r, server: server, latency: newRecorder(), connect: newRecorder(), marks: newMarks(r.cfg, switched),
			req:  append(r.token[:], make([]byte, r.cfg.requestBytes())...),
			resp: make([]byte, r.cfg.responseBytes()+1),
		})
		switched = nil // a report has those of the first stream
	}
	return workers, nil
}

func (a *crrRequester) work() error {
	addr, family := sockaddr(a.server)
	var begin, end int64
	for !a.stopped.Load() {
		start := nanotime()
		if err := a.transact(family, addr); err != nil {
			return err
		}
		now := nanotime()
		if begin == 0 {
			begin, end = a.recv.first(now)
		}
		if now >= end {
			return nil
		}
		if now >= begin {
			a.latency.record(now - start)
			a.connect.record(a.answered - a.asked)
			a.n++
		}
		if a.marks.over(a.resp[0], a.answered, now-begin) {
			return nil
		}
	}
	return nil
}

// transact is one connection from beginning to end.
func (a *crrRequester) transact(family int, addr []byte) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer closeNow(fd) // the server has closed already
	a.asked = nanotime()
	for {
		// A connect that a tick interrupted goes on when called again.
		e := connect(fd, addr)
		if e == 0 || e == unix.EISCONN {
			break
		}
		if !connecting(e) {
			return fmt.Errorf("connect to %v: %w", a.server, e)
		}
		if a.in.silent() {
			return a.errSilent("no connection could be made")
		}
		if a.stopped.Load() {
			return nil
		}
	}
	a.answered = nanotime()
	if err := a.sendAll(fd, a.req); err != nil {
		return err
	}
	for got := 0; !a.stopped.Load(); {
		n, errno := recv(fd, unsafe.Pointer(&a.resp[0]), len(a.resp)-got, unix.MSG_WAITALL)
		switch {
		case errno == 0 && n+got == a.cfg.responseBytes():
			a.in.beat()
			return nil
		case errno == 0 && n > 0:
			got += n
		default:
			if err := a.silence(n, errno); err != nil {
				return err
			}
		}
	}
	return nil
}

func connecting(e unix.Errno) bool {
	return e == unix.EINPROGRESS || e == unix.EALREADY || e == unix.EINTR || e == unix.EAGAIN
}

func (a *crrRequester) report(t *tally) {
	count(&t.transactions, a.n)
	t.latency = append(t.latency, a.latency)
	t.connect = append(t.connect, a.connect)
	a.marks.report(t)
}

// sockaddr is an address as connect(2) takes it, struct sockaddr_in or sockaddr_in6.
func sockaddr(a netip.AddrPort) (address []byte, family int) {
	ip := a.Addr().Unmap()
	if family = unix.AF_INET; !ip.Is4() {
		family = unix.AF_INET6
	}
	address = binary.NativeEndian.AppendUint16(nil, uint16(family))
	address = binary.BigEndian.AppendUint16(address, a.Port())
	if ip.Is4() {
		return append(append(address, ip.AsSlice()...), make([]byte, zeroOfInet4)...), family
	}
	address = append(append(address, 0, 0, 0, 0), ip.AsSlice()...) // no flow label
	return binary.NativeEndian.AppendUint32(address, zone(a.Addr())), family
}

// zeroOfInet4 is the padding of struct sockaddr_in (sin_zero).
const zeroOfInet4 = 8

// crrServer serves connections from one listener that all its threads share.
// It takes one connection after the other and waits for its request, as
// netperf's server does, until one says nothing: then it waits for all at once,
// for a while, so that silent strangers hold nobody up.
type crrServer struct {
	crrGate
	resp   []byte
	began  int64
	opened bool
}

func (s *Server) runCRR(ctx context.Context, h Hooks) (Report, error) {
	fd, err := dup(s.tcp)
	err = errors.Join(err, s.tcp.Close())
	if err != nil {
		return Report{}, err
	}
	defer unix.Close(fd) // nothing is to be flushed to a listener
	if err := unix.SetNonblock(fd, false); err != nil {
		return Report{}, err
	}
	var workers []worker
	for range min(s.run.cfg.Streams, max(1, runtime.NumCPU())) {
		w := &crrServer{crrGate: newCRRGate(s.run, fd), resp: make([]byte, s.run.cfg.responseBytes())}
		w.serve = w.answer
		workers = append(workers, w)
	}
	return s.run.do(ctx, workers, s.run.recv, h)
}

func (s *crrServer) work() (err error) {
	if err := s.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.began = nanotime()
	for !s.stopped.Load() {
		now := nanotime()
		var idle bool
		var err error
		if s.unsuspicious() {
			if conn := s.accept(); conn >= 0 {
				err = s.one(conn)
			} else {
				idle = true
			}
		} else {
			idle, err = s.all(now)
		}
		switch {
		case err != nil:
			return err
		case idle && s.over.Load() && s.released():
			return nil
		case s.cfg.Mark != 0: // another server may have the client
		case !s.starting(now) && !s.over.Load() && s.in.silent():
			return s.errSilent("no request came")
		}
	}
	return nil
}

// starting reports that the client may still be on its way.
func (s *crrServer) starting(now int64) bool {
	return s.recv.begin.Load() == 0 && now-s.began <= int64(firstWait)
}

// answer answers one request.
func (s *crrServer) answer(fd int32, _ byte) error {
	s.in.beat() // before first: the client has come
	if !s.opened {
		s.recv.first(nanotime())
		s.opened = true
	}
	s.resp[0] = s.ownMark()
	err := s.sendAll(int(fd), s.resp)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		err = nil // a client that was ended in its last transaction
	}
	return err
}

func (s *crrServer) report(*tally) {}
