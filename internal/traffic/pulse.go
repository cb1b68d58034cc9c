//go:build linux

package traffic

import (
	"sync/atomic"
	"time"
)

// pulse tells whether the other half is there. All threads of a half share it:
// one thread that hears nothing may only be short of CPU, or be facing one that
// is, but a half whose threads all hear nothing has lost the other.
type pulse struct {
	idle  int64       // nanoseconds of silence that are too long
	heard atomic.Bool // something was, since a thread last asked
	since atomic.Int64
	asked atomic.Int64 // when a thread last asked
}

// heldUp is how long nobody of a half may ask: then all its threads were held up,
// and what came meanwhile is still to be read.
const heldUp = int64(10 * pollInterval)

// beat tells that something was heard. It is for hot loops: no clock, and no
// write where others have just written.
func (p *pulse) beat() {
	if !p.heard.Load() {
		p.heard.Store(true)
	}
}

// silent tells whether no thread has heard anything for too long. A thread that
// hears nothing asks each pollInterval; the silence begins with the first to ask.
// A thread may be held up between any two of these lines, by seconds.
func (p *pulse) silent() bool {
	now := nanotime()
	if last := p.asked.Swap(now); p.heard.Load() || now-last > heldUp {
		p.since.Store(nanotime())
		p.heard.Store(false)
		return false
	}
	return now-p.since.Load() > p.idle && !p.heard.Load()
}

// silenceOf is how long a half may hear nothing before it gives up: a slow rate
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
