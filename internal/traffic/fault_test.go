package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
)

// longRun is one that only a fault ends.
func longRun(test string) Config {
	cfg := quick(test)
	cfg.Window = time.Minute
	return cfg
}

// halves starts both halves of a run, each with a context of its own, and
// gives what they return.
func halves(t *testing.T, cfg Config) (stopServer, stopClient context.CancelCauseFunc, server, client chan error, port uint16) {
	t.Helper()
	s, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	serverCtx, stopServer := context.WithCancelCause(t.Context())
	clientCtx, stopClient := context.WithCancelCause(t.Context())
	server, client = make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.Run(serverCtx, Hooks{})
		server <- err
	}()
	go func() {
		_, err := Drive(clientCtx, cfg, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), s.Port()), Hooks{})
		client <- err
	}()
	return stopServer, stopClient, server, client, s.Port()
}

func within(t *testing.T, what string, limit time.Duration, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		t.Fatalf("%s did not end within %v", what, limit)
		return nil
	}
}

// A half that goes in mid-run, orderly or not, is noticed by the other within
// 5 s, and nobody reports a part as the whole.
func TestOneHalfGoes(t *testing.T) {
	t.Parallel()
	for _, test := range []string{TCPStream, UDPStream, TCPRR, UDPRR, TCPCRR, LatencyUnderLoad} {
		for _, goes := range []string{"server", "client"} {
			t.Run(test+" without its "+goes, func(t *testing.T) {
				t.Parallel()
				stopServer, stopClient, server, client, _ := halves(t, longRun(test))
				time.Sleep(200 * time.Millisecond)
				gone := errors.New("killed")
				first, stop, second := server, stopServer, client
				if goes == "client" {
					first, stop, second = client, stopClient, server
				}
				stop(gone)
				if err := within(t, goes, 3*time.Second, first); !errors.Is(err, gone) {
					t.Errorf("the %s that was stopped says %v", goes, err)
				}
				err := within(t, "the other half", 5*time.Second, second)
				if err == nil && !(goes == "client" && strings.HasSuffix(test, "rr")) {
					// A server of round trips measures nothing; that its client
					// failed is the client's to say.
					t.Error("the other half says that all went well")
				}
			})
		}
	}
}

func TestNobodyServes(t *testing.T) {
	t.Parallel()
	// A port that was free a moment ago.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().(*net.TCPAddr).AddrPort()
	l.Close()
	for _, test := range []string{TCPStream, UDPStream, TCPRR, UDPRR, TCPCRR} {
		began := time.Now()
		_, err := Drive(t.Context(), quick(test), free, Hooks{})
		if err == nil || !strings.Contains(err.Error(), "refused") || time.Since(began) > 5*time.Second {
			t.Errorf("%s: %v after %v", test, err, time.Since(began))
		}
	}
}

func TestWrongToken(t *testing.T) {
	labtest.Slow(t)
	t.Parallel()
	for _, test := range []string{TCPStream, UDPRR} {
		s, err := Listen(quick(test))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() {
			_, err := s.Run(ctx, Hooks{})
			served <- err
		}()
		cfg := quick(test)
		cfg.Token = strings.Repeat("ff", tokenBytes)
		if _, err := Drive(t.Context(), cfg, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), s.Port()), Hooks{}); err == nil {
			t.Errorf("%s: a stranger was served", test)
		}
		stop()
		if err := within(t, "the server", 2*time.Second, served); err == nil {
			t.Errorf("%s: no client came, and no error", test)
		}
		if n := s.run.strangers.Load(); n == 0 {
			t.Errorf("%s: the stranger was not counted", test)
		}
	}
}

// Strangers that connect and say nothing, or nonsense, before and in a run do
// not disturb it; they are closed and counted.
func TestStrangers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: run make test")
	}
	const strangers = 10_000
	for _, test := range []string{TCPStream, TCPCRR, TCPRR} {
		t.Run(test, func(t *testing.T) {
			cfg := quick(test)
			cfg.Window, cfg.MessageBytes = time.Second, 1472
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
			var dialing sync.WaitGroup
			stop := make(chan struct{})
			for i := range 8 {
				dialing.Add(1)
				go func() {
					defer dialing.Done()
					sendStrangers(address, strangers/8, i%2 == 0, stop)
				}()
			}
			time.Sleep(20 * time.Millisecond)
			client, err := Drive(t.Context(), cfg, netip.MustParseAddrPort(address), Hooks{})
			close(stop)
			s.Finish()
			if err != nil {
				t.Fatalf("the client: %v", err)
			}
			if err := within(t, "the server", 6*time.Second, served); err != nil {
				t.Fatalf("the server: %v", err)
			}
			dialing.Wait()
			if report.Strangers < 100 {
				t.Errorf("only %d strangers were refused", report.Strangers)
			}
			if test == TCPStream && *report.Bytes == 0 || test != TCPStream && *client.Transactions == 0 {
				t.Error("nothing was measured")
			}
		})
	}
}

// sendStrangers opens n connections; half of all strangers keep theirs open.
func sendStrangers(address string, n int, silent bool, stop <-chan struct{}) {
	var open []net.Conn
dial:
	for range n {
		select {
		case <-stop:
			break dial
		default:
		}
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			continue
		}
		if silent && len(open) < 2000 {
			open = append(open, c)
			continue
		}
		_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
		_ = c.Close()
	}
	for _, c := range open {
		_ = c.Close()
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		with func(*Config)
		want string
	}{
		{func(c *Config) { c.Test = "carrier_pigeon" }, "unknown test"},
		{func(c *Config) { c.Token = "xyz" }, "token"},
		{func(c *Config) { c.MessageBytes = 0 }, "0 bytes"},
		{func(c *Config) { c.Test, c.MessageBytes = UDPStream, 65508 }, "65507"},
		{func(c *Config) { c.Streams = 257 }, "1 to 256"},
		{func(c *Config) { c.Window = 0 }, "window"},
		{func(c *Config) { c.Direction = "sideways" }, "direction"},
		{func(c *Config) { c.Direction, c.Test = Reverse, TCPRR }, "takes no direction"},
		{func(c *Config) { c.RateBitsPerSecond, c.Test = 1e6, TCPRR }, "rate_per_second"},
		{func(c *Config) { c.RatePerSecond = 10 }, "no open loop"},
		{func(c *Config) { c.Burst = 4 }, "no burst"},
		{func(c *Config) { c.Test, c.Burst, c.MessageBytes = UDPRR, 4, 1 }, "needs 8 bytes"},
		{func(c *Config) { c.UDPGSO = true }, "udp_gso"},
		{func(c *Config) { c.Test, c.ZeroCopy = UDPStream, true }, "zero_copy"},
		{func(c *Config) { c.ResponseBytes = 5 }, "no responses"},
		{func(c *Config) { c.CPUs = []int{1000} }, "pin_cpus"},
	} {
		cfg := quick(TCPStream)
		c.with(&cfg)
		_, err := Listen(cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}
