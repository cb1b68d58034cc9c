//go:build linux

package traffic

import (
	"sync/atomic"
	"time"
	_ "unsafe" // for the clock
)

// nanotime is CLOCK_MONOTONIC in nanoseconds, read without a system call. All
// programs of one kernel read the same clock, whatever their network
// namespace, which time.Now would hide.
//
//go:linkname nanotime runtime.nanotime
//go:noescape
func nanotime() int64

// seriesInterval is the wanted length of an interval of a series.
const seriesInterval = 100 * time.Millisecond

// window is the measured part of one direction of a run. It starts a warm-up
// after the first byte and has a length that was asked for: what happens
// outside of it is not counted.
type window struct {
	warmup, length int64
	// begin is when the window starts; 0 until the first byte.
	begin atomic.Int64
	open  chan struct{} // closed at the first byte
}

func newWindow(cfg Config) *window {
	return &window{warmup: int64(cfg.Warmup), length: int64(cfg.Window), open: make(chan struct{})}
}

// first notes a first byte, of whichever stream, and returns the window.
func (w *window) first(now int64) (begin, end int64) {
	if w.begin.CompareAndSwap(0, now+w.warmup) {
		close(w.open)
	}
	begin = w.begin.Load()
	return begin, begin + w.length
}

// watch calls the hooks at the window's edges; it returns when both were
// called, or when over is closed before.
func (w *window) watch(h Hooks, over <-chan struct{}) {
	select {
	case <-w.open:
	case <-over:
		return
	}
	for _, edge := range []struct {
		at   int64
		call func()
	}{{w.begin.Load(), h.WindowStart}, {w.begin.Load() + w.length, h.WindowEnd}} {
		select {
		case <-time.After(time.Duration(edge.at - nanotime())):
		case <-over:
			// The threads are through: an edge that is still to come never will.
			if nanotime() < edge.at {
				return
			}
		}
		if edge.call != nil {
			edge.call()
		}
	}
}

// series counts bytes per interval of a window. Its intervals divide the
// window without a rest, so that they add up to the whole.
type series struct {
	interval int64
	bytes    []int64
}

func newSeries(window time.Duration) series {
	n := max(1, (window+seriesInterval/2)/seriesInterval)
	return series{interval: (int64(window) + int64(n) - 1) / int64(n), bytes: make([]int64, n)}
}

// add counts bytes that came at a time of the window.
func (s *series) add(sinceBegin, n int64) { s.bytes[sinceBegin/s.interval] += n }
