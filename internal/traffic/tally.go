//go:build linux

package traffic

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// tally adds up what the threads of a half counted.
type tally struct {
	cfg Config

	bytes, packets         *int64
	sentBytes, sentPackets *int64
	transactions, lost     *int64
	background             *int64
	arrived, reordered     *int64
	duplicated             *int64
	jitter                 float64
	jitters                int
	latency, oneWay        []*recorder
	connect                []*recorder
	switches               []Switch
	window                 int64 // nanoseconds, where it is not the one that was asked for
	interval               int64
	series                 []int64
	tcp                    TCPInfo
	infos, paced           int
	warnings               []string
}

// count adds to a sum that may not have been there.
func count(sum **int64, n int64) {
	if *sum == nil {
		*sum = new(int64)
	}
	**sum += n
}

func (t *tally) addSeries(s series) {
	if t.series == nil {
		t.series, t.interval = make([]int64, len(s.bytes)), s.interval
	}
	for i, n := range s.bytes {
		t.series[i] += n
	}
}

// addTCP takes TCP_INFO of one sending socket, at the start and the end of its
// window: the retransmits of the window are the difference.
func (t *tally) addTCP(first, last *unix.TCPInfo) {
	if first == nil || last == nil {
		return
	}
	t.infos++
	t.tcp.Retransmits += int64(last.Total_retrans) - int64(first.Total_retrans)
	t.tcp.CwndPackets += float64(last.Snd_cwnd)
	t.tcp.RTTSeconds += float64(last.Rtt) / 1e6
	t.tcp.MSSBytes += float64(last.Snd_mss)
	// All ones is "not limited".
	if last.Pacing_rate != 0 && last.Pacing_rate != ^uint64(0) {
		t.paced++
		t.tcp.PacingRateBitsPerSecond += float64(last.Pacing_rate) * 8
	}
}

func (t *tally) warn(format string, args ...any) {
	w := fmt.Sprintf(format, args...)
	for _, known := range t.warnings {
		if known == w {
			return
		}
	}
	t.warnings = append(t.warnings, w)
}

func (t *tally) report() (Report, error) {
	r := Report{
		WindowSeconds: t.cfg.Window.Seconds(),
		Bytes:         t.bytes, Packets: t.packets, SentBytes: t.sentBytes, SentPackets: t.sentPackets,
		Transactions: t.transactions, TransactionsLost: t.lost,
		BackgroundBytes: t.background,
		Arrived:         t.arrived, Reordered: t.reordered, Duplicated: t.duplicated,
		Warnings: t.warnings,
	}
	r.Switches = t.switches
	if t.window > 0 {
		r.WindowSeconds = time.Duration(t.window).Seconds()
	}
	if t.jitters > 0 {
		mean := t.jitter / float64(t.jitters)
		r.JitterSeconds = &mean
	}
	if t.series != nil {
		r.SeriesInterval = time.Duration(t.interval)
		for i, n := range t.series {
			// Where the intervals do not divide the window to the nanosecond, the
			// last one is some nanoseconds shorter.
			length := min(t.interval, int64(t.cfg.Window)-int64(i)*t.interval)
			r.SeriesBitsPerSecond = append(r.SeriesBitsPerSecond, float64(n)*8e9/float64(length))
		}
	}
	if t.infos > 0 {
		n := float64(t.infos)
		r.TCP = &TCPInfo{Retransmits: t.tcp.Retransmits, CwndPackets: t.tcp.CwndPackets / n, RTTSeconds: t.tcp.RTTSeconds / n, MSSBytes: t.tcp.MSSBytes / n}
		if t.paced > 0 {
			r.TCP.PacingRateBitsPerSecond = t.tcp.PacingRateBitsPerSecond / float64(t.paced)
		}
	}
	var err error
	if r.Latency, err = merge(t.latency); err != nil {
		return r, err
	}
	if r.Connect, err = merge(t.connect); err != nil {
		return r, err
	}
	r.OneWay, err = merge(t.oneWay)
	return r, err
}
