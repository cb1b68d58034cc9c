package traffic

import (
	"context"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
)

// slicedRun runs slices of a config on loopback.
func slicedRun(t *testing.T, cfg Config, turns []Turn) (Report, Report, error) {
	t.Helper()
	return carriedRun(t, cfg, turns, nil)
}

// carriedRun is slicedRun with processes that carry the server's packets.
func carriedRun(t *testing.T, cfg Config, turns []Turn, carriers []int) (Report, Report, error) {
	t.Helper()
	cfg.Token, cfg.Sliced = strings.Repeat("ab", tokenBytes), true
	cfg.Warmup, cfg.Window = time.Second, time.Second
	srv, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv.AddCarriers(carriers)
	type answer struct {
		r   Report
		err error
	}
	served := make(chan answer, 1)
	go func() {
		r, err := srv.Run(t.Context(), Hooks{})
		served <- answer{r, err}
	}()
	d, err := OpenSlices(t.Context(), cfg, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), srv.Port()), nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := d.Run(t.Context(), Now()+int64(20*time.Millisecond), turns)
	d.Close()
	srv.Finish()
	server := <-served
	if server.err != nil {
		t.Errorf("server: %v", server.err)
	}
	return client, server.r, err
}

func someTurns(n int) []Turn {
	var turns []Turn
	for i := range n {
		turns = append(turns, Turn{At: time.Duration(i) * 40 * time.Millisecond, LeadIn: time.Millisecond, Length: 10 * time.Millisecond})
	}
	return turns
}

// shortestSlice and longestSlice are the bounds of a slice of 10 ms, seconds.
const (
	shortestSlice = 0.008
	longestSlice  = 0.5
)

// undisturbedRun is a run of five slices. It runs again, up to ten times, where others kept
// an end from its processor: then slices are missed, or shorter than they should be.
func undisturbedRun(t *testing.T, cfg Config) (client, server Report, err error) {
	t.Helper()
	for range 10 {
		client, server, err = slicedRun(t, cfg, someTurns(5))
		short := func(s Slice) bool { return s.Seconds() < shortestSlice }
		if err == nil && len(client.Slices) >= 3 && !slices.ContainsFunc(client.Slices, short) {
			break
		}
		t.Logf("%v: %d slices, %d missed", err, len(client.Slices), client.MissedSlices)
	}
	return client, server, err
}

func TestSlicesCountAllOfTheWork(t *testing.T) {
	labtest.Slow(t)
	for _, cfg := range []Config{
		{Test: TCPStream, MessageBytes: 1472, Streams: 1},
		{Test: TCPStream, MessageBytes: 65536, Streams: 2},
		{Test: TCPStream, MessageBytes: 1472, Streams: 1, Direction: Reverse},
		{Test: TCPStream, MessageBytes: 1472, Streams: 1, Direction: Bidirectional},
		{Test: TCPRR, MessageBytes: 64, Streams: 1},
		{Test: TCPRR, MessageBytes: 1, ResponseBytes: 2000, Streams: 2, Burst: 4},
		{Test: UDPRR, MessageBytes: 1, Streams: 1},
		{Test: UDPRR, MessageBytes: 64, Streams: 2},
		{Test: UDPStream, MessageBytes: 64, Streams: 1},
		{Test: UDPStream, MessageBytes: 1, Streams: 2},
		{Test: UDPStream, MessageBytes: 1472, Streams: 1, UDPGSO: true},
		{Test: TCPCRR, MessageBytes: 64, Streams: 1},
		{Test: TCPCRR, MessageBytes: 1, ResponseBytes: 100, Streams: 3},
	} {
		for _, placement := range []string{CPUsFree, CPUsSame, CPUsApart} {
			cfg.Placement = placement
			t.Run(cfg.Test+cfg.Direction+placement, func(t *testing.T) {
				client, server, err := undisturbedRun(t, cfg)
				if err != nil {
					t.Fatal(err)
				}
				if len(client.Slices)+client.MissedSlices != 5 || len(client.Slices) == 0 {
					t.Fatalf("%d slices, %d missed of 5", len(client.Slices), client.MissedSlices)
				}
				if placement == CPUsSame && (len(client.CPUs) != 1 || len(server.CPUs) != 1 || client.CPUs[0] != server.CPUs[0]) {
					t.Errorf("same: client on %v, server on %v", client.CPUs, server.CPUs)
				}
				if placement == CPUsApart && client.CPUs[0] == server.CPUs[0] {
					t.Errorf("apart: client on %v, server on %v", client.CPUs, server.CPUs)
				}
				var transactions int64
				for i, s := range client.Slices {
					t.Logf("%+v", s)
					if s.Seconds() < shortestSlice || s.Seconds() > longestSlice {
						t.Errorf("slice %d took %g s of 0.01", i, s.Seconds())
					}
					if s.ClientCPU <= 0 || s.ServerCPU <= 0 {
						t.Errorf("slice %d: no CPU time: %+v", i, s)
					}
					switch cfg.Test {
					case TCPStream:
						if s.Bytes <= 0 || s.Bytes != s.SentBytes || (cfg.Direction == Bidirectional) != (s.ReverseBytes > 0) {
							t.Errorf("slice %d: %+v", i, s)
						}
					case UDPStream:
						if s.Packets <= 0 || s.Bytes != s.Packets*int64(cfg.MessageBytes) || s.SentPackets < s.Packets {
							t.Errorf("slice %d: %+v", i, s)
						}
					default:
						if s.Transactions <= 0 || s.TransactionsLost != 0 {
							t.Errorf("slice %d: %+v", i, s)
						}
						transactions += s.Transactions
					}
				}
				if transactions > 0 && client.Latency.Count < transactions { // a stream whose slice others missed is in it too
					t.Errorf("%d round trips recorded of %d", client.Latency.Count, transactions)
				}
			})
		}
	}
}

func TestSlicesBeginInTime(t *testing.T) {
	labtest.Slow(t)
	// Of the others some may be late as well, on a machine that other tests keep busy.
	turns := append([]Turn{{At: -time.Second, Length: 10 * time.Millisecond}}, someTurns(20)...)
	client, _, err := slicedRun(t, Config{Test: TCPRR, MessageBytes: 64, Streams: 1}, turns)
	if err != nil {
		t.Fatal(err)
	}
	if len(client.Slices) == 0 || len(client.Slices)+client.MissedSlices != len(turns) || client.Slices[0].Turn == 0 {
		t.Errorf("a turn whose time was over was not left out: %+v", client)
	}
	if _, _, err := slicedRun(t, Config{Test: TCPRR, MessageBytes: 64, Streams: 1}, turns[:1]); err == nil || !strings.Contains(err.Error(), "too late") {
		t.Errorf("all turns late: %v", err)
	}
}

func TestSlicesEndWhenTheServerIsGone(t *testing.T) {
	cfg := Config{Test: TCPRR, MessageBytes: 64, Streams: 1, Token: strings.Repeat("ab", tokenBytes), Sliced: true, Window: time.Second}
	srv, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		_, err := srv.Run(ctx, Hooks{})
		served <- err
	}()
	d, err := OpenSlices(t.Context(), cfg, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), srv.Port()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	go func() {
		time.Sleep(50 * time.Millisecond)
		stop()
	}()
	begin := time.Now()
	_, err = d.Run(t.Context(), Now(), someTurns(100))
	if err == nil || time.Since(begin) > 5*time.Second {
		t.Errorf("error %v after %v", err, time.Since(begin))
	}
	if err := <-served; err == nil {
		t.Error("a server that was cancelled came to its end")
	}
}

// TestStreamsOnOneCPUTakeEachTurnTogether: threads that share a CPU come one after the
// other. That must cost no slice, and no lead-in may run in another's counted part.
func TestStreamsOnOneCPUTakeEachTurnTogether(t *testing.T) {
	labtest.Slow(t)
	var turns []Turn
	for i := range 8 {
		turns = append(turns, Turn{At: time.Duration(i) * 200 * time.Millisecond, LeadIn: 5 * time.Millisecond, Length: 20 * time.Millisecond})
	}
	for _, cfg := range []Config{
		{Test: TCPStream, MessageBytes: 16384, Streams: 4},
		{Test: UDPStream, MessageBytes: 64, Streams: 4},
		{Test: TCPRR, MessageBytes: 64, Streams: 4},
	} {
		cfg.Placement = CPUsSame
		t.Run(cfg.Test, func(t *testing.T) {
			client, _, err := slicedRun(t, cfg, turns)
			if err != nil {
				t.Fatal(err)
			}
			// A machine without CPU may cost some; before, nearly all were lost.
			if len(client.Slices) < len(turns)/2 {
				t.Errorf("%d of %d slices were left", len(client.Slices), len(turns))
			}
		})
	}
}

func TestAGateHoldsAllUntilTheLastComes(t *testing.T) {
	g := newSliceGate(3)
	g.begin(2)
	if !g.takes(0, false) || !g.takes(0, true) || g.takes(1, true) || g.takes(1, false) {
		t.Error("the first thread's finding does not hold for all")
	}
	for range 2 { // it can be used again
		through := make(chan error, 3)
		for range 2 {
			go func() { through <- g.wait() }()
		}
		select {
		case err := <-through:
			t.Fatalf("a thread went on before the last had come: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		go func() { through <- g.wait() }()
		for range 3 {
			if err := <-through; err != nil {
				t.Error(err)
			}
		}
	}
	stuck := make(chan error, 1)
	go func() { stuck <- g.wait() }()
	g.interrupt()
	if err := <-stuck; err == nil {
		t.Error("an interrupted wait gave no error")
	}
	if err := g.wait(); err == nil {
		t.Error("a wait after the interruption gave no error")
	}
}

// TestOpenTimeIsThatOfRoundTrips: the length of slices follows from it, and a lost SYN,
// which costs a second, must not make them ten seconds long.
func TestOpenTimeIsThatOfRoundTrips(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var ends []sliceEnd
	for range 2 {
		conn, err := net.Dial("tcp4", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		file, err := conn.(*net.TCPConn).File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		ends = append(ends, newTCPSliceRequester(&run{}, int(file.Fd())))
	}
	if got := openTime(ends); got <= 0 || got > time.Second {
		t.Errorf("connections on loopback open in %v", got)
	}
	if got := openTime([]sliceEnd{ends[0], &udpSliceRequester{}}); got != math.MaxInt64 {
		t.Errorf("of datagrams nothing is known, and still %v", got)
	}
}

// TestServerCountsItsCarriers: the CPU time of a process that carries a server's packets is
// the server's, and not that of a server that has none.
func TestServerCountsItsCarriers(t *testing.T) {
	spent := func(carriers []int) float64 {
		cfg := Config{Test: TCPRR, MessageBytes: 64, Streams: 1, SharedClock: true}
		client, _, err := carriedRun(t, cfg, someTurns(20), carriers)
		if err != nil {
			t.Fatal(err)
		}
		var sum time.Duration
		var transactions int64
		for _, s := range client.Slices {
			sum, transactions = sum+s.ServerCPU, transactions+s.Transactions
		}
		if transactions == 0 {
			t.Fatalf("no slice of %d is left", len(client.Slices))
		}
		return sum.Seconds() / float64(transactions)
	}
	// This process is the carrier: all of its threads, of which two send and answer.
	without, with := spent(nil), spent([]int{os.Getpid()})
	t.Logf("CPU time of the server for a transaction: %.3g s, and %.3g s with a busy carrier", without, with)
	if with < 1.5*without {
		t.Errorf("a busy carrier adds nothing to %.3g s for a transaction: %.3g s", without, with)
	}
}
