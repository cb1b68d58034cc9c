package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Arrival is when a device came into a namespace, got its first IPv4 address, and
// when the last IPv4 route was set, as the kernel's messages reported it. What was
// not seen is zero.
type Arrival struct{ Device, Address, Route time.Time }

// listenTurn is how often a listener looks whether it is to stop.
const listenTurn = 20 * time.Millisecond

// Listen reports what happens to a device of a namespace until stop is called, which
// gives what was seen.
func Listen(n NS, device string) (stop func() (Arrival, error), err error) {
	fd := -1
	err = Do(n, func() (err error) {
		fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen in %s: %w", n.Name, err)
	}
	turn := unix.NsecToTimeval(listenTurn.Nanoseconds())
	err = errors.Join(
		unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV4_ROUTE}),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &turn),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen in %s: %w", n.Name, err), unix.Close(fd))
	}
	var over atomic.Bool
	done := make(chan error, 1)
	l := listener{device: device, index: -1}
	go func() { done <- l.read(fd, &over) }()
	return func() (Arrival, error) {
		over.Store(true)
		err := <-done
		return l.seen, errors.Join(err, unix.Close(fd))
	}, nil
}

// listener reads the kernel's messages about one device.
type listener struct {
	device string
	index  int32
	seen   Arrival
}

func (l *listener) read(fd int, over *atomic.Bool) error {
	buf := make([]byte, 1<<16)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		now := time.Now()
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			if over.Load() {
				return nil
			}
			continue
		case err != nil:
			return fmt.Errorf("listen for device %s: %w", l.device, err)
		}
		messages, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			return fmt.Errorf("listen for device %s: %w", l.device, err)
		}
		for i := range messages {
			l.take(&messages[i], now)
		}
	}
}

// take notes the content of a message (rtnetlink(7)).
func (l *listener) take(m *syscall.NetlinkMessage, now time.Time) {
	switch m.Header.Type {
	case unix.RTM_NEWLINK: // struct ifinfomsg: the index is at 4
		if len(m.Data) < unix.SizeofIfInfomsg || !l.seen.Device.IsZero() {
			return
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(m)
		if err != nil {
			return
		}
		for _, a := range attrs {
			if a.Attr.Type == unix.IFLA_IFNAME && unix.ByteSliceToString(a.Value) == l.device {
				l.index, l.seen.Device = int32(binary.NativeEndian.Uint32(m.Data[4:])), now
			}
		}
	case unix.RTM_NEWADDR: // struct ifaddrmsg: the index is at 4
		if len(m.Data) >= unix.SizeofIfAddrmsg && m.Data[0] == unix.AF_INET && l.seen.Address.IsZero() &&
			int32(binary.NativeEndian.Uint32(m.Data[4:])) == l.index {
			l.seen.Address = now
		}
	case unix.RTM_NEWROUTE: // struct rtmsg: the table is at 4
		if len(m.Data) >= unix.SizeofRtMsg && m.Data[0] == unix.AF_INET && m.Data[4] == unix.RT_TABLE_MAIN {
			l.seen.Route = now
		}
	}
}
