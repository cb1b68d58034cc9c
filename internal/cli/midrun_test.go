package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/workload"
)

// TestFaultsInMidSample: a sample of the native engine that is struck fails
// with its reason within 5 s, the campaign goes on, and what is measured after
// the fault is sound.
func TestFaultsInMidSample(t *testing.T) {
	t.Parallel()
	labtest.Root(t)
	labtest.Tool(t, "ip", "iproute2")
	for name := range (&brokenLab{}).faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBrokenLab(t)
			b.mustFail(nativeCells(), 8, 0, b.faults()[name])
		})
	}
}

// toolCells are published tools in the forms that end, or hang, in ways of
// their own.
func toolCells() []result.Cell {
	size := func(n int) func(*result.Cell) { return func(c *result.Cell) { c.MessageBytes = n } }
	return []result.Cell{
		faultCell("iperf3", "", "tcp", func(c *result.Cell) { c.MessageBytes, c.Streams, c.RateBitsPerSecond = 1472, 1, 50e6 }),
		faultCell("iperf3", "", "udp", func(c *result.Cell) { c.MessageBytes, c.Streams, c.RateBitsPerSecond = 1472, 1, 50e6 }),
		faultCell("netperf", "TCP_STREAM", "", size(1472)), faultCell("netperf", "UDP_STREAM", "", size(1472)),
		faultCell("netperf", "TCP_RR", "", nil), faultCell("netperf", "UDP_RR", "", nil),
		faultCell("sockperf", "ping-pong", "tcp", nil), faultCell("sockperf", "ping-pong", "udp", nil),
		faultCell("sockperf", "throughput", "udp", nil),
		faultCell("redis", "get", "", func(c *result.Cell) { c.MessageBytes, c.Streams = 1000, 1 }),
		faultCell("http", "keep-alive", "", func(c *result.Cell) { c.MessageBytes, c.Streams = 1024, 2 }),
	}
}

// TestToolFaultsInMidSample: a published tool whose server is killed fails its
// sample within 5 s. What a cut path does to a tool is its own affair: most have
// no limit, so that they are killed 5 s after they should have been through.
func TestToolFaultsInMidSample(t *testing.T) {
	t.Parallel()
	labtest.Root(t)
	labtest.Tool(t, "ip", "iproute2")
	for _, w := range []workload.Workload{workload.Iperf3{}, workload.Netperf{}, workload.Sockperf{}, workload.Redis{}, workload.HTTP{}} {
		for _, tool := range w.Spec().Needs {
			labtest.Tool(t, tool.Name, tool.Package)
		}
	}
	const seconds = 4
	t.Run("server killed", func(t *testing.T) {
		t.Parallel()
		b := newBrokenLab(t)
		b.mustFail(toolCells(), seconds, 0, func(e testbed.Ends) func() {
			b.killTool(b.pid(e.Server))
			return nil
		})
	})
	t.Run("server agent killed", func(t *testing.T) {
		t.Parallel()
		b := newBrokenLab(t)
		b.mustFail(toolCells(), seconds, 0, b.faults()["server agent killed"])
	})
	t.Run("link down", func(t *testing.T) {
		t.Parallel()
		b := newBrokenLab(t)
		var cells []result.Cell
		for _, c := range toolCells() {
			switch {
			case c.Workload == "redis": // it counts requests, not seconds: it may take a minute
			case c.Test == "throughput": // one-way: what a cut path swallows is loss, and said to be
			case c.Protocol == "udp" && c.Workload == "iperf3", c.Test == "UDP_STREAM", c.Test == "TCP_RR": // as their like
			default:
				cells = append(cells, c)
			}
		}
		const padding = 4 + 2 // seconds that netperf may wait for its server, and that a busy machine may take
		b.mustFail(cells, seconds, (seconds+padding)*time.Second, b.faults()["link down"])
	})
}

// TestStrangersInMidSample: 10,000 connections of a stranger to the data port
// are refused and counted. The sample is none the worse, or fails because they were
// too many compared with what it measured, and for no other reason.
func TestStrangersInMidSample(t *testing.T) {
	t.Parallel()
	labtest.Root(t)
	const strangers = 10_000
	b := newBrokenLab(t)
	came := make(chan int, len(nativeCells()))
	records := b.run(nativeCells(), 4, func(e testbed.Ends) func() {
		client, server := b.pid(e.Client), b.pid(e.Server)
		network, port, err := b.waitForDataPort(server)
		n := 0
		if err == nil {
			err = netns.Do(netns.NS{Name: "client", Path: fmt.Sprintf("/proc/%d/ns/net", client)}, func() (err error) {
				n, err = fault.Crowd(network, netip.AddrPortFrom(e.ServerAddress, port).String(), strangers)
				return err
			})
		}
		if err != nil || port == 0 {
			t.Errorf("port %d: %v", port, err)
		}
		came <- n
		return nil
	})
	for _, s := range records {
		n := <-came
		refused := s.Metrics["strangers_refused"]
		tooMany := s.Status == result.StatusFailed && strings.Contains(s.Reason, "of what arrived at the data port: above 10 %")
		if tooMany {
			if _, err := fmt.Sscanf(s.Reason, "%g strangers", &refused); err != nil {
				t.Errorf("%s: %v", s.Reason, err)
			}
		}
		t.Logf("%-40s %s %s: %d came, %.0f refused; %.4g bit/s, %.4g transactions/s × %.3g s", s.Cell.Traffic(), s.Status, s.Reason, n, refused,
			s.Metrics["throughput_bits_per_second"], s.Metrics["transactions_per_second"], s.Metrics["latency_mean_seconds"])
		if s.Status != result.StatusOK && !tooMany {
			t.Errorf("%s: %s", s.Cell.Traffic(), s.Reason)
			continue
		}
		if n < 1000 || refused < 0.9*float64(n) || refused > float64(n) {
			t.Errorf("%s: %d strangers came, %.0f were refused", s.Cell.Traffic(), n, refused)
		}
		if tooMany {
			if strings.HasSuffix(s.Cell.Workload, "_stream") && s.Cell.RateBitsPerSecond == 0 {
				t.Errorf("%s: a stream flat out has far more packets than the strangers: %s", s.Cell.Traffic(), s.Reason)
			}
			continue
		}
		if rate := s.Cell.RateBitsPerSecond; rate > 0 && !within(s.Metrics["throughput_bits_per_second"], 0.5*rate, 1.05*rate) {
			t.Errorf("%s: %g bit/s of %g", s.Cell.Traffic(), s.Metrics["throughput_bits_per_second"], rate)
		}
		if v := s.Metrics["transactions_per_second"] * s.Metrics["latency_mean_seconds"]; v != 0 && s.Metrics["transactions_lost"] == 0 && !within(v, 0.8, 1.2) {
			t.Errorf("%s: rate × round trip is %g", s.Cell.Traffic(), v)
		}
	}
}

// waitForDataPort waits until an agent's engine serves: on a busy machine that may be late.
func (b *brokenLab) waitForDataPort(pid int) (network string, port uint16, err error) {
	for begin := time.Now(); time.Since(begin) < 20*time.Second; time.Sleep(5 * time.Millisecond) {
		for _, network = range []string{"tcp", "udp"} {
			if port, err = dataPort(pid, network); port != 0 || err != nil {
				return network, port, err
			}
		}
	}
	return network, 0, nil
}

// within reports whether a value is what a busy machine may make of it.
func within(v, low, high float64) bool { return v >= low && v <= high }

// TestPortsTaken: where all ports are somebody else's a sample fails with that
// reason, native and of tools, and the next one is measured.
func TestPortsTaken(t *testing.T) {
	t.Parallel()
	labtest.Root(t)
	labtest.Tool(t, "iperf3", "iperf3")
	labtest.Tool(t, "sysctl", "procps")
	b := newBrokenLab(t)
	b.at0 = true
	cells := []result.Cell{nativeCells()[0], nativeCells()[2], toolCells()[0]}
	b.mustFail(cells, 1, 0, func(e testbed.Ends) func() {
		ns := netns.NS{Name: "server", Path: fmt.Sprintf("/proc/%d/ns/net", b.pid(e.Server))}
		few := func(ports string) {
			if _, err := b.runner.Run(context.Background(), exec.Cmd{Argv: []string{"sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=" + ports}, NetNS: ns.Path}); err != nil {
				t.Error(err)
			}
		}
		few("40000 40003")
		var taken []io.Closer
		err := netns.Do(ns, func() error {
			for port := 40000; port <= 40003; port++ {
				l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
				if err != nil {
					return err
				}
				p, err := net.ListenPacket("udp", fmt.Sprintf(":%d", port))
				if err != nil {
					return errors.Join(err, l.Close())
				}
				taken = append(taken, l, p)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return func() {
			for _, c := range taken {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
			few("32768 60999")
		}
	})
	for i := range cells {
		if !strings.Contains(b.struck[i].Reason, "address already in use") {
			t.Errorf("%s: %s", cells[i].Traffic(), b.struck[i].Reason)
		}
	}
}
