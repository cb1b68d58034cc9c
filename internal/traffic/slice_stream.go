//go:build linux

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

// The slice of a TCP stream. All bytes of it are 0 but the very last one, which
// marks its end. Nothing is sent after it until it was answered, so a receiver
// finds it as the last byte of what it has read, and looks at no other. The answer
// has what the receiver counted since the mark before.

const (
	leadInMark  = 1
	countedMark = 2
	answerBytes = 24
	// orderBytes is what a client sends to have a slice sent: length and mark.
	orderBytes = 9
)

var errGoneInSlice = errors.New("the other end closed the connection in mid-slice")

// sliceConn is an end of a connection that carries slices.
type sliceConn struct {
	*run
	sliceWorker
	fd     int
	answer [answerBytes]byte
	infos  [2]*unix.TCPInfo
	pauses rests
}

func newSliceConn(r *run, fd int) sliceConn {
	return sliceConn{run: r, fd: fd, pauses: rests{fd: fd, longest: r.rest}}
}

func (c *sliceConn) interrupt() { shut(c.fd) }

func (c *sliceConn) release() { _ = unix.Close(c.fd) } // all that counts was received

// opensRoundTrips is how many round trips opening a connection takes: the handshake, the
// token and its answer, and as much again for programs that have to be woken.
const opensRoundTrips = 4

// openTime is how long opening these ends takes where no packet is lost; the longest
// time where the kernel knows no round trip, as of datagrams.
func openTime(ends []sliceEnd) time.Duration {
	longest := time.Duration(0)
	for _, e := range ends {
		c, ok := e.(interface{ roundTrip() time.Duration })
		if !ok {
			return math.MaxInt64
		}
		rtt := c.roundTrip()
		if rtt == 0 {
			return math.MaxInt64
		}
		longest = max(longest, opensRoundTrips*rtt)
	}
	return longest
}

// roundTrip is the least that the connection has seen; 0: the kernel does not report it.
func (c *sliceConn) roundTrip() time.Duration {
	info, err := unix.GetsockoptTCPInfo(c.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.Min_rtt == math.MaxUint32 {
		return 0
	}
	return time.Duration(info.Min_rtt) * time.Microsecond
}

// readWhole reads exactly p.
func (c *sliceConn) readWhole(p []byte) error {
	for got := 0; got < len(p); {
		n, errno := recv(c.fd, unsafe.Pointer(&p[got]), len(p)-got, unix.MSG_WAITALL)
		switch {
		case errno == 0 && n == 0:
			return errGoneInSlice
		case errno == 0:
			got += n
		case !temporary(errno):
			return fmt.Errorf("receive: %w", errno)
		}
	}
	return nil
}

// writeWhole sends exactly p.
func (c *sliceConn) writeWhole(p []byte) error {
	for off := 0; off < len(p); {
		n, errno := send(c.fd, unsafe.Pointer(&p[off]), len(p)-off, unix.MSG_NOSIGNAL)
		switch {
		case errno == 0:
			off += n
		case !temporary(errno):
			return fmt.Errorf("send: %w", errno)
		}
	}
	return nil
}

// burst sends messages until a time, and then the last one with a mark. It gives
// the number of bytes.
func (c *sliceConn) burst(buf []byte, until int64, mark byte) (int64, error) {
	var bytes int64
	for nanotime() < until {
		if err := c.writeWhole(buf); err != nil {
			return bytes, err
		}
		bytes += int64(len(buf))
	}
	// Nagle's algorithm would keep the last segment until the one before it is
	// acknowledged, which the receiver may delay by 40 ms.
	if err := unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return bytes, fmt.Errorf("TCP_NODELAY: %w", err)
	}
	buf[len(buf)-1] = mark
	err := c.writeWhole(buf)
	buf[len(buf)-1] = 0
	if err == nil {
		err = unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 0)
	}
	return bytes + int64(len(buf)), err
}

// drain reads until a mark and gives the number of bytes. It lets more gather before it
// reads on, unless both ends share one CPU.
func (c *sliceConn) drain(buf []byte) (bytes int64, mark byte, err error) {
	gathers := c.restsInSlices()
	p, size := unsafe.Pointer(&buf[0]), len(buf)
	for {
		n, errno := recv(c.fd, p, size, 0)
		switch {
		case errno == 0 && n == 0:
			return bytes, 0, errGoneInSlice
		case errno != 0 && !temporary(errno):
			return bytes, 0, fmt.Errorf("receive: %w", errno)
		case errno != 0:
			continue
		}
		bytes += int64(n)
		if mark := buf[n-1]; mark != 0 {
			return bytes, mark, nil
		}
		if gathers && n < streamRest {
			c.pauses.rest(nanotime())
		}
	}
}

// restsInSlices reports whether a receiver lets bytes gather: not where both ends share one
// CPU, as nobody is woken there while the other sends.
func (r *run) restsInSlices() bool { return r.cfg.Placement != CPUsSame }

// tcpSliceSender is the driving end of a stream to the server.
type tcpSliceSender struct {
	sliceConn
	buf []byte
}

func newTCPSliceSender(r *run, fd int) *tcpSliceSender {
	return &tcpSliceSender{newSliceConn(r, fd), make([]byte, r.cfg.MessageBytes)}
}

func (s *tcpSliceSender) slice(leadIn, length time.Duration, out *Slice) error {
	if leadIn > 0 {
		if _, err := s.burst(s.buf, nanotime()+int64(leadIn), leadInMark); err != nil {
			return err
		}
		if err := s.readWhole(s.answer[:]); err != nil {
			return err
		}
	}
	if err := s.gate.wait(); err != nil {
		return err
	}
	before, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return fmt.Errorf("TCP_INFO: %w", err)
	}
	s.start()
	begin := nanotime()
	sent, err := s.burst(s.buf, begin+int64(length), countedMark)
	if err == nil {
		err = s.readWhole(s.answer[:])
	}
	if err != nil {
		return err
	}
	end := nanotime()
	out.ClientCPU = s.spent()
	after, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return fmt.Errorf("TCP_INFO: %w", err)
	}
	if s.infos[0] == nil {
		s.infos[0] = before
	}
	s.infos[1] = after
	out.Begin, out.End = time.Duration(begin), time.Duration(end)
	out.Transit = transit(after, end-begin)
	out.SentBytes = sent
	out.Retransmits = int64(after.Total_retrans) - int64(before.Total_retrans)
	out.Bytes = int64(binary.LittleEndian.Uint64(s.answer[:]))
	out.ServerCPU = time.Duration(binary.LittleEndian.Uint64(s.answer[8:]))
	if out.Bytes != sent {
		return fmt.Errorf("the server consumed %d bytes of a slice of %d: the counts cannot be right", out.Bytes, sent)
	}
	return nil
}

// transit is the least round trip that a connection has seen. It is no part of the
// time in which bytes were carried, but never more than a tenth of it.
func transit(i *unix.TCPInfo, took int64) time.Duration {
	rtt := int64(i.Min_rtt) * int64(time.Microsecond)
	return time.Duration(min(rtt, took/10))
}

func (s *tcpSliceSender) finish(t *tally) { t.addTCP(s.infos[0], s.infos[1]) }

// tcpSliceReceiver is the driving end of a stream from the server: it orders each
// slice.
type tcpSliceReceiver struct {
	sliceConn
	buf []byte
}

func newTCPSliceReceiver(r *run, fd int) *tcpSliceReceiver {
	return &tcpSliceReceiver{newSliceConn(r, fd), make([]byte, max(streamBuffer, r.cfg.MessageBytes))}
}

// order has the server send for a time, and takes what it sends.
func (s *tcpSliceReceiver) order(length time.Duration, mark byte) (bytes int64, err error) {
	var o [orderBytes]byte
	binary.LittleEndian.PutUint64(o[:], uint64(length))
	o[8] = mark
	if err := s.writeWhole(o[:]); err != nil {
		return 0, err
	}
	bytes, _, err = s.drain(s.buf)
	return bytes, err
}

func (s *tcpSliceReceiver) slice(leadIn, length time.Duration, out *Slice) error {
	if leadIn > 0 {
		if _, err := s.order(leadIn, leadInMark); err != nil {
			return err
		}
	}
	if err := s.gate.wait(); err != nil {
		return err
	}
	s.start()
	begin := nanotime()
	bytes, err := s.order(length, countedMark)
	if err != nil {
		return err
	}
	end := nanotime()
	out.ClientCPU = s.spent()
	// The server says what it sent and what that cost, once it knows that all came.
	if err := s.writeWhole([]byte{0}); err != nil {
		return err
	}
	if err := s.readWhole(s.answer[:]); err != nil {
		return err
	}
	info, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return fmt.Errorf("TCP_INFO: %w", err)
	}
	out.Begin, out.End, out.Transit = time.Duration(begin), time.Duration(end), transit(info, end-begin)
	out.SentBytes = int64(binary.LittleEndian.Uint64(s.answer[:]))
	out.ServerCPU = time.Duration(binary.LittleEndian.Uint64(s.answer[8:]))
	out.Retransmits = int64(binary.LittleEndian.Uint64(s.answer[16:]))
	if bytes != out.SentBytes {
		return fmt.Errorf("the client consumed %d bytes of a slice of %d: the counts cannot be right", bytes, out.SentBytes)
	}
	// Where the server alone sends, its bytes are the run's.
	if s.cfg.Direction == Reverse {
		out.Bytes = bytes
	} else {
		out.ReverseBytes, out.SentBytes = bytes, 0
	}
	return nil
}

// tcpSink is the serving end of a stream to the server.
type tcpSink struct {
	sliceConn
	buf []byte
}

func (s *tcpSink) work() error {
	s.start()
	for {
		if err := s.park(s.fd); err != nil {
			return err
		}
		bytes, _, err := s.drain(s.buf)
		if err != nil {
			return s.ended(err)
		}
		binary.LittleEndian.PutUint64(s.answer[:], uint64(bytes))
		binary.LittleEndian.PutUint64(s.answer[8:], uint64(s.spent()))
		if err := s.writeWhole(s.answer[:]); err != nil {
			return s.ended(err)
		}
		s.start() // what follows a lead-in comes at once
	}
}

// ended interprets the end of a connection: the run is over, or was ended.
func (c *sliceConn) ended(err error) error {
	if c.stopped.Load() || c.over.Load() || errors.Is(err, errGoneInSlice) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return nil // the client has the reason, or is through
	}
	return err
}

func (s *tcpSink) report(*tally) {}

// tcpSource is the serving end of a stream from the server.
type tcpSource struct {
	sliceConn
	buf []byte
}

func (s *tcpSource) work() error {
	var o [orderBytes]byte
	for {
		if err := s.park(s.fd); err != nil {
			return err
		}
		if err := s.readWhole(o[:]); err != nil {
			return s.ended(err)
		}
		before, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return s.ended(fmt.Errorf("TCP_INFO: %w", err))
		}
		length := min(int64(binary.LittleEndian.Uint64(o[:])), int64(s.cfg.Warmup+s.cfg.Window))
		s.start()
		sent, err := s.burst(s.buf, nanotime()+length, o[8])
		if err == nil && o[8] == countedMark {
			err = s.tellSent(sent, before)
		}
		if err != nil {
			return s.ended(err)
		}
	}
}

// tellSent waits until the client has all of a slice, and says what it was.
func (s *tcpSource) tellSent(sent int64, before *unix.TCPInfo) error {
	var seen [1]byte
	if err := s.readWhole(seen[:]); err != nil {
		return err
	}
	after, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return fmt.Errorf("TCP_INFO: %w", err)
	}
	binary.LittleEndian.PutUint64(s.answer[:], uint64(sent))
	binary.LittleEndian.PutUint64(s.answer[8:], uint64(s.spent()))
	binary.LittleEndian.PutUint64(s.answer[16:], uint64(after.Total_retrans-before.Total_retrans))
	return s.writeWhole(s.answer[:])
}

func (s *tcpSource) report(*tally) {}
