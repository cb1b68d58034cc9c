//go:build linux

package traffic

import (
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// The slice of a stream of datagrams. It is sent flat out; the mark after it is
// queued behind it, so that the server answers when it has consumed all that came.
// The server's own clock says how long that took.

// udpSliceSender is the driving end.
type udpSliceSender struct {
	sliceFlow
	sender *udpSender
	rtt    int64 // the least of an exchange of marks, nanoseconds
}

func newUDPSliceSender(r *run, fd, index int) (*udpSliceSender, error) {
	s, err := newUDPSender(r, fd, index)
	if err != nil {
		return nil, err
	}
	return &udpSliceSender{sliceFlow: sliceFlow{run: r, fd: fd, index: index}, sender: s, rtt: math.MaxInt64}, nil
}

// burst sends until a time and gives the number of datagrams.
func (s *udpSliceSender) burst(now, until int64) (int64, error) {
	before := s.sender.sent
	for now < until && !s.stopped.Load() {
		if err := s.sender.sendSome(s.sender.batch, now, true); err != nil {
			return 0, err
		}
		now = nanotime()
	}
	return s.sender.sent - before, nil
}

func (s *udpSliceSender) slice(leadIn, length time.Duration, out *Slice) error {
	if now := nanotime(); leadIn > 0 {
		if _, err := s.burst(now, now+int64(leadIn)); err != nil {
			return err
		}
		if _, err := s.ask(); err != nil { // all of it has been consumed
			return err
		}
	}
	if err := s.gate.wait(); err != nil {
		return err
	}
	asked := nanotime()
	if _, err := s.ask(); err != nil {
		return err
	}
	s.start()
	begin := nanotime()
	s.rtt = min(s.rtt, begin-asked)
	sent, err := s.burst(begin, begin+int64(length))
	if err != nil {
		return err
	}
	cpu := s.spent()
	counted, err := s.ask()
	if err != nil {
		return err
	}
	// The server's time begins with the mark, whose answer and the first datagram
	// after it take one round trip.
	took := counted.took - min(s.rtt, counted.took/10)
	if took <= 0 || counted.packets == 0 {
		return errors.New("nothing of a slice arrived")
	}
	out.Begin, out.End = time.Duration(begin), time.Duration(begin+took)
	out.SentPackets, out.SentBytes = sent, sent*int64(s.cfg.MessageBytes)
	out.Packets, out.Bytes = counted.packets, counted.bytes
	out.Reordered, out.Duplicated = counted.reordered, counted.duplicated
	out.ClientCPU, out.ServerCPU = cpu, time.Duration(counted.cpu)
	return nil
}

// udpSliceSink is the serving end: the receiver of a stream, which answers marks.
type udpSliceSink struct {
	*udpReceiver
	flowMarks
	before flowAnswer // counted until the last mark
	read   int64      // when the last datagram was consumed
	batch  int64      // the number of datagrams before the present batch
}

func newUDPSliceSink(r *run, fd, index int) (*udpSliceSink, error) {
	u, err := newUDPReceiver(r, fd, index)
	if err != nil {
		return nil, err
	}
	u.begin, u.end = 1, math.MaxInt64 // it counts all
	s := &udpSliceSink{udpReceiver: u}
	u.onMark = s.answer
	return s, nil
}

func (s *udpSliceSink) interrupt() { shut(s.fd) }

func (s *udpSliceSink) work() error {
	for !s.stopped.Load() && !s.over.Load() {
		s.rearm()
		n, errno := recvmmsg(s.fd, &s.msgs[0], len(s.msgs), unix.MSG_WAITFORONE)
		now := nanotime()
		switch {
		case temporary(errno):
			if err := s.park(s.fd); err != nil {
				return err
			}
			continue
		case errno == unix.ECONNREFUSED:
			continue
		case errno != 0:
			return fmt.Errorf("receive: %w", sendError(errno))
		}
		if n == 1 && s.msgs[0].n == 0 {
			continue // this end is shut down
		}
		s.batch = s.packets
		for i := range n {
			s.take(i, now)
		}
		if s.packets > s.batch {
			s.read = nanotime()
		}
		if n < len(s.msgs) && s.restsInSlices() {
			s.pauses.rest(now)
		}
	}
	return nil
}

// answer says what came since the mark before.
func (s *udpSliceSink) answer(number uint64) {
	now := flowAnswer{packets: s.packets, bytes: s.bytes, reordered: s.late, duplicated: s.copies}
	since := flowAnswer{packets: now.packets - s.before.packets, bytes: now.bytes - s.before.bytes, reordered: now.reordered - s.before.reordered, duplicated: now.duplicated - s.before.duplicated}
	if s.packets > s.batch { // they came just before the mark
		s.read = nanotime()
	}
	since.took = s.read - s.flowMarks.begin
	if number != s.flowMarks.last {
		s.before = now
	}
	s.flowMarks.marked(s.run, s.fd, s.index, number, since)
}

// report adds what only this end knows: delays. What came is in the answers.
func (s *udpSliceSink) report(t *tally) {
	if s.cfg.MessageBytes >= headerBytes {
		t.jitter += s.jitter / 1e9
		t.jitters++
	}
	if s.oneWay != nil {
		t.oneWay = append(t.oneWay, s.oneWay)
	}
}
