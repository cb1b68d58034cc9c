package netns

import (
	"fmt"
	"net"
	"net/netip"
	"time"
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
	// The dialer makes the socket on this thread, as the address is no name.
	err = Do(n, func() error {
		if conn, err = (&net.Dialer{Timeout: dialTimeout}).Dial("tcp4", address.String()); err != nil {
			return fmt.Errorf("in %s: %w", n.Name, err)
		}
		return conn.SetDeadline(time.Now().Add(dialTimeout))
	})
	return conn, err
}
