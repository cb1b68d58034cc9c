package traffic

import (
	"fmt"
	"net"
	"testing"
)

// Datagrams of strangers that find the buffer of the data port full are counted like
// those that were read: a flood must not look like a few.
func TestDroppedStrangersAreCounted(t *testing.T) {
	s, err := Listen(quick(UDPStream))
	if err != nil {
		t.Fatal(err)
	}
	defer closeFDs([]int{s.udp.fd})
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
		if err := s.udp.hear(); err != nil {
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
	defer closeFDs([]int{s.udp.fd})
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
		if err := s.udp.hear(); err != nil {
			t.Fatal(err)
		}
	})
	if n := s.run.strangers.Load(); each != 0 || n < 1000 {
		t.Errorf("%v allocations for each of %d strangers", each, n)
	}
}
