//go:build linux

package traffic

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// One thread of each half carries all background streams. With a thread for each, several
// hundred of them shared the CPU with the measured stream, which then got one turn among
// hundreds, or did not: beside 400 streams, 18 round trips a second in some samples and 27,000
// in others (docs/traffic.md).

const (
	// backgroundMessage is what one of them sends at once, every 13 ms, in bytes.
	backgroundMessage = 16 << 10
	// backgroundRest is how long the receiver lets messages gather, nanoseconds.
	backgroundRest = int64(1e6)
	// backgroundEvents is how many streams it reads at once at most.
	backgroundEvents = 128
)

// backgroundSender sends all background streams, each at BackgroundRate: a message of each in
// turn. Nothing is counted here: the receiver does that.
type backgroundSender struct {
	*run
	fds  []int
	buf  []byte
	owed []int // what each stream is behind, bytes
	most int   // of these
	pace pacer // of all messages together
}

func newBackgroundSender(r *run, fds []int) *backgroundSender {
	interval := float64(backgroundMessage*8) * 1e9 / BackgroundRate
	return &backgroundSender{
		run: r, fds: fds, buf: make([]byte, backgroundMessage), owed: make([]int, len(fds)),
		most: int(float64(paceDebt)/interval) * backgroundMessage,
		pace: pacer{interval: interval / float64(len(fds))},
	}
}

func (s *backgroundSender) work() (err error) {
	defer func() {
		for _, fd := range s.fds {
			err = errors.Join(err, abort(fd))
		}
	}()
	now := nanotime()
	_, end := s.send.first(now)
	s.pace.start = now
	for !s.stopped.Load() {
		due := s.pace.due(now, len(s.fds))
		if due == 0 {
			s.pace.sleep(now, 1)
			s.out.beat()
		}
		for range due {
			over, err := s.turn(int(s.pace.sent)%len(s.fds), end)
			if over || err != nil {
				return err
			}
			s.pace.sent++
		}
		now = nanotime()
		if now < end {
			continue
		}
		if enough, err := s.enough(now, end); enough || err != nil {
			return err
		}
	}
	return nil
}

// turn sends what stream i owes now. It reports whether the receiver has ended the stream.
func (s *backgroundSender) turn(i int, end int64) (over bool, err error) {
	s.owed[i] = min(s.owed[i]+len(s.buf), s.most)
	for s.owed[i] > 0 {
		n, errno := send(s.fds[i], unsafe.Pointer(&s.buf[0]), min(s.owed[i], len(s.buf)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		switch {
		case errno == 0:
			s.out.beat()
			s.owed[i] -= n
		case temporary(errno):
			if s.out.silent() {
				return false, s.errSilent("nothing could be sent")
			}
			return false, nil
		case nanotime() >= end && (errno == unix.EPIPE || errno == unix.ECONNRESET):
			return true, nil
		default:
			return false, fmt.Errorf("send in the background: %w", errno)
		}
	}
	return false, nil
}

// enough reports, after the window, whether the receiver has seen enough: it tells all streams
// at once.
func (s *backgroundSender) enough(now, end int64) (bool, error) {
	if hasEnded(s.fds[0]) {
		s.in.beat()
		return true, nil
	}
	if now > end+int64(tailLimit)+int64(s.cfg.Warmup+s.cfg.Window) && s.in.silent() {
		return false, errDead
	}
	return false, nil
}

func (s *backgroundSender) report(*tally) {}

// backgroundReceiver receives all background streams.
type backgroundReceiver struct {
	*run
	fds   []int
	buf   []byte
	bytes int64
	open  int // streams that the sender has not ended
	// begin and end are the edges of the window; 0 until the first byte.
	begin, end int64
}

func newBackgroundReceiver(r *run, fds []int) *backgroundReceiver {
	return &backgroundReceiver{run: r, fds: fds, buf: make([]byte, streamBuffer), open: len(fds)}
}

func (s *backgroundReceiver) work() (err error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return errors.Join(fmt.Errorf("epoll: %w", err), closeFDs(s.fds))
	}
	defer func() { _ = errors.Join(unix.Close(epoll), closeFDs(s.fds)) }() // what was read is counted already
	for i, fd := range s.fds {
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			return fmt.Errorf("epoll: %w", err)
		}
	}
	events := make([]unix.EpollEvent, backgroundEvents)
	informed := false
	for !s.stopped.Load() {
		n, err := unix.EpollWait(epoll, events, int(pollInterval.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			if err := s.read(epoll, s.fds[e.Fd]); err != nil {
				return err
			}
		}
		now := nanotime()
		switch {
		case s.measuring(now):
			if n <= 0 && s.in.silent() {
				return s.errSilent("nothing was received in the background")
			}
			if n > 0 && n < len(events) {
				sleepUntil(now + backgroundRest)
			}
		case !informed:
			informed = true
			s.inform()
		case s.open == 0 || now > s.end+lingerTime:
			return nil
		}
	}
	return nil
}

// measuring reports whether the window is not over.
func (s *backgroundReceiver) measuring(now int64) bool { return s.begin == 0 || now < s.end }

// read takes what one stream has.
func (s *backgroundReceiver) read(epoll, fd int) error {
	n, errno := recv(fd, unsafe.Pointer(&s.buf[0]), len(s.buf), unix.MSG_DONTWAIT)
	now := nanotime()
	switch {
	case errno == 0 && n > 0:
		s.in.beat()
		if s.begin == 0 {
			s.begin, s.end = s.recv.first(now)
		}
		if now >= s.begin && now < s.end {
			s.bytes += int64(n)
		}
	case errno == 0 || errno == unix.ECONNRESET:
		if s.measuring(now) {
			return errEarly
		}
		s.open--
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_DEL, fd, nil); err != nil {
			return fmt.Errorf("epoll: %w", err)
		}
	case !temporary(errno):
		return fmt.Errorf("receive in the background: %w", errno)
	}
	return nil
}

// inform tells the sender, by each stream, that the window is over. A failure means that it is
// gone already.
func (s *backgroundReceiver) inform() {
	var b [1]byte
	for _, fd := range s.fds {
		_, _ = send(fd, unsafe.Pointer(&b), 1, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	}
}

func (s *backgroundReceiver) report(t *tally) { count(&t.background, s.bytes) }
