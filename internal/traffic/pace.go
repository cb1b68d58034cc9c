//go:build linux

package traffic

import "time"

const (
	// paceQuantum is the shortest sleep of a paced stream: faster messages go
	// out in small groups.
	paceQuantum = int64(100 * time.Microsecond)
	// paceDebt is how far a stream that was held up catches up; what is older
	// is given up, and the achieved rate shows it.
	paceDebt = int64(100 * time.Millisecond)
)

// pacer says when the messages of one stream are due.
type pacer struct {
	interval float64 // nanoseconds between messages; 0: always due
	start    int64
	sent     int64
}

func newPacer(cfg Config) pacer {
	if cfg.RateBitsPerSecond <= 0 {
		return pacer{}
	}
	return pacer{interval: float64(cfg.MessageBytes*8*cfg.Streams) * 1e9 / cfg.RateBitsPerSecond}
}

// due is how many messages, at most limit, are to be sent now.
func (p *pacer) due(now int64, limit int) int {
	if p.interval == 0 {
		return limit
	}
	behind := now - p.next()
	if behind < 0 {
		return 0
	}
	if behind > paceDebt {
		p.start += behind - paceDebt
		behind = paceDebt
	}
	return min(limit, 1+int(float64(behind)/p.interval))
}

// next is when the next message is due.
func (p *pacer) next() int64 { return p.start + int64(float64(p.sent)*p.interval) }

// sleep waits until n messages are due.
func (p *pacer) sleep(now int64, n int) {
	next := p.start + int64(float64(p.sent+int64(n)-1)*p.interval)
	if p.interval < float64(paceQuantum) {
		next = max(next, now+paceQuantum)
	}
	sleepUntil(next)
}
