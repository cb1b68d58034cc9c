package traffic

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
)

// Inside a window of many thousand messages both halves together allocate next
// to nothing: what there is comes from the timers around the hot loops.
func TestNoAllocationInHotLoops(t *testing.T) {
	labtest.Slow(t)
	const most = 60
	for _, c := range []struct {
		test string
		with func(*Config)
	}{
		{TCPStream, nil},
		{UDPStream, func(c *Config) { c.SharedClock = true }},
		{UDPStream, func(c *Config) { c.MessageBytes, c.UDPGSO = 1472, true }},
		{UDPStream, func(c *Config) { c.RateBitsPerSecond = 20e6 }},
		{TCPRR, nil},
		{TCPRR, func(c *Config) { c.Burst = 16 }},
		{TCPRR, func(c *Config) { c.RatePerSecond = 5000 }},
		{UDPRR, nil},
		{UDPRR, func(c *Config) { c.Burst = 16 }},
		{UDPRR, func(c *Config) { c.RatePerSecond = 5000 }},
		{TCPCRR, nil},
	} {
		cfg := quick(c.test)
		cfg.Warmup, cfg.Window = 50*time.Millisecond, 200*time.Millisecond
		if c.with != nil {
			c.with(&cfg)
		}
		s, err := Listen(cfg)
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() {
			_, err := s.Run(context.Background(), Hooks{})
			served <- err
		}()
		var before, after runtime.MemStats
		hooks := Hooks{WindowStart: func() { runtime.ReadMemStats(&before) }, WindowEnd: func() { runtime.ReadMemStats(&after) }}
		_, err = Drive(context.Background(), cfg, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), s.Port()), hooks)
		s.Finish()
		if err := errors.Join(err, <-served); err != nil {
			t.Fatalf("%+v: %v", cfg, err)
		}
		if n := after.Mallocs - before.Mallocs; after.Mallocs == 0 || n > most {
			t.Errorf("%+v: %d allocations inside the window", cfg, n)
		}
	}
}
