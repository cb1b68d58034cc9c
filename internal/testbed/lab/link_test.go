package lab

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

// TestShapedLinkCarriesTheClosedForm sends flat out over a 1-gigabit link and
// compares what arrives with the payload's share of what tbf counts, frames
// without preamble, gap and check sum.
func TestShapedLinkCarriesTheClosedForm(t *testing.T) {
	for _, mtu := range []int{1500, 9000} {
		l := New(options(newRunner(t), t.TempDir()))
		cell := cells("host")[0]
		cell.Link, cell.MTU = "1-gigabit", mtu
		buildLab(t, l, []result.Cell{cell})
		c := l.clusters[keyOf(cell)]
		client, server := c.nodes[0].NS, c.nodes[1].NS
		to := c.nodes[1].Address.Addr()
		for name, f := range map[string]struct {
			share float64
			run   func(*testing.T, netns.NS, netns.NS, netip.Addr, int) func() int64
		}{
			"tcp": {float64(mtu-52) / float64(mtu+14), tcpFlow}, // with time stamps
			"udp": {float64(mtu-28) / float64(mtu+14), udpFlow},
		} {
			t.Run(fmt.Sprintf("%s/%d", name, mtu), func(t *testing.T) {
				holdRate(t, f.run(t, client, server, to, mtu), 1e9*f.share)
			})
		}
	}
}

// holdRate wants one window within half a percent of the rate: in others this
// machine may be busy elsewhere. All of them together may not be above it.
func holdRate(t *testing.T, received func() int64, want float64) {
	t.Helper()
	time.Sleep(300 * time.Millisecond) // the queue fills
	first, begin := received(), time.Now()
	nearest := 0.0
	for range 120 {
		before, windowBegin := received(), time.Now()
		time.Sleep(250 * time.Millisecond)
		got := float64(received()-before) * 8 / time.Since(windowBegin).Seconds()
		if math.Abs(got-want) < math.Abs(nearest-want) {
			nearest = got
		}
		if math.Abs(nearest/want-1) < 0.005 {
			break
		}
	}
	t.Logf("%.1f of %.1f Mbit/s", nearest/1e6, want/1e6)
	if math.Abs(nearest/want-1) > 0.005 {
		t.Errorf("%.1f Mbit/s at the nearest, want %.1f", nearest/1e6, want/1e6)
	}
	// What waited in the receiver's socket before the first window is allowed for.
	if got := float64(received()-first-8<<20) * 8 / time.Since(begin).Seconds(); got > want*1.005 {
		t.Errorf("%.1f Mbit/s over all, more than %.1f", got/1e6, want/1e6)
	}
}

// tcpFlow sends until the test ends and gives the count of bytes received.
func tcpFlow(t *testing.T, client, server netns.NS, to netip.Addr, _ int) func() int64 {
	t.Helper()
	var listener *net.TCPListener
	err := netns.Do(server, func() (err error) {
		listener, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(to, 0)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var conn *net.TCPConn
	err = netns.Do(client, func() (err error) {
		conn, err = net.DialTCP("tcp4", nil, listener.Addr().(*net.TCPAddr))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return flow(t, conn, sink, 1<<16)
}

// udpFlow sends the largest datagrams, many to a system call so that the
// sender outruns the link on any machine.
func udpFlow(t *testing.T, client, server netns.NS, to netip.Addr, mtu int) func() int64 {
	t.Helper()
	var sink, conn *net.UDPConn
	err := netns.Do(server, func() (err error) {
		sink, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 0)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = netns.Do(client, func() (err error) {
		conn, err = net.DialUDP("udp4", nil, sink.LocalAddr().(*net.UDPAddr))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	setInt(t, sink, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20)
	setInt(t, conn, unix.SOL_UDP, unix.UDP_SEGMENT, mtu-28)
	return flow(t, conn, sink, (mtu-28)*(1<<15/mtu))
}

func setInt(t *testing.T, conn *net.UDPConn, level, option, value int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var optErr error
	err = raw.Control(func(fd uintptr) { optErr = unix.SetsockoptInt(int(fd), level, option, value) })
	if err := errors.Join(err, optErr); err != nil {
		t.Fatal(err)
	}
}

// onLink builds the nodes of a cell from node to node on a link.
func onLink(t *testing.T, link string) (*cluster, netip.AddrPort) {
	t.Helper()
	l := New(options(newRunner(t), t.TempDir()))
	cell := cells("host")[0]
	cell.Link = link
	buildLab(t, l, []result.Cell{cell})
	c := l.clusters[keyOf(cell)]
	return c, echo(t, c.nodes[1].NS, c.nodes[1].Address.Addr())
}

// TestAggregatedLinkUsesAllWires sends from many ports: each flow keeps to a
// wire, and all of them together use both.
func TestAggregatedLinkUsesAllWires(t *testing.T) {
	c, server := onLink(t, "10-gigabit-lag")
	used := map[string]bool{}
	for range 20 {
		w := map[string]uint64{}
		for _, device := range []string{"eth0-1", "eth0-2"} {
			w[device] = sent(t, c.nodes[0].NS, device)
		}
		talk := dial(t, c.nodes[0].NS, server)
		talk(20)
		carried := 0
		for device, before := range w {
			if sent(t, c.nodes[0].NS, device) >= before+20 {
				used[device] = true
				carried++
			}
		}
		if carried != 1 {
			t.Errorf("a flow was carried whole by %d wires", carried)
		}
	}
	if len(used) != 2 {
		t.Errorf("20 flows used %v", used)
	}
	for _, payload := range []int{1, 1472} {
		if err := ask(c.nodes[0].NS, server, payload); err != nil {
			t.Errorf("%d bytes: %v", payload, err)
		}
	}
}

// sent is how many packets a device has sent.
func sent(t *testing.T, ns netns.NS, device string) uint64 {
	t.Helper()
	var out uint64
	err := netns.Do(ns, func() error {
		b, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			if name, counts, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == device {
				out, err = strconv.ParseUint(strings.Fields(counts)[9], 10, 64)
				return err
			}
		}
		return errors.New("it does not exist")
	})
	if err != nil {
		t.Fatalf("%s in %s: %v", device, ns.Name, err)
	}
	return out
}

// TestFibreDelays: no exchange is faster than the fibre, there and back.
func TestFibreDelays(t *testing.T) {
	const fibre = 49 * time.Microsecond // 10 km
	c, server := onLink(t, "fiber-to-fiber")
	talk := dial(t, c.nodes[0].NS, server)
	talk(2)
	for range 50 {
		begin := time.Now()
		talk(1)
		if took := time.Since(begin); took < 2*fibre {
			t.Errorf("an exchange took %v, less than %v there and back", took, 2*fibre)
		}
	}
}

// TestLocalLink has both ends on one node.
func TestLocalLink(t *testing.T) {
	l := New(options(newRunner(t), t.TempDir()))
	cell := cells("bridge")[1]
	cell.Link = "local"
	buildLab(t, l, []result.Cell{cell})
	n, err := l.planner.find("bridge")
	if err != nil {
		t.Fatal(err)
	}
	reach(t, l, n, cell)
}
