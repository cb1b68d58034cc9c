//go:build linux

package traffic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A TCP data connection begins with a greeting: the run's token and the
// connection's index in roles. When all connections of the run are open, the
// server answers each with one byte, and traffic begins.

const (
	greetingBytes = tokenBytes + 4
	// greetWait is how long a connection may take to greet.
	greetWait = 2 * time.Second
	// pendingLimit is how many connections may be without a greeting at once;
	// the oldest that has sent nothing is closed then. A client of this run greets
	// at once.
	pendingLimit = 1024
	// firstWait is how long a server waits for its client, gatherWait for the
	// next part of it, and a client for its server.
	firstWait  = 30 * time.Second
	gatherWait = 3 * time.Second
)

func greeting(token [tokenBytes]byte, index int) []byte {
	return binary.LittleEndian.AppendUint32(token[:], uint32(index))
}

// acceptor accepts connections, keeps those that send this run's greeting, and counts the others.
type acceptor struct {
	run      *run
	l        *net.TCPListener
	expected int
	arrived  chan arrival

	mu      sync.Mutex
	seen    map[int]bool
	pending []*net.TCPConn
	greets  sync.WaitGroup
}

type arrival struct {
	index int
	conn  *net.TCPConn
}

func listenTCP(ctx context.Context, cfg Config) (*net.TCPListener, error) {
	// What is set before listening is set on every connection, even on one that
	// comes at once. No keepalive and no MPTCP: neither is in what published
	// tools measure.
	lc := net.ListenConfig{KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error {
		var tuneErr error
		err := c.Control(func(fd uintptr) {
			tuneErr = tuneTCP(int(fd), cfg, roles(cfg)[0])
			if cfg.Sliced && cfg.Test == TCPCRR { // connections that come before it is served inherit them too
				tuneErr = errors.Join(tuneErr, timeouts(int(fd)))
			}
		})
		return errors.Join(err, tuneErr)
	}}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(ctx, "tcp", fmt.Sprintf(":%d", cfg.Port))
	if err != nil {
		return nil, fmt.Errorf("open a data port: %w", err)
	}
	return l.(*net.TCPListener), nil
}

// open accepts until the listener is closed.
func (d *acceptor) open() {
	for {
		conn, err := d.l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			break
		}
		if err != nil {
			time.Sleep(time.Millisecond) // out of files, or a connection that went at once
			continue
		}
		d.admit(conn)
	}
	d.mu.Lock()
	for _, c := range d.pending {
		_ = c.Close() // a stranger's
	}
	d.mu.Unlock()
	d.greets.Wait()
}

// admit waits for a greeting without holding up the others.
func (d *acceptor) admit(conn *net.TCPConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pending) >= pendingLimit {
		d.evict()
	}
	d.pending = append(d.pending, conn)
	d.greets.Add(1)
	go func() {
		defer d.greets.Done()
		index, ok := d.greet(conn)
		if ok {
			d.arrived <- arrival{index, conn}
			return
		}
		_ = conn.Close() // a stranger's
		d.run.strangers.Add(1)
	}()
}

// evict closes the oldest connection that has nothing to be read. One that has
// is left to its goroutine, which a busy machine may not have run yet: it may be
// our client's.
func (d *acceptor) evict() {
	for i, c := range d.pending {
		if readable(c) {
			continue
		}
		_ = c.Close() // a stranger's; its goroutine counts it
		d.pending = slices.Delete(d.pending, i, i+1)
		return
	}
}

// readable reports that bytes, or the end, wait to be read.
func readable(c syscall.Conn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var b [1]byte
	var peekErr error
	err = raw.Control(func(fd uintptr) {
		_, _, peekErr = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err == nil && peekErr == nil
}

func (d *acceptor) greet(conn *net.TCPConn) (int, bool) {
	var got [greetingBytes]byte
	err := conn.SetReadDeadline(time.Now().Add(greetWait))
	if err == nil {
		_, err = io.ReadFull(conn, got[:])
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, c := range d.pending {
		if c == conn {
			d.pending = append(d.pending[:i], d.pending[i+1:]...)
			break
		}
	}
	index := int(binary.LittleEndian.Uint32(got[tokenBytes:]))
	if err != nil || [tokenBytes]byte(got[:tokenBytes]) != d.run.token || index >= d.expected || d.seen[index] {
		return 0, false
	}
	d.seen[index] = true
	return index, true
}

// gather waits until all connections have come, and answers them.
func (d *acceptor) gather(ctx context.Context) ([]*net.TCPConn, error) {
	conns := make([]*net.TCPConn, d.expected)
	fail := func(err error) ([]*net.TCPConn, error) {
		return nil, errors.Join(err, closeAll(conns))
	}
	timer := time.NewTimer(firstWait)
	defer timer.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for n := 0; n < d.expected; {
		select {
		case a := <-d.arrived:
			conns[a.index] = a.conn
			timer.Reset(gatherWait)
			n++
		case <-timer.C:
			return fail(fmt.Errorf("%d of %d connections came in time", n, d.expected))
		case <-tick.C:
			if d.run.over.Load() {
				return fail(fmt.Errorf("%d of %d connections had come when the client was over", n, d.expected))
			}
		case <-ctx.Done():
			return fail(context.Cause(ctx))
		}
	}
	for _, c := range conns {
		if _, err := c.Write([]byte{1}); err != nil {
			return fail(fmt.Errorf("answer a connection: %w", err))
		}
	}
	return conns, nil
}

func closeAll(conns []*net.TCPConn) error {
	var errs error
	for _, c := range conns {
		if c != nil {
			errs = errors.Join(errs, c.Close())
		}
	}
	return errs
}

// dial opens the client's connections and waits for the server's answers.
func dial(ctx context.Context, r *run, server netip.AddrPort, n int) ([]*net.TCPConn, error) {
	conns := make([]*net.TCPConn, n)
	fail := func(err error) ([]*net.TCPConn, error) {
		return nil, errors.Join(err, closeAll(conns))
	}
	d := net.Dialer{Timeout: gatherWait, KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error {
		var tuneErr error
		err := c.Control(func(fd uintptr) { tuneErr = tuneTCP(int(fd), r.cfg, roles(r.cfg)[0]) })
		return errors.Join(err, tuneErr)
	}}
	d.SetMultipathTCP(false)
	for i := range conns {
		c, err := d.DialContext(ctx, "tcp", server.String())
		if err != nil {
			return fail(err)
		}
		conns[i] = c.(*net.TCPConn)
		if _, err := c.Write(greeting(r.token, i)); err != nil {
			return fail(fmt.Errorf("greet the server: %w", err))
		}
	}
	stop := context.AfterFunc(ctx, func() {
		for _, c := range conns {
			_ = c.SetReadDeadline(time.Unix(1, 0)) // a read that is over needs no deadline
		}
	})
	defer stop()
	for _, c := range conns {
		var b [1]byte
		err := c.SetReadDeadline(time.Now().Add(gatherWait))
		if err == nil {
			_, err = io.ReadFull(c, b[:])
		}
		if ctx.Err() != nil {
			return fail(context.Cause(ctx))
		}
		if err != nil {
			return fail(fmt.Errorf("no answer from the server: %w", err))
		}
	}
	return conns, nil
}

// take makes plain file descriptors of connections, for blocking system calls.
// list is what each is for.
func (r *run) take(conns []*net.TCPConn, list []role) ([]int, error) {
	cfg := r.cfg
	fds := make([]int, 0, len(conns))
	var errs error
	for i, c := range conns {
		fd, err := dup(c)
		if err == nil {
			fds = append(fds, fd)
			err = errors.Join(unix.SetNonblock(fd, false), tuneTCP(fd, cfg, list[i]))
		}
		if err == nil && i == 0 {
			err = r.noteSocket(fd)
		}
		errs = errors.Join(errs, err, c.Close())
	}
	if errs != nil {
		for _, fd := range fds {
			_ = unix.Close(fd) // the run fails for the reason in errs
		}
		return nil, errs
	}
	return fds, nil
}

// dup gives a file descriptor of its own for a socket of package net.
func dup(c syscall.Conn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	var dupErr error
	err = raw.Control(func(s uintptr) { fd, dupErr = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(err, dupErr)
}
