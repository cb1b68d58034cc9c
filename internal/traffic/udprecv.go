//go:build linux

package traffic

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	aliveInterval = int64(500 * time.Millisecond) // a receiver says that it is ready
	// lateWait is how long a receiver waits for datagrams that others overtook,
	// after the last; drainWait how long without an end being said.
	lateWait  = int64(20 * time.Millisecond)
	drainWait = int64(500 * time.Millisecond)
)

// udpReceiver receives one flow and keeps its books.
type udpReceiver struct {
	*run
	fd, index int
	reverse   bool // this is the client: say when to begin
	bufs      [][]byte
	iovs      []unix.Iovec
	msgs      []mmsghdr
	control   []byte // of each message, where UDP_GRO gives the segments' size
	token8    uint64

	begin, end            int64
	ended                 bool
	packets, bytes        int64
	arrived, late, copies int64
	seen                  seen
	transit, jitter       float64
	oneWay                *recorder
	series                series
	pauses                rests
	// onMark is called for a mark of a sliced run, after all that came before it.
	onMark func(number uint64)
}

const groControl = 32 // room for one control message with an int

func newUDPReceiver(r *run, fd, index int) (*udpReceiver, error) {
	s := &udpReceiver{run: r, fd: fd, index: index, pauses: rests{fd: fd, longest: r.rest}, reverse: roles(r.cfg)[index] == download, series: newSeries(r.cfg.Window), token8: binary.LittleEndian.Uint64(r.token[:]), transit: math.NaN()}
	size := max(r.cfg.MessageBytes, 2*markBytes)
	if r.cfg.UDPGSO {
		size = 64 << 10
		s.control = make([]byte, batch(size)*groControl)
		if err := unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1); err != nil {
			return nil, fmt.Errorf("udp_gso: UDP_GRO: %w: leave udp_gso out on this kernel", err)
		}
	}
	if r.cfg.SharedClock && r.cfg.MessageBytes >= headerBytes {
		s.oneWay = newRecorder()
	}
	n := batch(size)
	s.iovs, s.msgs = make([]unix.Iovec, n), make([]mmsghdr, n)
	for i := range n {
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
			s.in.beat()
			for i := range n {
				s.take(i, now)
			}
			if n < len(s.msgs) && s.cfg.RateBitsPerSecond == 0 {
				s.pauses.rest(now)
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
			// A thread that got no CPU since the end may not have said so yet.
			s.sendControlThrice(s.fd, stopControl, s.index)
			return nil
		case errno != 0 && s.in.silent():
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
		s.sendControl(s.fd, goControl, s.index)
		return checkInterval
	case s.begin != 0 && now >= s.end:
		s.sendControl(s.fd, stopControl, s.index)
		return checkInterval
	case s.begin != 0:
		s.sendControl(s.fd, aliveControl, s.index)
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
	return max(1, int(*(*int32)(unsafe.Pointer(&s.control[i*groControl+unix.CmsgLen(0)]))))
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
		if kind, number, _ := s.readMark(p); kind == markControl && s.onMark != nil {
			s.onMark(number)
			return
		}
		switch kind, _ := s.readControl(p); kind {
		case helloControl:
			s.sendControl(s.fd, ackControl, s.index)
		case endControl:
			s.ended = true
		}
		return
	}
	if len(p) != s.cfg.MessageBytes || !hasToken(p, s.token8) {
		s.strangers.Add(1)
		return
	}
	if s.begin == 0 {
		s.begin, s.end = s.recv.first(now)
	}
	if now >= s.begin && now < s.end {
		s.packets++
		s.bytes += int64(len(p))
		if s.onMark == nil { // slices have gaps between them
			s.series.add(now-s.begin, int64(len(p)))
		}
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
		s.oneWay.recordRun(transit)
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
