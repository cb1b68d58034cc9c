//go:build linux

package traffic

import (
	"sync/atomic"
	"time"
)

// heartbeat tracks whether the other half is alive. All threads of a half share it:
// one thread that receives nothing may only be short of CPU, or its peer may be, but
// a half whose threads all receive nothing has lost the other half.
type heartbeat struct {
	idle  int64       // the longest silence allowed, nanoseconds
	heard atomic.Bool // something arrived since a thread last asked
	since atomic.Int64
	asked atomic.Int64 // when a thread last asked
}

// heldUp is the time without any call of silent, nanoseconds, after which all threads of a
// half were held up: what arrived meanwhile is still unread.
const heldUp = int64(10 * pollInterval)

// beat notes that something arrived. It is for hot loops: it reads no clock, and does
// not write what another thread has just written.
func (p *heartbeat) beat() {
	if !p.heard.Load() {
		p.heard.Store(true)
	}
}

// silent reports whether no thread has received anything for longer than idle. A thread
// that receives nothing asks each pollInterval; the silence begins with the first to ask.
// The kernel may hold up a thread between any two of these lines, for seconds.
func (p *heartbeat) silent() bool {
	now := nanotime()
	if p.heard.Load() || now-p.asked.Load() > heldUp {
		// In this order: whoever sees that somebody asked also sees since when it is silent.
		p.since.Store(nanotime())
		p.heard.Store(false)
		p.asked.Store(now)
		return false
	}
	p.asked.Store(now)
	return now-p.since.Load() > p.idle && !p.heard.Load()
}

// silenceOf is how long a half may receive nothing before it gives up: a slow rate
// makes it longer.
func silenceOf(c Config) time.Duration {
	idle := idleLimit
	switch {
	case c.RatePerSecond > 0:
		idle += time.Duration(2 * float64(time.Second) * float64(c.Streams) / c.RatePerSecond)
	case c.RateBitsPerSecond > 0:
		idle += time.Duration(2 * float64(time.Second) * float64(c.Streams*c.MessageBytes*8) / c.RateBitsPerSecond)
	}
	return idle
}
