package traffic

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
)

// silent opens connections that say nothing, until the test is over.
func silent(t *testing.T, address string, n int) {
	t.Helper()
	for range n {
		c, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
}

// With more silent connections of strangers than a server keeps, a request of the run
// whose second half is late is answered, and a client that comes after them is served.
func TestSilentStrangersDoNotRefuseTheClient(t *testing.T) {
	cfg := quick(TCPCRR)
	s, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var report Report
	served := make(chan error, 1)
	go func() {
		var err error
		report, err = s.Run(t.Context(), Hooks{})
		served <- err
	}()
	address := fmt.Sprintf("127.0.0.1:%d", s.Port())
	silent(t, address, crrPending/2)
	own, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	request := append(s.run.token[:], make([]byte, cfg.MessageBytes)...)
	if _, err := own.Write(request[:len(request)/2]); err != nil {
		t.Fatal(err)
	}
	silent(t, address, crrPending+100)
	if _, err := own.Write(request[len(request)/2:]); err != nil {
		t.Fatal(err)
	}
	_ = own.SetReadDeadline(time.Now().Add(10 * time.Second))
	if answer, err := io.ReadAll(own); err != nil || len(answer) != cfg.MessageBytes {
		t.Errorf("%d bytes of an answer: %v", len(answer), err)
	}
	client, err := Drive(t.Context(), cfg, netip.MustParseAddrPort(address), Hooks{})
	s.Finish()
	if err != nil || client.Transactions == nil {
		t.Fatalf("the client: %v", err)
	}
	if err := within(t, "the server", 10*time.Second, served); err != nil {
		t.Fatal(err)
	}
	if want := int64(crrPending/2 + crrPending + 100); report.Strangers != want {
		t.Errorf("%d strangers were counted, want %d", report.Strangers, want)
	}
}

// A gate keeps at most crrPending connections, and closes the oldest first.
func TestTheOldestStrangerMakesRoom(t *testing.T) {
	s, err := Listen(quick(TCPCRR))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := dup(s.tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer s.tcp.Close()
	defer func() { _ = closeFDs([]int{fd}) }()
	g := newCRRGate(s.run, fd)
	if err := g.open(); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", s.Port())
	oldest, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer oldest.Close()
	const more = 200
	for i := range crrPending + more {
		if i > 0 {
			silent(t, address, 1)
		}
		if err := g.event(int32(fd), int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.conns) != crrPending || len(g.order) > 2*crrPending {
		t.Errorf("%d connections and %d arrivals are kept, want %d", len(g.conns), len(g.order), crrPending)
	}
	for fd, c := range g.conns {
		if c.since < more {
			t.Errorf("connection %d came as number %d and is kept", fd, c.since)
		}
	}
	_ = oldest.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := oldest.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest is open: %v", err)
	}
	if err := g.close(); err != nil || s.run.strangers.Load() != crrPending+more {
		t.Errorf("%v, %d strangers", err, s.run.strangers.Load())
	}
}

// Silent strangers do not hold up the slices of tcp_crr.
func TestSilentStrangersAndSlices(t *testing.T) {
	cfg := quick(TCPCRR)
	cfg.Sliced = true
	s, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var report Report
	served := make(chan error, 1)
	go func() {
		var err error
		report, err = s.Run(t.Context(), Hooks{})
		served <- err
	}()
	address := fmt.Sprintf("127.0.0.1:%d", s.Port())
	const strangers = crrPending + 100
	silent(t, address, strangers)
	d, err := OpenSlices(t.Context(), cfg, netip.MustParseAddrPort(address), nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := d.Run(t.Context(), Now()+int64(20*time.Millisecond), someTurns(5))
	d.Close()
	s.Finish()
	if err != nil || len(client.Slices) == 0 {
		t.Fatalf("%d slices: %v", len(client.Slices), err)
	}
	if err := within(t, "the server", 10*time.Second, served); err != nil {
		t.Fatal(err)
	}
	if report.Strangers != strangers {
		t.Errorf("%d strangers were counted, want %d", report.Strangers, strangers)
	}
}
