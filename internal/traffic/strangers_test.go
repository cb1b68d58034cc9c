package traffic

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
)

// Datagrams of strangers that find the buffer of the data port full are counted like
// those that were read: a flood must not look like a few.
func TestDroppedStrangersAreCounted(t *testing.T) {
	s, err := Listen(quick(UDPStream))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeFDs([]int{s.udp.fd}) }()
	c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", s.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const sent = 5000 // nobody reads, and a buffer has room for some hundred
	for range sent {
		if _, err := c.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	s.udp.countDropped()
	dropped := s.run.strangers.Load()
	if dropped < 1 || dropped >= sent {
		t.Fatalf("%d of %d datagrams count as dropped", dropped, sent)
	}
	for s.run.strangers.Load() < sent {
		before := s.run.strangers.Load()
		if err := s.udp.receiveHello(); err != nil {
			t.Fatal(err)
		}
		if s.run.strangers.Load() == before {
			t.Fatalf("%d of %d strangers were counted, %d of them dropped", before, sent, dropped)
		}
	}
}

// A datagram of a stranger leaves no garbage: an agent collects none while it measures.
func TestStrangersLeaveNoGarbage(t *testing.T) {
	s, err := Listen(quick(UDPStream))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeFDs([]int{s.udp.fd}) }()
	c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", s.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	one := make([]byte, 64)
	each := testing.AllocsPerRun(1000, func() {
		if _, err := c.Write(one); err != nil {
			t.Fatal(err)
		}
		if err := s.udp.receiveHello(); err != nil {
			t.Fatal(err)
		}
	})
	if n := s.run.strangers.Load(); each != 0 || n < 1000 {
		t.Errorf("%v allocations for each of %d strangers", each, n)
	}
}

// forger is a server of round trips whose answers lack the token.
func forger(t *testing.T, cfg Config) (address netip.AddrPort) {
	t.Helper()
	r, err := newRun(cfg, true)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		buf := make([]byte, maxDatagram)
		for {
			n, from, err := l.ReadFromUDPAddrPort(buf)
			if err != nil {
				return // the test is over
			}
			answer := buf[:n]
			if kind, index := r.readControl(answer); kind == helloControl {
				c := r.control(ackControl, index)
				answer = c[:]
			} else if n >= headerBytes {
				clear(answer[2*wordBytes : headerBytes])
			}
			_, _ = l.WriteToUDPAddrPort(answer, from) // one that is lost is asked for again
		}
	}()
	return l.LocalAddr().(*net.UDPAddr).AddrPort()
}

// Answers without the token are not round trips, and are counted as strangers'.
func TestForgedAnswersAreNoRoundTrips(t *testing.T) {
	labtest.Slow(t)
	for _, rate := range []float64{0, 1000} {
		cfg := quick(UDPRR)
		cfg.RatePerSecond = rate
		report, err := Drive(t.Context(), cfg, forger(t, cfg), Hooks{})
		if err == nil && (report.Transactions == nil || *report.Transactions != 0) {
			t.Errorf("rate %v: forged answers count as round trips: %+v", rate, report)
		}
	}
	cfg := quick(UDPRR)
	r, err := newRun(cfg, false)
	if err != nil {
		t.Fatal(err)
	}
	whole := make([]byte, cfg.MessageBytes)
	putToken(whole, &r.token)
	if !r.response(whole) || r.strangers.Load() != 0 {
		t.Error("an answer with the token is refused")
	}
	for _, bad := range [][]byte{make([]byte, cfg.MessageBytes), whole[:40], nil} {
		if r.response(bad) {
			t.Errorf("an answer of %d bytes without the token or of another size is taken", len(bad))
		}
	}
	if n := r.strangers.Load(); n != 3 {
		t.Errorf("%d strangers were counted, want 3", n)
	}
}

// TestRequestNumbersCannotBeGuessed: a datagram of 8 to 23 bytes has no room for the
// token. What a stranger who does not see it must guess is its number.
func TestRequestNumbersCannotBeGuessed(t *testing.T) {
	drawn := map[uint64]bool{}
	for _, step := range []int{1, 3, 64, 1000, 1024} {
		for range 4 {
			n := firstNumber(step)
			if n%uint64(step) != 0 || n >= 1<<61 || drawn[n] {
				t.Errorf("the first number is %d, with %d requests at once", n, step)
			}
			drawn[n] = true
		}
	}
	cfg := quick(UDPRR)
	cfg.MessageBytes = wordBytes
	r, err := newRun(cfg, false)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := newUDPSliceRequester(r, -1, 0), newUDPSliceRequester(r, -1, 1); a.number == 0 || a.number == b.number {
		t.Errorf("slices begin at %d and %d", a.number, b.number)
	}
	cfg.RatePerSecond = 1000
	if r, err = newRun(cfg, false); err != nil {
		t.Fatal(err)
	}
	c := newUDPSchedule(r, -1, 0)[1].(*udpCollector)
	c.sent.Store(5)
	p := make([]byte, wordBytes)
	for ordinal, want := range map[uint64]bool{0: true, 4: true, 5: true, 6: false, seenBits: false, ^uint64(0): false} {
		putHeader(p, (c.number+ordinal)<<flagBits, 0)
		k, asked := c.ordinalOf(p)
		if asked != want || asked && k != ordinal {
			t.Errorf("request %d of 5 is number %d, asked %v; want %v", ordinal, k, asked, want)
		}
	}
	putHeader(p, 3<<flagBits, 0)
	if k, asked := c.ordinalOf(p); asked {
		t.Errorf("number 3 of a flow that begins at %d is taken for request %d", c.number, k)
	}
}

// TestShortRoundTrips: numbers that begin anywhere fit into datagrams of every size.
func TestShortRoundTrips(t *testing.T) {
	labtest.Slow(t)
	for name, change := range map[string]func(*Config){
		"1 byte": func(c *Config) { c.MessageBytes = 1 }, "8 bytes": func(c *Config) { c.MessageBytes = 8 },
		"a burst of 3": func(c *Config) { c.MessageBytes, c.Burst = 8, 3 },
		"an open loop": func(c *Config) { c.MessageBytes, c.RatePerSecond = 8, 500 },
	} {
		cfg := quick(UDPRR)
		change(&cfg)
		server, client, err := both(t, t.Context(), cfg, "127.0.0.1")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if client.Transactions == nil || *client.Transactions < 10 || server.Strangers+client.Strangers > 0 {
			t.Errorf("%s: %+v", name, client)
		}
	}
}
