package labkubernetes

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
)

// relayFD is the file descriptor of the socket that Relay accepts connections from.
const relayFD = 3

// Relay is a TCP relay: it accepts connections from the socket that it was started with,
// and forwards each to an address in its own namespace, until the context is over.
func Relay(ctx context.Context, to string) error {
	file := os.NewFile(relayFD, "relay")
	listener, err := net.FileListener(file)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() }) // Accept reports it
	defer stop()
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go forward(ctx, conn, to)
	}
}

// forward carries one connection. Whoever ends one direction, the other goes on; a
// side that cannot be reached ends both.
func forward(ctx context.Context, from net.Conn, address string) {
	defer from.Close()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, err := io.Copy(way[1], way[0])
			if half, ok := way[1].(*net.TCPConn); ok && err == nil {
				_ = half.CloseWrite() // it may be closed already
				return
			}
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
}
