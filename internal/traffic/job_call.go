//go:build linux

package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// call connects to the ranks below this one, to all at the same time: a rank that is cut
// off then names all that it cannot reach, and is named by all others.
func (j *Job) call(ctx context.Context, below []netip.AddrPort) ([]*net.TCPConn, error) {
	conns, errs := make([]*net.TCPConn, len(below)), make([]error, len(below))
	var calls sync.WaitGroup
	for i, address := range below {
		calls.Go(func() { conns[i], errs[i] = dialAs(ctx, j.run, address, j.cfg.Rank-i-1) })
	}
	calls.Wait()
	if ctx.Err() != nil {
		return conns, context.Cause(ctx)
	}
	if err := j.failedCalls(below, errs); err != nil {
		return conns, err
	}
	stop := context.AfterFunc(ctx, func() {
		for _, c := range conns {
			_ = c.SetReadDeadline(time.Unix(1, 0)) // a read that is over needs no deadline
		}
	})
	defer stop()
	deadline := time.Now().Add(gatherWait)
	for i, c := range conns {
		var b [1]byte
		err := c.SetReadDeadline(deadline)
		if err == nil {
			_, err = io.ReadFull(c, b[:])
		}
		if ctx.Err() != nil {
			return conns, context.Cause(ctx)
		}
		if timedOut(err) {
			return conns, &JobError{Reason: fmt.Sprintf("rank %d: rank %d did not begin", j.cfg.Rank, i), WaitsFor: []int{i}}
		}
		if err != nil {
			return conns, &JobError{Reason: fmt.Sprintf("rank %d: rank %d closed the connection", j.cfg.Rank, i), Closed: []int{i}}
		}
	}
	return conns, nil
}

// failedCalls is the error of the connections that could not be opened; nil if all were.
func (j *Job) failedCalls(below []netip.AddrPort, errs []error) error {
	e := &JobError{}
	var reasons []string
	for i, err := range errs {
		switch {
		case err == nil:
			continue
		case timedOut(err) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH):
			e.Unacknowledged = append(e.Unacknowledged, i)
		case errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE):
			e.Closed = append(e.Closed, i)
		default:
			return fmt.Errorf("rank %d: call rank %d at %s: %w", j.cfg.Rank, i, below[i], err)
		}
		reasons = append(reasons, fmt.Sprintf("rank %d at %s: %v", i, below[i], err))
	}
	if reasons == nil {
		return nil
	}
	e.Reason = fmt.Sprintf("rank %d: %s", j.cfg.Rank, strings.Join(reasons, "; "))
	return e
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// missing is the error of a rank to which not all higher ranks have connected.
func (j *Job) missing(ctx context.Context, d *acceptor, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := &JobError{}
	d.mu.Lock()
	for i := range d.expected {
		if !d.seen[i] {
			e.WaitsFor = append(e.WaitsFor, j.cfg.Rank+1+i)
		}
	}
	d.mu.Unlock()
	e.Reason = fmt.Sprintf("rank %d: %v", j.cfg.Rank, err)
	return e
}

// dialAs opens a connection and greets with the token and its index in the list of the
// connections that the other end expects.
func dialAs(ctx context.Context, r *run, address netip.AddrPort, index int) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: gatherWait, KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error {
		var tuneErr error
		err := c.Control(func(fd uintptr) { tuneErr = tuneTCP(int(fd), r.cfg, roundTrips) })
		return errors.Join(err, tuneErr)
	}}
	d.SetMultipathTCP(false)
	c, err := d.DialContext(ctx, "tcp", address.String())
	if err != nil {
		return nil, err
	}
	if _, err := c.Write(greeting(r.token, index)); err != nil {
		return nil, errors.Join(fmt.Errorf("greet: %w", err), c.Close())
	}
	return c.(*net.TCPConn), nil
}

// turnAway closes the connections that arrived after gathering had ended, so that their
// ranks notice at once.
func (d *acceptor) turnAway() {
	for {
		select {
		case a := <-d.arrived:
			_ = a.conn.Close() // nothing was read from it
		default:
			return
		}
	}
}
