package lab

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// flow writes to conn and reads from sink until the test ends.
func flow(t *testing.T, conn, sink net.Conn, write int) func() int64 {
	var received atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, write)
		for {
			if _, err := conn.Write(buf); err != nil {
				return
			}
		}
	})
	wg.Go(func() {
		buf := make([]byte, 1<<17)
		for {
			n, err := sink.Read(buf)
			if err != nil {
				return
			}
			received.Add(int64(n))
		}
	})
	t.Cleanup(func() { conn.Close(); sink.Close(); wg.Wait() })
	return received.Load
}
