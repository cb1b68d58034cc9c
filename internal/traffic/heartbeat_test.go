package traffic

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/labtest"
)

// A stream whose other end is not heard, as a thread that gets no CPU is not, is
// no reason to give up while another stream's is. When all are silent it is.
func TestStreamsShareAPulse(t *testing.T) {
	labtest.Slow(t)
	const idle = 300 * time.Millisecond
	for _, c := range []struct {
		name    string
		one     bool // one of the two receivers is heard
		seconds float64
	}{{"one is heard", true, 3 * idle.Seconds()}, {"none is heard", false, idle.Seconds()}} {
		t.Run(c.name, func(t *testing.T) {
			cfg := quick(UDPStream)
			cfg.Streams, cfg.RateBitsPerSecond, cfg.Window = 2, 1e6, 3*idle
			r, err := newRun(cfg, true)
			if err != nil {
				t.Fatal(err)
			}
			r.in.idle = int64(idle)
			var workers []worker
			var receivers sync.WaitGroup
			var over atomic.Bool
			for i := range cfg.Streams {
				pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = closeFDs(pair[:]) }() // what counts was received
				s, err := newUDPSender(r, pair[0], i)
				if err == nil {
					err = timeouts(pair[1])
				}
				if err != nil {
					t.Fatal(err)
				}
				workers = append(workers, s)
				receivers.Add(1)
				go func() {
					defer receivers.Done()
					receive(r, pair[1], i, c.one && i == 0, c.one, &over)
				}()
			}
			began := time.Now()
			report, err := r.do(t.Context(), workers, r.send, Hooks{})
			took := time.Since(began)
			over.Store(true)
			receivers.Wait()
			if (err == nil) != c.one {
				t.Fatalf("after %v: %v", took, err)
			}
			if took.Seconds() < c.seconds || took > 5*time.Second {
				t.Errorf("it took %v, not %g s: %v", took, c.seconds, err)
			}
			if c.one && *report.SentPackets == 0 {
				t.Error("nothing was sent")
			}
		})
	}
}

// Threads that ask at the same moment, as the first ones of a run do, see the same beginning of
// the silence.
func TestThreadsAskAtOnce(t *testing.T) {
	const runs, threads = 300_000, 2
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(threads, runtime.NumCPU())))
	beats := make([]heartbeat, runs)
	for i := range beats {
		beats[i].idle = int64(time.Second)
	}
	var at, silent atomic.Int64
	var done sync.WaitGroup
	for range threads {
		done.Go(func() {
			for i := range beats {
				for at.Add(1); at.Load() < int64(threads*(i+1)); { // all at once
				}
				if beats[i].silent() {
					silent.Add(1)
				}
			}
		})
	}
	done.Wait()
	if n := silent.Load(); n > 0 {
		t.Errorf("%d of %d runs that had just begun had been silent for more than a second", n, runs)
	}
}

// receive replaces the receiver of one flow: it may say that it is
// there, and at the end of the window that it has seen enough.
func receive(r *run, fd, index int, alive, stop bool, over *atomic.Bool) {
	buf := make([]byte, 2048)
	for !over.Load() {
		n, err := unix.Read(fd, buf)
		if alive && err == nil {
			r.sendControl(fd, aliveControl, index)
		}
		if kind, _ := r.readControl(buf[:max(n, 0)]); kind == endControl {
			return
		}
		if begin := r.send.begin.Load(); stop && begin != 0 && nanotime() > begin+r.send.length {
			r.sendControl(fd, stopControl, index)
		}
	}
}

// A silence is one that threads listened to: not the time in which all of them
// were held up.
func TestSilence(t *testing.T) {
	p := heartbeat{idle: 1}
	for i, c := range []struct {
		before func()
		want   bool
	}{
		{func() {}, false}, // nobody has listened yet
		{func() {}, true},
		{func() { p.asked.Add(-2 * heldUp) }, false},
		{func() {}, true},
		{p.beat, false},
		{func() {}, true},
	} {
		c.before()
		time.Sleep(time.Microsecond)
		if got := p.silent(); got != c.want {
			t.Errorf("question %d: silent is %v", i, got)
		}
	}
}
