package traffic

import (
	"math"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

// FuzzSeen compares the window of numbers with a set that forgets nothing.
func FuzzSeen(f *testing.F) {
	f.Add([]byte{0, 1, 1, 2, 5, 3, 3, 200, 0})
	f.Add([]byte{255, 255, 0, 255, 1, 128, 128, 7})
	f.Fuzz(func(t *testing.T, steps []byte) {
		defer fuzzed.Within(t)()
		var s seen
		var highest, at uint64
		known := map[uint64]bool{}
		for i, b := range steps {
			// Small steps both ways, and now and then a long one forward.
			if at += uint64(b % 16); b > 250 {
				at += seenBits / 3 * uint64(b-250)
			}
			number := at - min(at, uint64(b>>4))
			late, duplicate := s.mark(number)
			if highest >= seenBits && number < highest-seenBits+1 {
				continue // too far back to remember
			}
			if wantDuplicate, wantLate := known[number], !known[number] && i > 0 && number < highest; late != wantLate || duplicate != wantDuplicate {
				t.Fatalf("step %d, number %d after %d: late %v, duplicate %v; want %v, %v", i, number, highest, late, duplicate, wantLate, wantDuplicate)
			}
			known[number] = true
			highest = max(highest, number)
		}
	})
}

// FuzzDatagram feeds a receiver what strangers may send.
func FuzzDatagram(f *testing.F) {
	cfg := quick(UDPStream)
	r, err := newRun(cfg, true)
	if err != nil {
		f.Fatal(err)
	}
	hello := r.control(helloControl, 3)
	f.Add(hello[:])
	f.Add([]byte{1})
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, p []byte) {
		defer fuzzed.Within(t)()
		if len(p) == 0 {
			return
		}
		r, err := newRun(cfg, true)
		if err != nil {
			t.Fatal(err)
		}
		s := &udpReceiver{run: r, fd: -1, series: newSeries(cfg.Window), token8: 1}
		s.book(p, nanotime())
		if s.packets > 0 {
			t.Errorf("%x was taken for ours", p)
		}
		if kind, _ := r.readControl(p); kind == 0 && s.ended {
			t.Errorf("%x ended the run", p)
		}
	})
}

func TestPacer(t *testing.T) {
	cfg := quick(UDPStream)
	cfg.MessageBytes, cfg.RateBitsPerSecond = 125, 1e6 // one message per millisecond
	p := newPacer(cfg)
	ms := int64(time.Millisecond)
	for _, c := range []struct {
		now  int64
		want int
	}{{0, 1}, {ms / 2, 0}, {ms, 1}, {5 * ms, 4}, {5 * ms, 0}, {2000 * ms, 10}} {
		n := p.due(c.now, 10)
		if n != c.want {
			t.Errorf("at %d ms: %d are due, want %d", c.now/ms, n, c.want)
		}
		p.sent += int64(n)
	}
	// After a long stall what is older than paceDebt was given up.
	if n := p.due(2000*ms, 1000); n < 85 || n > 95 {
		t.Errorf("%d are made up for after a stall of two seconds", n)
	}
}

func TestSeriesCoversTheWindow(t *testing.T) {
	for _, window := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 333 * time.Millisecond, time.Second, 1234567891} {
		s := newSeries(window)
		s.add(0, 1)
		s.add(int64(window)-1, 2)
		if got := s.interval * int64(len(s.bytes)); got < int64(window) || got > int64(window)+int64(len(s.bytes)) {
			t.Errorf("%v: %d intervals of %d ns", window, len(s.bytes), s.interval)
		}
	}
}

func TestRecorder(t *testing.T) {
	a, b := newRecorder(), newRecorder()
	for _, v := range []int64{1_000_000_001, 1_000_000_003} {
		a.record(v)
	}
	for _, v := range []int64{1_000_000_005, 90_000_000_000} {
		b.record(v)
	}
	h, err := merge([]*recorder{a, b, newRecorder()})
	if err != nil {
		t.Fatal(err)
	}
	if h.Count != 4 || h.MinNanoseconds != 1_000_000_001 || h.MaxNanoseconds != 90_000_000_000 || h.MeanNanoseconds != 23_250_000_002.25 || math.Abs(h.StddevNanoseconds-38_538_130_467) > 1 {
		t.Errorf("got %+v", h)
	}
	if h, err := merge([]*recorder{newRecorder()}); h != nil || err != nil {
		t.Errorf("nothing was recorded, and there is %+v, %v", h, err)
	}
}
