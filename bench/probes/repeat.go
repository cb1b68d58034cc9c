package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/aclements/go-moremath/stats"

	"github.com/cnibench/cnibench/internal/probe"
)

const (
	repeats = 10
	packets = 2000
	// more is how many packets of a hundred are sent twice: a known extra cost.
	more = 3
)

// repeat tells how well instructions and speed repeat, and whether a known extra
// cost is seen in them: 64-byte datagrams over loopback, some of them twice.
func repeat(w io.Writer) (err error) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	client, err := net.Dial("udp", server.LocalAddr().String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	fmt.Fprintf(w, "64-byte datagrams over loopback, %d of %d, and with %d %% of them twice:\n", repeats, packets, more)
	for _, extra := range []int{0, more} {
		var instructions, rate []float64
		for range repeats {
			n, perSecond, err := window(client, server, extra)
			if err != nil {
				fmt.Fprintf(w, "  instructions are absent: %v\n", err)
				return nil
			}
			instructions, rate = append(instructions, n), append(rate, perSecond)
		}
		fmt.Fprintf(w, "  +%d %%: kernel instructions per packet %.0f (CV %.2f %%), packets/s %.0f (CV %.2f %%)\n", extra,
			stats.Mean(instructions), 100*stats.StdDev(instructions)/stats.Mean(instructions), stats.Mean(rate), 100*stats.StdDev(rate)/stats.Mean(rate))
	}
	return nil
}

func window(client net.Conn, server net.PacketConn, extra int) (instructions, perSecond float64, err error) {
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
			if _, err := client.Write(buf[:]); err != nil {
				return 0, 0, err
			}
			if _, _, err := server.ReadFrom(buf[:]); err != nil {
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
