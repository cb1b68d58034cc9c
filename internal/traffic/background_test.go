package traffic

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
)

// TestBackground: connections next to the measured ones carry their rate and are
// counted separately, next to a stream and to round trips.
func TestBackground(t *testing.T) {
	labtest.Slow(t)
	const n = 20
	for _, test := range []string{TCPStream, TCPRR} {
		t.Run(test, func(t *testing.T) {
			cfg := quick(test)
			// So long that what a stream catches up of a time before the window
			// (paceDebt, no more) is half of what is forgiven below.
			cfg.BackgroundStreams, cfg.Warmup, cfg.Window = n, 200*time.Millisecond, 20*time.Duration(paceDebt)
			if test == TCPStream {
				cfg.RateBitsPerSecond = 20e6 // so that it takes nothing from the others
			}
			server, client, err := both(t, t.Context(), cfg, "127.0.0.1")
			if err != nil {
				t.Fatal(err)
			}
			if server.BackgroundBytes == nil {
				t.Fatal("no background was counted")
			}
			got := float64(*server.BackgroundBytes) * 8 / server.WindowSeconds
			if math.Abs(got/(n*BackgroundRate)-1) > 0.1 {
				t.Errorf("the background brought %.3g bit/s, want %.3g", got, n*BackgroundRate)
			}
			if client.BackgroundBytes != nil {
				t.Error("the client counted a background")
			}
			switch test {
			case TCPStream:
				if got := float64(*server.Bytes) * 8 / server.WindowSeconds; math.Abs(got/20e6-1) > 0.1 {
					t.Errorf("the measured stream has %.3g bit/s, want 20e6: is the background in it?", got)
				}
			case TCPRR:
				if client.Transactions == nil || *client.Transactions == 0 || client.Bytes != nil {
					t.Errorf("%+v", client)
				}
			}
		})
	}
}

// TestBackgroundTakesTwoThreads: hundreds of streams take the CPU time of their packets, and not
// that of hundreds of threads, whose turns the measured stream would have to wait for.
func TestBackgroundTakesTwoThreads(t *testing.T) {
	labtest.Slow(t)
	const streams = 300
	cfg := quick(TCPRR)
	cfg.BackgroundStreams = streams
	threads := 0
	hooks := Hooks{WindowStart: func() {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Error(err)
		}
		threads = len(tasks)
	}}
	server, _, err := bothHooked(t, t.Context(), cfg, "127.0.0.1", hooks)
	if err != nil {
		t.Fatal(err)
	}
	if *server.BackgroundBytes == 0 {
		t.Error("the background brought nothing")
	}
	if threads == 0 || threads > streams/2 {
		t.Errorf("this program has %d threads, with %d streams in the background", threads, streams)
	}
}

func TestBackgroundRefused(t *testing.T) {
	good := quick(TCPStream)
	good.BackgroundStreams = 1
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"udp":       func(c *Config) { c.Test = UDPStream },
		"reverse":   func(c *Config) { c.Direction = Reverse },
		"too many":  func(c *Config) { c.BackgroundStreams = maxBackground + 1 },
		"below 0":   func(c *Config) { c.BackgroundStreams = -1 },
		"connects":  func(c *Config) { c.Test = TCPCRR },
		"both ways": func(c *Config) { c.Direction = Bidirectional },
	} {
		bad := good
		change(&bad)
		if err := bad.Validate(); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
