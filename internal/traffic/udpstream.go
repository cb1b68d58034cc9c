package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// udpBatch is how many datagrams one system call takes at most.
	udpBatch = 64
	// gsoSegments and gsoBytes bound what one send with UDP_SEGMENT may hold
	// (UDP_MAX_SEGMENTS, and the length of an IP packet).
	gsoSegments = 64
	gsoBytes    = maxDatagram
	gsoBatch    = 8

	checkInterval = int64(20 * time.Millisecond)  // a sender listens
	aliveInterval = int64(500 * time.Millisecond) // a receiver says that it is there
	// lateWait is how long a receiver waits for datagrams that others overtook,
	// after the last; drainWait how long without an end being said.
	lateWait  = int64(20 * time.Millisecond)
	drainWait = int64(500 * time.Millisecond)
)

// udpSender sends one flow of datagrams until the receiver has seen enough.
type udpSender struct {
	*run
	fd, index int
	reverse   bool // this is the server: begin when told to
	segments  int  // datagrams per message of sendmmsg; 1 without UDP_SEGMENT
	batch     int  // messages per system call
	bufs      [][]byte
	iovs      []unix.Iovec
	msgs      []mmsghdr
	pace      pacer
	next      uint64 // the number of the next datagram
	sent      int64  // inside the window
	heard     int64
}

func newUDPSender(r *run, fd, index int) (*udpSender, error) {
	s := &udpSender{run: r, fd: fd, index: index, reverse: roles(r.cfg)[index] == download, segments: 1, batch: udpBatch, pace: newPacer(r.cfg)}
	size := r.cfg.MessageBytes
	if r.cfg.UDPGSO {
		s.segments, s.batch = max(1, min(gsoSegments, gsoBytes/size)), gsoBatch
		if err := unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT, size); err != nil {
			return nil, fmt.Errorf("udp_gso: UDP_SEGMENT: %w: leave udp_gso out on this kernel", err)
		}
	}
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

func (s *udpSender) work() error {
	if s.reverse {
		if err := s.awaitGo(); err != nil {
			return err
		}
	}
	now := nanotime()
	begin, end := s.send.first(now)
	s.pace.start, s.heard = now, now
	check := now + checkInterval
	for !s.stopped.Load() {
		inside := now >= begin && now < end
		if n := s.due(now); n == 0 {
			s.pace.sleep(now)
		} else if err := s.sendSome(n, now, inside); err != nil {
			if now >= end && errors.Is(err, unix.ECONNREFUSED) {
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
		switch enough, err := s.listen(now); {
		case enough && now >= end, s.over.Load() && now >= end:
			s.sayEnd()
			return nil
		case enough:
			return errEarly
		case err != nil && now < end:
			return err
		case err != nil:
			return nil // as above: gone after the window
		case now-s.heard > s.idle:
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
func (s *udpSender) listen(now int64) (enough bool, err error) {
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
			s.say(s.fd, ackControl, s.index)
			s.heard = now
		case aliveControl, goControl, ackControl:
			s.heard = now
		case stopControl:
			return true, nil
		}
	}
}

func (s *udpSender) sayEnd() {
	for range 3 {
		s.say(s.fd, endControl, s.index)
	}
}

// awaitGo waits until the client is ready to receive.
func (s *udpSender) awaitGo() error {
	limit := nanotime() + int64(gatherWait)
	for !s.stopped.Load() {
		switch kind, err := s.awaitControl(s.fd, pollInterval); {
		case err != nil:
			return fmt.Errorf("wait for the client: %w", err)
		case kind == goControl:
			return nil
		case kind == helloControl:
			s.say(s.fd, ackControl, s.index)
		case nanotime() > limit:
			return s.errSilent("the client did not begin")
		}
	}
	return nil
}

func (s *udpSender) report(t *tally) {
	count(&t.sentPackets, s.sent)
	count(&t.sentBytes, s.sent*int64(s.cfg.MessageBytes))
}

// udpReceiver receives one flow and keeps its books.
type udpReceiver struct {
	*run
	fd, index int
	reverse   bool // this is the client: say when to begin
	bufs      [][]byte
	iovs      []unix.Iovec
	msgs      []mmsghdr
	control   []byte // of each message, where UDP_GRO tells the segments' size
	token8    uint64

	begin, end            int64
	ended                 bool
	packets, bytes        int64
	arrived, late, copies int64
	seen                  seen
	transit, jitter       float64
	oneWay                *recorder
	series                series
}

const groControl = 32 // room for one control message with an int

func newUDPReceiver(r *run, fd, index int) (*udpReceiver, error) {
	s := &udpReceiver{run: r, fd: fd, index: index, reverse: roles(r.cfg)[index] == download, series: newSeries(r.cfg.Window), token8: binary.LittleEndian.Uint64(r.token[:]), transit: math.NaN()}
	batch, size := udpBatch, max(r.cfg.MessageBytes, 2*controlBytes)
	if r.cfg.UDPGSO {
		batch, size = gsoBatch, 64<<10
		s.control = make([]byte, batch*groControl)
		if err := unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1); err != nil {
			return nil, fmt.Errorf("udp_gso: UDP_GRO: %w: leave udp_gso out on this kernel", err)
		}
	}
	if r.cfg.SharedClock && r.cfg.MessageBytes >= headerBytes {
		s.oneWay = newRecorder()
	}
	s.iovs, s.msgs = make([]unix.Iovec, batch), make([]mmsghdr, batch)
	for i := range batch {
		b := make([]byte, size)
		s.bufs = append(s.bufs, b)
		s.iovs[i].Base = &b[0]
		s.iovs[i].SetLen(len(b))
		s.msgs[i].hdr.Iov = &s.iovs[i]
		s.msgs[i].hdr.SetIovlen(1)
	}
	return s, nil
}

func (s *udpReceiver) work() error {
	now := nanotime()
	heard, duty := now, now
	var done int64 // when to end, after an end was said
	for !s.stopped.Load() {
		if now >= duty {
			duty = now + s.duty(now)
		}
		s.rearm()
		n, errno := recvmmsg(s.fd, &s.msgs[0], len(s.msgs), unix.MSG_WAITFORONE)
		now = nanotime()
		if errno == 0 {
			heard = now
			for i := range n {
				s.take(i, now)
			}
		} else if !temporary(errno) {
			if s.begin != 0 && now >= s.end {
				return nil
			}
			return fmt.Errorf("receive: %w", sendError(errno))
		}
		switch {
		case s.ended && done == 0:
			done = now + lateWait
		case s.ended && now >= done:
			if s.begin == 0 || now < s.end {
				return errEarly
			}
			return nil
		case s.begin != 0 && now >= s.end && (now-heard > drainWait || now > s.end+int64(tailLimit)):
			return nil
		case now-heard > s.idle:
			return s.errSilent("no datagram came")
		case s.over.Load() && now-heard > drainWait:
			return errEarly
		}
	}
	return nil
}

// duty says what is to be said to the sender, and when next.
func (s *udpReceiver) duty(now int64) int64 {
	switch {
	case s.begin == 0 && s.reverse:
		s.say(s.fd, goControl, s.index)
		return checkInterval
	case s.begin != 0 && now >= s.end:
		s.say(s.fd, stopControl, s.index)
		return checkInterval
	case s.begin != 0:
		s.say(s.fd, aliveControl, s.index)
		return min(aliveInterval, s.end-now)
	default:
		return checkInterval
	}
}

// rearm makes the control buffers whole again, which the kernel shortens.
func (s *udpReceiver) rearm() {
	if s.control == nil {
		return
	}
	for i := range s.msgs {
		s.msgs[i].hdr.Control = &s.control[i*groControl]
		s.msgs[i].hdr.SetControllen(groControl)
	}
}

// segment is the size of the datagrams that message i holds.
func (s *udpReceiver) segment(i, n int) int {
	h := &s.msgs[i].hdr
	if s.control == nil || int(h.Controllen) < unix.CmsgLen(4) {
		return n
	}
	c := (*unix.Cmsghdr)(unsafe.Pointer(h.Control))
	if c.Level != unix.SOL_UDP || c.Type != unix.UDP_GRO {
		return n
	}
	return int(*(*int32)(unsafe.Pointer(&s.control[i*groControl+unix.CmsgLen(0)])))
}

// take books message i of a batch.
func (s *udpReceiver) take(i int, now int64) {
	n := int(s.msgs[i].n)
	size := s.segment(i, n)
	for b := s.bufs[i][:n]; len(b) > 0; {
		one := b[:min(size, len(b))]
		b = b[len(one):]
		s.book(one, now)
	}
}

// book counts one datagram.
func (s *udpReceiver) book(p []byte, now int64) {
	if p[0]&flagControl != 0 {
		switch kind, _ := s.readControl(p); kind {
		case helloControl:
			s.say(s.fd, ackControl, s.index)
		case endControl:
			s.ended = true
		}
		return
	}
	if len(p) != s.cfg.MessageBytes || !ours(p, s.token8) {
		s.strangers.Add(1)
		return
	}
	if s.begin == 0 {
		s.begin, s.end = s.recv.first(now)
	}
	if now >= s.begin && now < s.end {
		s.packets++
		s.bytes += int64(len(p))
		s.series.add(now-s.begin, int64(len(p)))
	}
	w := word(p)
	if len(p) < wordBytes {
		s.arrived += int64(w & flagWindow)
		return
	}
	late, duplicate := s.seen.mark(w >> flagBits)
	if w&flagWindow == 0 {
		return
	}
	switch {
	case duplicate:
		s.copies++
		return
	case late:
		s.late++
	}
	s.arrived++
	if len(p) >= headerBytes {
		s.time(now - sentAt(p))
	}
}

// time takes the transit time of a datagram. Its absolute value means
// something where both ends share a clock; its changes, the jitter of RFC 3550
// (section 6.4.1), everywhere.
func (s *udpReceiver) time(transit int64) {
	t := float64(transit)
	if d := math.Abs(t - s.transit); !math.IsNaN(d) {
		s.jitter += (d - s.jitter) / 16
	}
	s.transit = t
	if s.oneWay != nil {
		s.oneWay.record(transit)
	}
}

func (s *udpReceiver) report(t *tally) {
	count(&t.packets, s.packets)
	count(&t.bytes, s.bytes)
	count(&t.arrived, s.arrived)
	t.addSeries(s.series)
	if s.cfg.MessageBytes >= wordBytes {
		count(&t.reordered, s.late)
		count(&t.duplicated, s.copies)
	}
	if s.cfg.MessageBytes >= headerBytes {
		t.jitter += s.jitter / 1e9
		t.jitters++
	}
	if s.oneWay != nil {
		t.oneWay = append(t.oneWay, s.oneWay)
	}
}
