package traffic

import (
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
)

// A client that reaches one server, then another and the first again notes each change, and is
// through when a server that was asked to finish has answered. The server that nobody reaches
// waits without a complaint.
func TestMarks(t *testing.T) {
	labtest.Slow(t)
	first, other := quick(TCPCRR), quick(TCPCRR)
	first.Mark, other.Mark = 1, 2
	first.Window, other.Window = time.Minute, time.Minute
	servers := [2]*Server{}
	ended := make(chan error, 2)
	for i, cfg := range []Config{first, other} {
		s, err := Listen(cfg)
		if err != nil {
			t.Fatal(err)
		}
		servers[i] = s
		go func() {
			_, err := s.Run(t.Context(), Hooks{})
			ended <- err
		}()
	}
	service := fault.NewRelay(t, servers[0].Port())
	over := make(chan error, 1)
	last := Now()
	var report Report
	go func() {
		var err error
		report, err = Drive(t.Context(), first, service.Address(), Hooks{})
		over <- err
	}()
	for _, to := range []int{1, 0, 0} {
		for taken := service.Taken(); len(over) == 0 && service.Taken() < taken+10; { // however busy the machine is
			time.Sleep(10 * time.Millisecond)
		}
		service.Lead(servers[to].Port())
	}
	servers[0].Finish()
	if err := <-over; err != nil {
		t.Error(err)
	}
	servers[1].Finish()
	for range servers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	var seen []byte
	for _, s := range report.Switches {
		seen = append(seen, s.Mark)
		if s.At <= last {
			t.Errorf("switch to %d at %d ns, not after %d", s.Mark, s.At, last)
		}
		last = s.At
	}
	if string(seen) != "\x01\x02\x01" {
		t.Errorf("the client saw the marks %v", seen)
	}
	if report.WindowSeconds <= 0 || report.Transactions == nil || report.Connect == nil || report.Connect.Count != *report.Transactions {
		t.Errorf("the report is %+v", report)
	}
}

func TestMarksAreForConnections(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.Test = TCPRR },
		func(c *Config) { c.Sliced = true },
		func(c *Config) { c.Mark = 128 },
	} {
		c := quick(TCPCRR)
		c.Mark = 1
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "a mark") && !strings.Contains(err.Error(), "slices") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The first packet of a connection is answered within its transaction, in one window and in
// slices.
func TestFirstPacketIsInTheTransaction(t *testing.T) {
	labtest.Slow(t)
	server, client, err := both(t, t.Context(), quick(TCPCRR), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if client.Connect == nil || server.Connect != nil {
		t.Fatalf("the client reports %+v, the server %+v", client.Connect, server.Connect)
	}
	if client.Connect.Count != client.Latency.Count || client.Connect.MinNanoseconds <= 0 || client.Connect.MeanNanoseconds >= client.Latency.MeanNanoseconds {
		t.Errorf("first packets %+v, transactions %+v", client.Connect, client.Latency)
	}
}
