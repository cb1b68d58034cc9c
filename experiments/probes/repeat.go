package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/aclements/go-moremath/stats"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/probe"
)

const (
	repeats = 10
	// packets fill a window of some tenths of a second, so that what the kernel
	// does now and then weighs little in it.
	packets = 20_000
	// more is how many packets of a hundred are sent twice: a known extra cost.
	more = 3
)

// repeat measures how well instructions and speed repeat, and whether a known extra
// cost is seen in them: 64-byte datagrams over loopback, some of them twice.
func repeat(w io.Writer) (err error) {
	// As the traffic engine does it: a thread of its own, blocking system calls,
	// and no garbage collector in between.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	own, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, own); err != nil { // to itself
		return err
	}
	fmt.Fprintf(w, "64-byte datagrams over loopback, %d of %d, and with %d %% of them twice:\n", repeats, packets, more)
	// In alternation, after one window that fills the caches.
	plain, costly := &series{}, &series{}
	for i := range 1 + repeats {
		for extra, to := range map[int]*series{0: plain, more: costly} {
			n, perSecond, err := window(fd, extra)
			if err != nil {
				fmt.Fprintf(w, "  instructions are absent: %s\n", oneLine(err))
				return nil
			}
			if i > 0 {
				to.instructions, to.rate = append(to.instructions, n), append(to.rate, perSecond)
			}
		}
	}
	plain.print(w, 0)
	costly.print(w, more)
	return nil
}

// series is what the windows of one kind gave.
type series struct{ instructions, rate []float64 }

func (s *series) print(w io.Writer, extra int) {
	cv := func(xs []float64) float64 { return 100 * stats.StdDev(xs) / stats.Mean(xs) }
	mid := func(xs []float64) float64 { return stats.Sample{Xs: xs}.Quantile(0.5) }
	fmt.Fprintf(w, "  +%d %%: kernel instructions per packet, median %.0f (CV %.2f %%), packets/s, median %.0f (CV %.2f %%)\n", extra,
		mid(s.instructions), cv(s.instructions), mid(s.rate), cv(s.rate))
}

func window(fd, extra int) (instructions, perSecond float64, err error) {
	p := probe.OpenCounters(probe.Roots{Proc: "/proc", Sys: "/sys"})
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.Start(); err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	var buf [64]byte
	for i := range packets {
		times := 1
		if i%100 < extra {
			times = 2
		}
		for range times {
			if _, err := unix.Write(fd, buf[:]); err != nil {
				return 0, 0, err
			}
			if _, err := unix.Read(fd, buf[:]); err != nil {
				return 0, 0, err
			}
		}
	}
	seconds := time.Since(begin).Seconds()
	values, err := p.Stop()
	if err != nil {
		return 0, 0, err
	}
	return values["instructions_kernel"] / packets, packets / seconds, nil
}
