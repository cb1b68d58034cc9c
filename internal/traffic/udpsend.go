//go:build linux

package traffic

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// udpBatch is how many datagrams one system call takes at most, batchBytes
	// how much memory for them: 256 flows must have room.
	udpBatch   = 64
	batchBytes = 256 << 10
	// gsoSegments and gsoBytes bound what one send with UDP_SEGMENT may hold
	// (UDP_MAX_SEGMENTS, and the length of an IP packet).
	gsoSegments = 64
	gsoBytes    = maxDatagram

	checkInterval = int64(20 * time.Millisecond) // a sender listens
)

// udpSender sends one flow of datagrams until the receiver has seen enough.
type udpSender struct {
	*run
	fd, index int
	reverse   bool // this is the server: begin when the client asks for it
	segments  int  // datagrams per message of sendmmsg; 1 without UDP_SEGMENT
	batch     int  // messages per system call
	bufs      [][]byte
	iovs      []unix.Iovec
	msgs      []mmsghdr
	pace      pacer
	next      uint64 // the number of the next datagram
	sent      int64  // inside the window
}

func newUDPSender(r *run, fd, index int) (*udpSender, error) {
	s := &udpSender{run: r, fd: fd, index: index, reverse: roles(r.cfg)[index] == download, segments: 1, pace: newPacer(r.cfg)}
	size := r.cfg.MessageBytes
	if r.cfg.UDPGSO {
		s.segments = max(1, min(gsoSegments, gsoBytes/size))
		if err := unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT, size); err != nil {
			return nil, fmt.Errorf("udp_gso: UDP_SEGMENT: %w: leave udp_gso out on this kernel", err)
		}
	}
	s.batch = batch(size * s.segments)
	s.iovs, s.msgs = make([]unix.Iovec, s.batch), make([]mmsghdr, s.batch)
	for i := range s.batch {
		b := make([]byte, size*s.segments)
		for j := range s.segments {
			putToken(b[j*size:(j+1)*size], &r.token)
		}
		s.bufs = append(s.bufs, b)
		s.iovs[i].Base = &b[0]
		s.iovs[i].SetLen(len(b))
		s.msgs[i].hdr.Iov = &s.iovs[i]
		s.msgs[i].hdr.SetIovlen(1)
	}
	return s, nil
}

// batch is how many messages of a size go into one system call.
func batch(bytes int) int { return max(1, min(udpBatch, batchBytes/bytes)) }

func (s *udpSender) work() error {
	if s.reverse {
		if err := s.awaitGo(); err != nil {
			return err
		}
	}
	now := nanotime()
	begin, end := s.send.first(now)
	s.pace.start = now
	check := now + checkInterval
	for !s.stopped.Load() {
		inside := now >= begin && now < end
		if n := s.due(now); n == 0 {
			s.pace.sleep(now, s.segments)
		} else if err := s.sendSome(n, now, inside); err != nil {
			if errors.Is(err, unix.ECONNREFUSED) && nanotime() >= end {
				return nil // the receiver had seen enough and is gone
			}
			return err
		}
		if now = nanotime(); now < check {
			continue
		}
		check = now + checkInterval/4
		if now < end {
			check = min(end, now+checkInterval)
		}
		enough, err := s.listen()
		now = nanotime() // what was heard may be of just now
		switch {
		case enough && now >= end, s.over.Load() && now >= end:
			s.sendControlThrice(s.fd, endControl, s.index)
			return nil
		case enough:
			return errEarly
		case err != nil && now < end:
			return err
		case err != nil:
			return nil // as above: gone after the window
		case s.in.silent():
			return s.errSilent("the receiver was not heard")
		}
	}
	return nil
}

// due is how many messages are to be sent now.
func (s *udpSender) due(now int64) int {
	datagrams := s.pace.due(now, s.batch*s.segments)
	return datagrams / s.segments
}

// sendSome sends n messages.
func (s *udpSender) sendSome(n int, now int64, inside bool) error {
	flags := uint64(0)
	if inside {
		flags = flagWindow
	}
	size, number := s.cfg.MessageBytes, s.next
	for i := range n {
		b := s.bufs[i]
		for len(b) > 0 {
			putHeader(b[:size], number<<flagBits|flags, now)
			number++
			b = b[size:]
		}
	}
	m, errno := sendmmsg(s.fd, &s.msgs[0], n, unix.MSG_NOSIGNAL)
	switch {
	case errno == 0:
		datagrams := m * s.segments
		s.next += uint64(datagrams)
		s.pace.sent += int64(datagrams)
		if inside {
			s.sent += int64(datagrams)
		}
		return nil
	case temporary(errno):
		return nil
	case errno == unix.ENOBUFS:
		sleepUntil(now + paceQuantum) // the device's queue is full
		return nil
	default:
		return sendError(errno)
	}
}

// sendError says what the errors of a datagram socket mean here.
func sendError(errno unix.Errno) error {
	switch errno {
	case unix.ECONNREFUSED:
		return fmt.Errorf("send: %w: nobody serves at the other end any more", errno)
	case unix.EMSGSIZE:
		return fmt.Errorf("send: %w: the message is larger than the path or UDP_SEGMENT takes: use a smaller message_bytes", errno)
	case unix.EPERM:
		return fmt.Errorf("send: %w: a packet filter at this end drops the traffic", errno)
	default:
		return fmt.Errorf("send: %w", errno)
	}
}

// listen reads what the receiver says.
func (s *udpSender) listen() (enough bool, err error) {
	for {
		var b [2 * controlBytes]byte
		n, errno := recv(s.fd, unsafe.Pointer(&b), len(b), unix.MSG_DONTWAIT)
		if temporary(errno) {
			return false, nil
		}
		if errno != 0 {
			return false, sendError(errno)
		}
		switch kind, _ := s.readControl(b[:n]); kind {
		case helloControl:
			s.sendControl(s.fd, ackControl, s.index)
			s.in.beat()
		case aliveControl, goControl, ackControl:
			s.in.beat()
		case stopControl:
			s.in.beat()
			return true, nil
		}
	}
}

// awaitGo waits until the client is ready to receive.
func (s *udpSender) awaitGo() error {
	for !s.stopped.Load() {
		switch kind, err := s.awaitControl(s.fd, pollInterval); {
		case err != nil:
			return fmt.Errorf("wait for the client: %w", err)
		case kind == goControl:
			s.in.beat()
			return nil
		case kind == helloControl:
			s.sendControl(s.fd, ackControl, s.index)
		case s.in.silent():
			return s.errSilent("the client did not begin")
		}
	}
	return nil
}

func (s *udpSender) report(t *tally) {
	count(&t.sentPackets, s.sent)
	count(&t.sentBytes, s.sent*int64(s.cfg.MessageBytes))
}
