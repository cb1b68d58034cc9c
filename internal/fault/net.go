package fault

import (
	"io"
	"net"
	"testing"
	"time"
)

// HalfOpen is the address of a TCP port on loopback that takes connections and says and
// hears nothing: what the kernel does for a process that is stopped, or a machine that is
// gone and whose end was not noticed.
func HalfOpen(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// Crowd makes n TCP connections to an address, or sends n datagrams, that have nothing to
// do with a measurement: every fourth connection says nothing and stays open, up to 500 of
// them, until Crowd returns. It ends early when nobody listens any more, and gives how many
// there were.
func Crowd(network, address string, n int) (int, error) {
	var silent []net.Conn
	defer func() {
		for _, c := range silent {
			_ = c.Close() // it may be closed by the other end
		}
	}()
	for i := range n {
		c, err := net.DialTimeout(network, address, time.Second)
		if err != nil {
			return i, nil // the sample is over
		}
		if i%4 == 0 && network == "tcp" && len(silent) < 500 {
			silent = append(silent, c)
			continue
		}
		_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) // it may be closed already
		if err := c.Close(); err != nil {
			return i, err
		}
	}
	return n, nil
}

// Late copies what comes from one end to another, each piece later by a delay, until
// either ends: a slow control path.
func Late(to io.Writer, from io.Reader, delay time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				pieces <- piece{data[:n], time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			return
		}
	}
}
