package agent

import (
	"net"
	"net/netip"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
)

// Try reaches a server that serves, with the port that it has or that it was given, and
// reports where nobody answers. Both agents are usable afterwards.
func TestTry(t *testing.T) {
	labtest.Slow(t)
	client, server := start(t), start(t)
	loopback := netip.MustParseAddr("127.0.0.1")
	if err := Try(t.Context(), client, server, netip.AddrPortFrom(loopback, 0), 0); err != nil {
		t.Errorf("any port: %v", err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	if err := Try(t.Context(), client, server, netip.AddrPortFrom(loopback, 0), port); err != nil {
		t.Errorf("port %d: %v", port, err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // a listener that never answers a greeting
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if err := Try(t.Context(), client, server, silent.Addr().(*net.TCPAddr).AddrPort(), 0); err == nil {
		t.Error("a port where nobody answers was reached")
	}
	if err := Try(t.Context(), client, server, netip.AddrPortFrom(loopback, 0), 0); err != nil {
		t.Errorf("after a failure: %v", err)
	}
}
