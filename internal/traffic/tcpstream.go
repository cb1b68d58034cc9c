//go:build linux

package traffic

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The stream of a TCP connection: the sender sends until the receiver, whose
// window counts, says that it has seen enough by one byte the other way. So
// neither a slow link nor a deep socket buffer can end the traffic too soon.

const (
	// streamBuffer is what a receiver reads at once at most.
	streamBuffer = 128 << 10
	// streamRest is what a receiver of a stream flat out rests after, when it has
	// read less at once (see rest).
	streamRest = 32 << 10
	// tailLimit is how long a sender goes on after its own window for a
	// receiver that does not end the run.
	tailLimit = idleLimit
	// lingerTime is how long a receiver keeps reading after its window from a sender that
	// does not stop.
	lingerTime = int64(1e9)
)

type tcpSender struct {
	*run
	fd    int
	buf   []byte
	pace  pacer
	zero  *zeroCopy
	bytes int64
	first *unix.TCPInfo
	last  *unix.TCPInfo
}

func newTCPSender(r *run, fd int) (*tcpSender, error) {
	s := &tcpSender{run: r, fd: fd, buf: make([]byte, r.cfg.MessageBytes), pace: newPacer(r.cfg)}
	if r.cfg.ZeroCopy {
		var err error
		if s.zero, err = newZeroCopy(fd); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *tcpSender) work() (err error) {
	// What is still in the socket's buffer belongs to nobody's window.
	defer func() {
		if e := abort(s.fd); err == nil && e != nil {
			err = fmt.Errorf("close: %w", e)
		}
	}()
	now := nanotime()
	begin, end := s.send.first(now)
	s.pace.start = now
	off := 0
	for !s.stopped.Load() {
		if off == 0 && s.pace.due(now, 1) == 0 {
			s.pace.sleep(now, 1)
			s.out.beat()
		} else {
			n, errno := s.sendSome(off)
			switch {
			case errno == 0:
				s.out.beat()
				if now >= begin && now < end {
					s.bytes += int64(n)
				}
				if off += n; off == len(s.buf) {
					off = 0
					s.pace.sent++
				}
			case temporary(errno):
				if s.out.silent() {
					return s.errSilent("nothing could be sent")
				}
			case nanotime() >= end && (errno == unix.EPIPE || errno == unix.ECONNRESET):
				return s.info(&s.last)
			default:
				return fmt.Errorf("send: %w", errno)
			}
		}
		now = nanotime()
		if enough, err := s.edges(now, begin, end); enough || err != nil {
			return err
		}
	}
	return nil
}

// edges reads TCP_INFO at both edges of the window. After it, it reports whether
// the receiver has seen enough.
func (s *tcpSender) edges(now, begin, end int64) (enough bool, err error) {
	if s.first == nil && now >= begin {
		if err := s.info(&s.first); err != nil {
			return false, err
		}
	}
	if now < end {
		return false, nil
	}
	if s.last == nil {
		if err := s.info(&s.last); err != nil {
			return false, err
		}
		s.in.beat() // from here on the receiver answers
	}
	if hasEnded(s.fd) {
		s.in.beat()
		return true, nil
	}
	if now > end+int64(tailLimit)+s.warmupSlack() && s.in.silent() {
		return false, errDead
	}
	return false, nil
}

// warmupSlack is what the receiver's window may lie behind the sender's: bytes
// may take long to get through a slow link.
func (s *tcpSender) warmupSlack() int64 { return int64(s.cfg.Warmup + s.cfg.Window) }

func (s *tcpSender) sendSome(off int) (int, unix.Errno) {
	if s.zero != nil {
		return s.zero.send(unsafe.Pointer(&s.buf[off]), len(s.buf)-off)
	}
	return send(s.fd, unsafe.Pointer(&s.buf[off]), len(s.buf)-off, unix.MSG_NOSIGNAL)
}

// hasEnded reports whether the receiver of a stream has received enough, or has closed.
func hasEnded(fd int) bool {
	var b [1]byte
	_, errno := recv(fd, unsafe.Pointer(&b), 1, unix.MSG_DONTWAIT)
	return errno == 0 || errno == unix.ECONNRESET || errno == unix.EPIPE
}

func (s *tcpSender) info(to **unix.TCPInfo) error {
	i, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return fmt.Errorf("TCP_INFO: %w", err)
	}
	*to = i
	return nil
}

func (s *tcpSender) report(t *tally) {
	count(&t.sentBytes, s.bytes)
	t.addTCP(s.first, s.last)
	if s.zero != nil {
		s.zero.report(t)
	}
}

type tcpReceiver struct {
	*run
	fd     int
	buf    []byte
	bytes  int64
	series series
	pauses rests
}

func newTCPReceiver(r *run, fd int) *tcpReceiver {
	return &tcpReceiver{run: r, fd: fd, pauses: rests{fd: fd, longest: r.rest}, buf: make([]byte, max(streamBuffer, r.cfg.MessageBytes)), series: newSeries(r.cfg.Window)}
}

func (s *tcpReceiver) work() error {
	defer unix.Close(s.fd) // what it read is counted already
	var begin, end int64
	informed := false
	p, size := unsafe.Pointer(&s.buf[0]), len(s.buf)
	for !s.stopped.Load() {
		n, errno := recv(s.fd, p, size, 0)
		now := nanotime()
		switch {
		case errno == 0 && n > 0:
			s.in.beat()
			if begin == 0 {
				begin, end = s.recv.first(now)
			}
			if now >= begin && now < end {
				s.bytes += int64(n)
				s.series.add(now-begin, int64(n))
			}
			if n < streamRest && s.cfg.RateBitsPerSecond == 0 {
				s.pauses.rest(now)
			}
		case errno == 0 || errno == unix.ECONNRESET:
			if begin == 0 || now < end {
				return errEarly
			}
			return nil
		case !temporary(errno):
			return fmt.Errorf("receive: %w", errno)
		case (begin == 0 || now < end) && s.in.silent():
			return s.errSilent("nothing was received")
		}
		if begin == 0 || now < end {
			continue
		}
		if !informed {
			informed = true
			var b [1]byte
			// A failure means that the sender is gone already.
			_, _ = send(s.fd, unsafe.Pointer(&b), 1, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		}
		if now > end+lingerTime {
			return nil
		}
	}
	return nil
}

func (s *tcpReceiver) report(t *tally) {
	count(&t.bytes, s.bytes)
	t.addSeries(s.series)
}
