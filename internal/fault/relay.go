package fault

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
)

// Relay leads connections on loopback to a port of loopback that may change, as a service
// leads to its endpoint.
type Relay struct {
	listener *net.TCPListener
	to       atomic.Uint32
	taken    atomic.Int64
	busy     sync.WaitGroup
}

// NewRelay opens a relay until the test ends.
func NewRelay(t testing.TB, to uint16) *Relay {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{listener: l}
	r.to.Store(uint32(to))
	r.busy.Go(r.serve)
	t.Cleanup(func() { _ = l.Close(); r.busy.Wait() }) // it only ends the accepting
	return r
}

func (r *Relay) serve() {
	for {
		from, err := r.listener.AcceptTCP()
		if err != nil {
			return
		}
		r.taken.Add(1)
		r.busy.Go(func() { r.connection(from) })
	}
}

func (r *Relay) connection(from *net.TCPConn) {
	defer from.Close()
	to, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(r.to.Load())})
	if err != nil {
		return
	}
	defer to.Close()
	r.busy.Go(func() {
		_, _ = io.Copy(to, from) // the client closes last
		_ = to.CloseWrite()
	})
	_, _ = io.Copy(from, to)
	_ = from.CloseWrite()
}

// Address is where the relay takes connections.
func (r *Relay) Address() netip.AddrPort {
	return r.listener.Addr().(*net.TCPAddr).AddrPort()
}

// Taken is how many connections came so far.
func (r *Relay) Taken() int64 { return r.taken.Load() }

// Lead has new connections go to another port.
func (r *Relay) Lead(to uint16) { r.to.Store(uint32(to)) }
