package netns

import (
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// dialTimeout bounds a connection's making, sending and receiving.
const dialTimeout = 2 * time.Second

// Dial makes a TCP connection from a namespace to an IPv4 address and port. It
// is for short talks on one machine: the whole of one may take two seconds.
func Dial(n NS, to string) (net.Conn, error) {
	address, err := netip.ParseAddrPort(to)
	if err != nil {
		return nil, err
	}
	var conn net.Conn
	err = Do(n, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		file := os.NewFile(uintptr(fd), "dial "+to)
		defer file.Close()
		limit := unix.NsecToTimeval(dialTimeout.Nanoseconds())
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
			return err
		}
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(address.Port()), Addr: address.Addr().As4()}); err != nil {
			return os.NewSyscallError("connect to "+to+" in "+n.Name, err)
		}
		if conn, err = net.FileConn(file); err != nil {
			return err
		}
		return conn.SetDeadline(time.Now().Add(dialTimeout))
	})
	return conn, err
}
