package netns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// answerTurn is how long one try waits for its answer.
const answerTurn = 2 * time.Millisecond

// Answer waits until an address answers, as seen from a namespace: a TCP
// connection to a port that nobody serves is refused by the pod's own kernel.
// It tries again and again, each time with a packet of its own.
func Answer(ctx context.Context, from NS, to netip.AddrPort) (at time.Time, err error) {
	var last error
	doErr := Do(from, func() error {
		for ctx.Err() == nil {
			if last = knock(to); last == nil {
				at = time.Now()
				return nil
			}
		}
		return ctx.Err()
	})
	if doErr != nil {
		return at, fmt.Errorf("%s was not answered by %s: %w (at last: %w)", from.Name, to.Addr(), doErr, last)
	}
	return at, nil
}

var errSilent = errors.New("no answer")

// knock tries to connect; nil where anything came back.
func knock(to netip.AddrPort) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	if errors.Is(err, unix.EINPROGRESS) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, pollErr := unix.Poll(poll, int(answerTurn.Milliseconds()))
		if n == 0 || errors.Is(pollErr, unix.EINTR) {
			return errSilent
		}
		code, optErr := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err = errors.Join(pollErr, optErr); err == nil && code != 0 {
			err = unix.Errno(code)
		}
	}
	if err == nil || errors.Is(err, unix.ECONNREFUSED) {
		return nil
	}
	time.Sleep(answerTurn) // no route yet, or no room: not in a busy loop
	return err
}
