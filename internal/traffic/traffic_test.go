package traffic

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/labtest"
)

const testToken = "000102030405060708090a0b0c0d0e0f"

// both runs both halves of a run on loopback, at one time.
func both(t testing.TB, ctx context.Context, cfg Config, address string) (server, client Report, err error) {
	t.Helper()
	return bothHooked(t, ctx, cfg, address, Hooks{})
}

// bothHooked is both with hooks of the client.
func bothHooked(t testing.TB, ctx context.Context, cfg Config, address string, h Hooks) (server, client Report, err error) {
	t.Helper()
	s, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		var err error
		server, err = s.Run(ctx, Hooks{})
		served <- err
	}()
	client, driveErr := Drive(ctx, cfg, netip.AddrPortFrom(netip.MustParseAddr(address), s.Port()), h)
	s.Finish()
	select {
	case err = <-served:
	case <-time.After(6 * time.Second):
		t.Fatalf("the server did not end; the client: %v", driveErr)
	}
	if driveErr != nil {
		err = errors.Join(driveErr, err)
	}
	return server, client, err
}

func quick(test string) Config {
	return Config{Test: test, Token: testToken, MessageBytes: 64, Streams: 1, Warmup: 10 * time.Millisecond, Window: 100 * time.Millisecond}
}

func TestEveryTestOnLoopback(t *testing.T) {
	labtest.Slow(t)
	for _, c := range []struct {
		name    string
		address string
		with    func(*Config)
	}{
		{"tcp_stream", "127.0.0.1", func(c *Config) { c.MessageBytes = 1472 }},
		{"tcp_stream one byte", "127.0.0.1", func(c *Config) { c.MessageBytes = 1 }},
		{"tcp_stream 64 KiB ipv6 8 streams", "::1", func(c *Config) { c.MessageBytes, c.Streams = 65536, 8 }},
		{"tcp_stream 256 streams", "127.0.0.1", func(c *Config) { c.MessageBytes, c.Streams = 1472, 256 }},
		{"udp_stream 256 streams", "127.0.0.1", func(c *Config) { c.MessageBytes, c.Streams = 1472, 256 }},
		{"tcp_stream reverse", "127.0.0.1", func(c *Config) { c.MessageBytes, c.Direction = 9000, Reverse }},
		{"tcp_stream bidirectional", "127.0.0.1", func(c *Config) { c.MessageBytes, c.Direction, c.Streams = 9000, Bidirectional, 2 }},
		{"tcp_stream paced", "127.0.0.1", func(c *Config) { c.MessageBytes, c.RateBitsPerSecond = 1472, 50e6 }},
		{"tcp_stream zero copy", "127.0.0.1", func(c *Config) { c.MessageBytes, c.ZeroCopy = 65536, true }},
		{"udp_stream", "127.0.0.1", nil},
		{"udp_stream one byte", "127.0.0.1", func(c *Config) { c.MessageBytes, c.RateBitsPerSecond = 1, 80e3 }},
		{"udp_stream eight bytes", "127.0.0.1", func(c *Config) { c.MessageBytes, c.RateBitsPerSecond = 8, 640e3 }},
		{"udp_stream largest ipv6", "::1", func(c *Config) { c.MessageBytes = maxDatagram }},
		{"udp_stream paced 4 streams", "127.0.0.1", func(c *Config) { c.MessageBytes, c.RateBitsPerSecond, c.Streams, c.SharedClock = 1472, 20e6, 4, true }},
		{"udp_stream reverse", "127.0.0.1", func(c *Config) { c.Direction = Reverse }},
		{"udp_stream bidirectional", "::1", func(c *Config) { c.Direction, c.RateBitsPerSecond = Bidirectional, 10e6 }},
		{"udp_stream segmentation offload", "127.0.0.1", func(c *Config) { c.MessageBytes, c.UDPGSO = 1472, true }},
		{"tcp_rr", "127.0.0.1", nil},
		{"tcp_rr pinned", "127.0.0.1", func(c *Config) { c.CPUs = []int{0, 1, 2, 3} }},
		{"tcp_rr large response", "127.0.0.1", func(c *Config) { c.ResponseBytes = 65536 }},
		{"tcp_rr burst", "::1", func(c *Config) { c.Burst, c.Streams = 16, 2 }},
		{"tcp_rr open loop", "127.0.0.1", func(c *Config) { c.RatePerSecond, c.Streams = 2000, 2 }},
		{"udp_rr", "127.0.0.1", nil},
		{"udp_rr one byte", "::1", func(c *Config) { c.MessageBytes = 1 }},
		{"udp_rr burst", "127.0.0.1", func(c *Config) { c.Burst, c.Streams = 8, 2 }},
		{"udp_rr open loop", "127.0.0.1", func(c *Config) { c.RatePerSecond = 1000 }},
		{"tcp_crr", "127.0.0.1", nil},
		{"tcp_crr ipv6 4 streams", "::1", func(c *Config) { c.Streams, c.ResponseBytes = 4, 9000 }},
		{"latency_under_load", "127.0.0.1", func(c *Config) { c.MessageBytes, c.RateBitsPerSecond, c.Streams = 1472, 100e6, 2 }},
		{"latency_under_load reverse open loop", "127.0.0.1", func(c *Config) { c.MessageBytes, c.RatePerSecond, c.Direction = 1472, 500, Reverse }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := quick(strings.Fields(c.name)[0])
			if c.with != nil {
				c.with(&cfg)
			}
			// A busy machine may leave a thread without CPU for a whole short window.
			for try := 0; ; try++ {
				server, client, err := both(t, t.Context(), cfg, c.address)
				if err != nil {
					t.Fatal(err)
				}
				if empty(server, client) && try < 3 {
					cfg.Window *= 4
					continue
				}
				check(t, cfg, server, client)
				break
			}
		})
	}
}

// empty reports whether something that should have been counted is 0.
func empty(reports ...Report) bool {
	for _, r := range reports {
		for _, n := range []*int64{r.Bytes, r.SentBytes, r.Transactions} {
			if n != nil && *n == 0 {
				return true
			}
		}
	}
	return false
}

// check holds what must be true of any run on loopback.
func check(t *testing.T, cfg Config, server, client Report) {
	t.Helper()
	if server.Strangers != 0 || client.Strangers != 0 {
		t.Errorf("strangers: %d and %d", server.Strangers, client.Strangers)
	}
	up := cfg.Direction != Reverse && !cfg.roundTrips()
	down := cfg.Direction != Forward && !cfg.roundTrips()
	stream(t, cfg, up, client, server)
	stream(t, cfg, down, server, client)
	if !cfg.roundTrips() && cfg.Test != LatencyUnderLoad {
		return
	}
	if client.Transactions == nil || *client.Transactions == 0 || client.Latency == nil {
		t.Fatalf("no round trips: %+v", client)
	}
	l := client.Latency
	if l.Count != *client.Transactions || l.MinNanoseconds <= 0 || l.MeanNanoseconds < float64(l.MinNanoseconds) || float64(l.MaxNanoseconds) < l.MeanNanoseconds {
		t.Errorf("latency: %+v", l)
	}
	raw, err := base64.StdEncoding.DecodeString(l.HDRBase64)
	if err != nil || len(raw) == 0 {
		t.Fatalf("not base64: %v", err)
	}
	h, err := hdrhistogram.Decode([]byte(l.HDRBase64))
	if err != nil || h.TotalCount() != l.Count {
		t.Errorf("the histogram does not decode to %d values: %v", l.Count, err)
	}
	if cfg.RatePerSecond == 0 && cfg.Test != TCPCRR && cfg.Test != LatencyUnderLoad {
		// Round trips per second times their length is how many are under way.
		under := float64(*client.Transactions) / client.WindowSeconds * l.MeanNanoseconds / 1e9
		if want := float64(cfg.Streams * cfg.burst()); under > 1.3*want || under < 0.3*want { // the window's edges cut some
			t.Errorf("%.3g transactions are under way, not %g", under, want)
		}
	}
}

// stream checks one direction, where there is one.
func stream(t *testing.T, cfg Config, there bool, sender, receiver Report) {
	t.Helper()
	if (receiver.Bytes != nil) != there || (sender.SentBytes != nil) != there {
		t.Fatalf("a direction is counted: %v; it is there: %v", receiver.Bytes != nil, there)
	}
	if !there {
		return
	}
	if *receiver.Bytes == 0 || *sender.SentBytes == 0 {
		t.Fatalf("nothing went: sent %d, received %d", *sender.SentBytes, *receiver.Bytes)
	}
	sum := 0.0
	for _, v := range receiver.SeriesBitsPerSecond {
		sum += v * receiver.SeriesInterval.Seconds() / 8
	}
	if math.Abs(sum/float64(*receiver.Bytes)-1) > 1e-6 {
		t.Errorf("the series adds up to %g, not to %d bytes", sum, *receiver.Bytes)
	}
	if cfg.Test != UDPStream {
		if sender.TCP == nil || sender.TCP.MSSBytes == 0 {
			t.Errorf("no TCP_INFO: %+v", sender.TCP)
		}
		return
	}
	if *receiver.Arrived > *sender.SentPackets || cfg.RateBitsPerSecond > 0 && *receiver.Arrived != *sender.SentPackets {
		t.Errorf("sent %d, arrived %d", *sender.SentPackets, *receiver.Arrived)
	}
	if (receiver.JitterSeconds != nil) != (cfg.MessageBytes >= headerBytes) || (receiver.Reordered != nil) != (cfg.MessageBytes >= wordBytes) {
		t.Errorf("bookkeeping that a datagram of this size has no room for, or none: %+v", receiver)
	}
	if (receiver.OneWay != nil) != (cfg.SharedClock && cfg.MessageBytes >= headerBytes) {
		t.Errorf("one-way delay: %+v", receiver.OneWay)
	}
}
