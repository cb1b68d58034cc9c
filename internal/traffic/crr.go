package traffic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tcp_crr: connect, one transaction, close. Each connection begins with the
// run's token, in the same segment as the request. The server closes first, so
// that the waiting ends (TIME_WAIT) are the server's and the client's ports can
// be used again at once.

// crrAsker makes one connection after the other.
type crrAsker struct {
	*run
	server    netip.AddrPort
	req, resp []byte
	latency   *recorder
	n         int64
}

func (r *run) callCRR(server netip.AddrPort) ([]worker, error) {
	var workers []worker
	for range r.cfg.Streams {
		workers = append(workers, &crrAsker{
			run: r, server: server, latency: newRecorder(),
			req:  append(r.token[:], make([]byte, r.cfg.requestBytes())...),
			resp: make([]byte, r.cfg.responseBytes()+1),
		})
	}
	return workers, nil
}

func (a *crrAsker) work() error {
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
			a.n++
		}
	}
	return nil
}

// transact is one connection from beginning to end.
func (a *crrAsker) transact(family int, addr []byte) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer closeNow(fd) // the server has closed already
	if err := timeouts(fd); err != nil {
		return err
	}
	for {
		// A connect that the socket's timeout ended goes on when called again.
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

func (a *crrAsker) report(t *tally) {
	count(&t.transactions, a.n)
	t.latency = append(t.latency, a.latency)
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

const (
	crrPending = 1024 // connections without a whole request, per thread
	crrEvents  = 64
	// waryTime is how long a server expects more strangers after one that said
	// nothing.
	waryTime = int64(10 * time.Second)
)

// crrServer serves connections from one listener that all its threads share.
// It takes one connection after the other and waits for its request, as
// netperf's server does, until one says nothing: then it waits for all at once,
// for a while, so that silent strangers hold nobody up.
type crrServer struct {
	*run
	listener, epoll int
	req, resp       []byte
	events          []unix.EpollEvent
	conns           map[int32]crrConn // those without a whole request
	wary            int64             // until when to wait for all at once
	began, swept    int64
	opened          bool
}

// crrConn is a connection whose request is not whole.
type crrConn struct {
	got   int
	token [tokenBytes]byte
	since int64
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
		workers = append(workers, &crrServer{run: s.run, listener: fd, req: make([]byte, tokenBytes+s.run.cfg.requestBytes()), resp: make([]byte, s.run.cfg.responseBytes()), events: make([]unix.EpollEvent, crrEvents), conns: map[int32]crrConn{}})
	}
	return s.run.do(ctx, workers, s.run.recv, h)
}

func (s *crrServer) work() (err error) {
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	defer func() {
		for fd := range s.conns {
			_ = unix.Close(int(fd)) // a stranger's
		}
		err = errors.Join(err, unix.Close(s.epoll))
	}()
	if err := s.watch(int32(s.listener), unix.EPOLLIN|unix.EPOLLEXCLUSIVE); err != nil {
		return err
	}
	s.began = nanotime()
	for !s.stopped.Load() {
		now := nanotime()
		var idle bool
		var err error
		if len(s.conns) == 0 && now >= s.wary {
			idle, err = s.one(now)
		} else {
			idle, err = s.all(now)
		}
		switch {
		case err != nil:
			return err
		case idle && s.over.Load():
			return nil
		case !s.starting(now) && !s.over.Load() && s.in.silent():
			return s.errSilent("no request came")
		}
	}
	return nil
}

// one takes one connection and serves it. It tells whether there was none.
func (s *crrServer) one(now int64) (idle bool, err error) {
	conn := s.accept(now)
	if conn < 0 {
		return true, nil
	}
	err = s.read(conn, 0)
	if _, waits := s.conns[conn]; waits && err == nil {
		s.wary = now + waryTime
		return false, s.watch(conn, unix.EPOLLIN)
	}
	return false, err
}

// all serves whatever is ready. It tells whether nothing was.
func (s *crrServer) all(now int64) (idle bool, err error) {
	n, err := unix.EpollWait(s.epoll, s.events, int(pollInterval.Milliseconds()))
	if err != nil && err != unix.EINTR {
		return false, fmt.Errorf("epoll: %w", err)
	}
	for _, e := range s.events[:max(n, 0)] {
		if err := s.event(e.Fd, now); err != nil {
			return false, err
		}
	}
	if now-s.swept > int64(pollInterval) {
		s.swept = now
		s.sweep(now)
	}
	return n <= 0, nil
}

// starting tells that the client may still be on its way.
func (s *crrServer) starting(now int64) bool {
	return s.recv.begin.Load() == 0 && now-s.began <= int64(firstWait)
}

func (s *crrServer) watch(fd int32, events uint32) error {
	if err := unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: events, Fd: fd}); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// accept takes a connection; -1 where there is none. Another thread may have
// taken it: then it waits for the next, for pollInterval at most.
func (s *crrServer) accept(now int64) int32 {
	conn, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(s.listener), 0, 0, unix.SOCK_CLOEXEC, 0, 0)
	if errno != 0 {
		return -1
	}
	if len(s.conns) >= crrPending {
		s.sweep(now + int64(greetWait)) // all strangers'
	}
	s.conns[int32(conn)] = crrConn{since: now}
	return int32(conn)
}

// event handles one ready descriptor.
func (s *crrServer) event(fd int32, now int64) error {
	if int(fd) != s.listener {
		return s.read(fd, unix.MSG_DONTWAIT)
	}
	conn := s.accept(now)
	if conn < 0 {
		return nil
	}
	if err := s.read(conn, unix.MSG_DONTWAIT); err != nil {
		return err
	}
	if _, waits := s.conns[conn]; !waits {
		return nil // served, or refused
	}
	return s.watch(conn, unix.EPOLLIN)
}

// read takes what comes of a request, or with MSG_DONTWAIT what is there; a
// whole one is answered and the connection closed.
func (s *crrServer) read(fd int32, flags int) error {
	c, waits := s.conns[fd]
	if !waits {
		return nil
	}
	for {
		n, errno := recv(int(fd), unsafe.Pointer(&s.req[0]), len(s.req)-c.got, flags)
		if temporary(errno) {
			s.conns[fd] = c
			return nil
		}
		if errno != 0 || n == 0 {
			s.refuse(fd)
			return nil
		}
		if c.got < tokenBytes {
			copy(c.token[c.got:], s.req[:n])
		}
		if c.got += n; c.got >= tokenBytes && c.token != s.token {
			s.refuse(fd)
			return nil
		}
		if c.got == len(s.req) {
			break
		}
	}
	s.in.beat() // before first: the client has come
	if !s.opened {
		s.recv.first(nanotime())
		s.opened = true
	}
	delete(s.conns, fd)
	err := s.sendAll(int(fd), s.resp)
	closeNow(int(fd))
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		err = nil // a client that was ended in its last transaction
	}
	return err
}

// refuse closes a stranger's connection.
func (s *crrServer) refuse(fd int32) {
	closeNow(int(fd))
	delete(s.conns, fd)
	s.strangers.Add(1)
}

// sweep refuses connections that take too long to greet.
func (s *crrServer) sweep(now int64) {
	for fd, c := range s.conns {
		if now-c.since > int64(greetWait) {
			s.refuse(fd)
		}
	}
}

func (s *crrServer) report(*tally) {}
