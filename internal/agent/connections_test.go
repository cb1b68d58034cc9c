package agent

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// TestProcAddress reads addresses as proc_pid_net(5) has them.
func TestProcAddress(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1451":                         "127.0.0.1:5201",
		"024D12C6:0050":                         "198.18.77.2:80",
		"0000000000000000FFFF0000024D12C6:0050": "198.18.77.2:80",
		"770000FD000000000000000002000000:0050": "[fd00:77::2]:80",
		"0100007F":                              "",
		"0100007:1451":                          "",
		"0100007F:1FFFF":                        "",
	} {
		got, ok := procAddress(text)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s: %v %v, want %s", text, got, ok, want)
		}
	}
}

// TestStrangersAtAPort: of the connections at a port those that are not the peer's are
// doubted. Where the peer is not known, one address is expected.
func TestStrangersAtAPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := netip.MustParseAddrPort(l.Addr().String()).Port()
	connect := func(from string) {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = accepted.Close() })
	}
	s := &server{roots: machineRoots(nil)}
	// Another program may have had the port for its end of a connection less than a minute ago.
	earlier, err := remotesAt("/proc", port)
	if err != nil {
		t.Fatal(err)
	}
	before := len(earlier)
	check := func(peer, want string) {
		t.Helper()
		got := strings.Join(s.strangersAt(port, peer, earlier), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("peer %q: %q, want %q", peer, got, want)
		}
	}
	check("127.0.0.1", "")
	connect("127.0.0.1")
	check("127.0.0.1", "")
	check("", "")
	check("127.0.0.2", "1 connections from others than the client (127.0.0.1)")
	connect("127.0.0.3")
	check("127.0.0.1", fmt.Sprintf("1 connections from others than the client (127.0.0.3) were at the server's port %d", port))
	check("", "2 connections from more than one address (127.0.0.1, 127.0.0.3)")
	if doubts := s.strangersAt(0, "", nil); doubts != nil {
		t.Errorf("no port: %q", doubts)
	}
	// What was there before the sample is not the sample's.
	if earlier, err = remotesAt("/proc", port); err != nil || len(earlier) != before+2 {
		t.Fatalf("%v, %v", earlier, err)
	}
	check("127.0.0.1", "")
	check("", "")
}

// TestSourceOf: the address that a place sends from is read without sending.
func TestSourceOf(t *testing.T) {
	for server, want := range map[string]string{"127.0.0.1:9": "127.0.0.1", "nowhere": "", "": ""} {
		if got := sourceOf(server); got != want {
			t.Errorf("%q: %q, want %q", server, got, want)
		}
	}
}
