//go:build linux

package traffic

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	crrPending = 1024 // connections without a whole request, per thread
	crrEvents  = 64
	// suspectTime is how long a server expects more strangers after one that sent
	// nothing.
	suspectTime = int64(10 * time.Second)
)

// crrGate holds the connections of one thread whose request is not whole, and waits for
// all of them at once, so that silent strangers hold nobody up. At most crrPending are
// open at a time: the oldest that has not given the token then makes room.
type crrGate struct {
	*run
	listener, epoll int
	req             []byte // room for what is read of a request
	events          []unix.EpollEvent
	conns           map[int32]crrConn
	order           []crrArrival // oldest first; those no longer in conns are passed over
	suspectUntil    int64        // wait for all at once until then; 0: no stranger came
	swept           int64
	// serve answers a whole request, whose first byte is mark.
	serve func(fd int32, mark byte) error
}

// crrConn is a connection whose request is not whole.
type crrConn struct {
	got   int
	head  [tokenBytes + 1]byte
	since int64
}

// hasToken reports whether a connection has sent the token: read refuses a wrong one.
func (c crrConn) hasToken() bool { return c.got >= tokenBytes }

// crrArrival names a connection; since distinguishes it from an earlier one of its number.
type crrArrival struct {
	fd    int32
	since int64
}

func newCRRGate(r *run, listener int) crrGate {
	return crrGate{run: r, listener: listener, epoll: -1, req: make([]byte, tokenBytes+r.cfg.requestBytes()), events: make([]unix.EpollEvent, crrEvents), conns: map[int32]crrConn{}}
}

func (g *crrGate) open() (err error) {
	if g.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return g.watch(int32(g.listener), unix.EPOLLIN|unix.EPOLLEXCLUSIVE)
}

func (g *crrGate) close() error {
	for fd, c := range g.conns {
		if c.hasToken() { // of a client that was ended
			closeNow(int(fd))
			continue
		}
		g.refuse(fd)
	}
	return unix.Close(g.epoll)
}

// unsuspicious reports whether no connection waits and no stranger was silent lately.
func (g *crrGate) unsuspicious() bool {
	return len(g.conns) == 0 && (g.suspectUntil == 0 || nanotime() >= g.suspectUntil)
}

// one waits for the request of a connection and serves it. One that says nothing for as
// long as a call may take is kept, and from then on all are waited for at once.
func (g *crrGate) one(fd int32) error {
	got, ticks := 0, 0
	for got < len(g.req) {
		n, errno := recv(int(fd), unsafe.Pointer(&g.req[got]), len(g.req)-got, 0)
		if errno == unix.EINTR && ticks == 0 { // tick comes as often as a call may take: it ends each before its time
			ticks++
			continue
		}
		if temporary(errno) {
			break
		}
		if errno != 0 || n == 0 {
			g.refuse(fd)
			return nil
		}
		if got += n; got >= tokenBytes && [tokenBytes]byte(g.req[:tokenBytes]) != g.token {
			g.refuse(fd)
			return nil
		}
	}
	if got < len(g.req) {
		now := nanotime()
		c := crrConn{got: got, since: now}
		copy(c.head[:], g.req[:got])
		g.conns[fd], g.suspectUntil = c, now+suspectTime
		return g.keep(fd, now)
	}
	err := g.serve(fd, g.req[tokenBytes])
	closeNow(int(fd))
	return err
}

// all serves whatever is ready. It reports whether nothing was.
func (g *crrGate) all(now int64) (idle bool, err error) {
	n, err := unix.EpollWait(g.epoll, g.events, int(pollInterval.Milliseconds()))
	if err != nil && err != unix.EINTR {
		return false, fmt.Errorf("epoll: %w", err)
	}
	for _, e := range g.events[:max(n, 0)] {
		if err := g.event(e.Fd, now); err != nil {
			return false, err
		}
	}
	if now-g.swept > int64(pollInterval) {
		g.swept = now
		g.sweep(now)
	}
	return n <= 0, nil
}

func (g *crrGate) watch(fd int32, events uint32) error {
	if err := unix.EpollCtl(g.epoll, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: events, Fd: fd}); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// accept takes a connection; -1 where there is none. Another thread may have
// taken it: then it waits for the next, for pollInterval at most.
func (g *crrGate) accept() int32 {
	conn, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(g.listener), 0, 0, unix.SOCK_CLOEXEC, 0, 0)
	if errno != 0 {
		return -1
	}
	return int32(conn)
}

// event handles one ready descriptor.
func (g *crrGate) event(fd int32, now int64) error {
	if int(fd) != g.listener {
		return g.read(fd, unix.MSG_DONTWAIT)
	}
	conn := g.accept()
	if conn < 0 {
		return nil
	}
	g.conns[conn] = crrConn{since: now}
	if err := g.read(conn, unix.MSG_DONTWAIT); err != nil {
		return err
	}
	return g.keep(conn, now)
}

// keep waits for the rest of a request, unless read has served or refused it.
func (g *crrGate) keep(conn int32, now int64) error {
	if _, waits := g.conns[conn]; !waits {
		return nil
	}
	g.order = append(g.order, crrArrival{conn, now})
	if err := g.watch(conn, unix.EPOLLIN); err != nil {
		return err
	}
	if len(g.order) > 2*crrPending {
		g.order = slices.DeleteFunc(g.order, func(a crrArrival) bool { return !g.waits(a) })
	}
	if len(g.conns) > crrPending {
		return g.evict()
	}
	return nil
}

// waits reports whether the request of an arrival is not whole.
func (g *crrGate) waits(a crrArrival) bool {
	c, open := g.conns[a.fd]
	return open && c.since == a.since
}

// evict makes room: it reads the oldest connection, which may be the client's whose
// bytes have just come, and refuses it where it has not given the token by then.
func (g *crrGate) evict() error {
	for len(g.order) > 0 && !g.waits(g.order[0]) {
		g.order = g.order[1:]
	}
	for i, a := range g.order {
		if !g.waits(a) || g.conns[a.fd].hasToken() {
			continue
		}
		if err := g.read(a.fd, unix.MSG_DONTWAIT); err != nil {
			return err
		}
		if g.waits(a) && g.conns[a.fd].hasToken() {
			continue
		}
		if g.waits(a) {
			g.refuse(a.fd)
		}
		g.order = slices.Delete(g.order, i, i+1)
		return nil
	}
	return nil
}

// read takes what comes of a request, or with MSG_DONTWAIT what has arrived; a
// whole one is answered and the connection closed.
func (g *crrGate) read(fd int32, flags int) error {
	c, waits := g.conns[fd]
	if !waits {
		return nil
	}
	for c.got < len(g.req) {
		n, errno := recv(int(fd), unsafe.Pointer(&g.req[0]), len(g.req)-c.got, flags)
		if temporary(errno) {
			g.conns[fd] = c
			return nil
		}
		if errno != 0 || n == 0 {
			g.refuse(fd)
			return nil
		}
		if c.got < len(c.head) {
			copy(c.head[c.got:], g.req[:n])
		}
		if c.got += n; c.got >= tokenBytes && [tokenBytes]byte(c.head[:tokenBytes]) != g.token {
			g.refuse(fd)
			return nil
		}
	}
	delete(g.conns, fd)
	err := g.serve(fd, c.head[tokenBytes])
	closeNow(int(fd))
	return err
}

// refuse closes a stranger's connection.
func (g *crrGate) refuse(fd int32) {
	closeNow(int(fd))
	delete(g.conns, fd)
	g.strangers.Add(1)
}

// sweep refuses connections that take too long to give the token.
func (g *crrGate) sweep(now int64) {
	for fd, c := range g.conns {
		if !c.hasToken() && now-c.since > int64(greetWait) {
			g.refuse(fd)
		}
	}
}
