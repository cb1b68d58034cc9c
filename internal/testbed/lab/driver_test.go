package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/network/serviceproxy"
	"github.com/cnibench/cnibench/internal/result"
)

// buildDriver builds a network on an MTU with one service by XDP, and gives the cell of its
// NodePort between nodes.
func buildDriver(t *testing.T, name string, mtu int) (*Lab, *cluster, result.Cell) {
	t.Helper()
	needLab(t)
	p, err := catalog.FindServiceProxy("xdp")
	if err != nil {
		t.Fatal(err)
	}
	for _, need := range p.Needs {
		labtest.Feature(t, p.Name, need.Probe())
	}
	all := serviceCells(name, p.Name, 1)
	var cell result.Cell
	for i := range all {
		all[i].MTU = mtu
		if all[i].Path == result.PathPodToNodePort && all[i].Placement == result.InterHost {
			cell = all[i]
		}
	}
	l := New(options(newRunner(t), stateDir(t)))
	buildLab(t, l, all)
	return l, l.clusters[keyOf(cell)], cell
}

// returns serves TCP at a pod, and gives back what it gets.
func returns(t *testing.T, ns netns.NS, at netip.AddrPort) {
	t.Helper()
	var l *net.TCPListener
	err := netns.Do(ns, func() (err error) {
		l, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn) // the client says what is missing
			}()
		}
	}()
}

// sendsAndGets sends bytes to an address by TCP, and verifies that the same come back.
func sendsAndGets(t *testing.T, from netns.NS, to netip.AddrPort, size int) {
	t.Helper()
	conn, err := netns.Dial(from, to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	sent := randomBytes(size)
	go func() { _, _ = conn.Write(sent) }()
	got := make([]byte, size)
	if n, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes came back, %v", n, size, err)
	}
}

func randomBytes(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// datagramsReturn sends datagrams of sizes from one socket; those larger than the MTU are
// fragmented, on both ways.
func datagramsReturn(t *testing.T, from netns.NS, to netip.AddrPort, sizes ...int) {
	t.Helper()
	err := netns.Do(from, func() error {
		conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
		if err != nil {
			return err
		}
		defer conn.Close()
		got := make([]byte, 1<<16)
		for _, size := range sizes {
			if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
				return err
			}
			sent := randomBytes(size)
			if _, err := conn.Write(sent); err != nil {
				return err
			}
			if n, err := conn.Read(got); err != nil || !bytes.Equal(got[:n], sent) {
				return fmt.Errorf("a datagram of %d bytes: %d came back, %w", size, n, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestXDP: a NodePort between nodes is translated in the driver of the server's node alone, both
// ways, of streams and of fragmented datagrams, whether a checksum is finished or not.
func TestXDP(t *testing.T) {
	const flannelUDP = "flannel/udp"
	for _, tc := range []struct {
		network  string
		mtu      int
		finished bool // checksums are, when pods send
	}{
		{"bridge", 1500, false}, {"bridge", 1500, true}, {"bridge", 9000, false}, {"calico/direct", 1500, false}, {"calico/ebpf", 1500, false},
		{"flannel/vxlan", 1500, false}, {"calico/vxlan", 1500, false}, {flannelUDP, 1500, false}, {"cilium/native", 1500, false}, {"cilium/vxlan-policy", 9000, false},
	} {
		t.Run(fmt.Sprintf("%s-%d-%t", tc.network, tc.mtu, tc.finished), func(t *testing.T) {
			l, c, cell := buildDriver(t, tc.network, tc.mtu)
			from, to := site{1, 1}, site{2, 1}
			if tc.finished {
				for _, s := range []site{from, to} {
					if err := netns.OffloadsOff(c.ns(s), device); err != nil {
						t.Fatal(err)
					}
				}
			}
			if tc.network == flannelUDP { // so that answers take its tunnel, which has no Ethernet
				flush := exec.Cmd{Argv: []string{"nft", "flush", "ruleset"}, NetNS: c.nodes[0].NS.Path}
				if _, err := newRunner(t).Run(t.Context(), flush); err != nil {
					t.Fatal(err)
				}
			}
			port := measuredPort(result.InterHost)
			at, asked := netip.AddrPortFrom(c.address(to), port), netip.AddrPortFrom(c.nodes[1].Address.Addr(), port)
			returns(t, c.ns(to), at)
			echoPort(t, c.ns(to), at)
			verify := l.WatchPath(t.Context(), cell)
			sendsAndGets(t, c.ns(from), asked, 3<<20)
			datagramsReturn(t, c.ns(from), asked, 1, 1000, 1400, 4000, 20_000, 60_000)
			if err := verify(t.Context()); err != nil {
				t.Error(err)
			}
			counts, err := serviceproxy.NodePortCounters(c.nodes[1])
			t.Logf("%v, %v", counts, err)
			packets := uint64(3<<20/tc.mtu + 6) // at least
			if counts["forward"] < packets || counts["reverse"] < 8 || counts["new"] != 2 || err != nil {
				t.Errorf("%v, %v: want %d packets forward and 2 connections", counts, err, packets)
			}
			if unfinished := counts["unfinished"]; tc.network == "bridge" && (unfinished < 10) != tc.finished {
				t.Errorf("%d checksums were unfinished", unfinished)
			}
			if other, err := serviceproxy.NodePortCounters(c.nodes[0]); err != nil || other["forward"]+other["reverse"] != 0 {
				t.Errorf("the client's node: %v, %v", other, err)
			}
		})
	}
}

// TestXDPTellsChecksumsApart: a finished checksum that looks like an unfinished one is taken for
// what the connection's others are.
func TestXDPTellsChecksumsApart(t *testing.T) {
	_, c, cell := buildDriver(t, "bridge", 1500)
	from := site{1, 1}
	if err := netns.OffloadsOff(c.ns(from), device); err != nil {
		t.Fatal(err)
	}
	port := measuredPort(cell.Placement)
	asked := netip.AddrPortFrom(c.nodes[1].Address.Addr(), port)
	echoPort(t, c.ns(site{2, 1}), netip.AddrPortFrom(c.address(site{2, 1}), port))
	err := netns.Do(c.ns(from), func() error {
		conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(asked))
		if err != nil {
			return err
		}
		defer conn.Close()
		ask := func(payload []byte) error {
			if err := conn.SetDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
				return err
			}
			if _, err := conn.Write(payload); err != nil {
				return err
			}
			_, err := conn.Read(make([]byte, 100))
			return err
		}
		// The datagram's sum with this payload is the complement of its pseudo header's twice.
		const length = 10
		own := conn.LocalAddr().(*net.UDPAddr).AddrPort()
		pseudo := onesSum(words(own.Addr()), words(asked.Addr()), []uint16{17, length})
		rest := onesSum([]uint16{pseudo, pseudo, own.Port(), asked.Port(), length})
		alike := []byte{byte(^rest >> 8), byte(^rest)}
		if err := ask(alike); err == nil {
			t.Error("the first packet of a connection was known for finished: is the payload right?")
		}
		for range 300 {
			if err := ask([]byte{1, 2}); err != nil {
				return err
			}
		}
		return ask(alike)
	})
	if err != nil {
		t.Error(err)
	}
}

func words(a netip.Addr) []uint16 {
	b := a.As4()
	return []uint16{uint16(b[0])<<8 | uint16(b[1]), uint16(b[2])<<8 | uint16(b[3])}
}

// onesSum is the one's complement sum of RFC 1071.
func onesSum(all ...[]uint16) uint16 {
	sum := uint32(0)
	for _, some := range all {
		for _, w := range some {
			sum += uint32(w)
			sum = sum&0xffff + sum>>16
		}
	}
	return uint16(sum)
}

// TestNotByXDP: a sample is found whose packets did not pass the driver's program.
func TestNotByXDP(t *testing.T) {
	labtest.Tool(t, "ip", "iproute2")
	l, c, cell := buildDriver(t, "bridge", 1500)
	port := measuredPort(result.InterHost)
	at, asked := netip.AddrPortFrom(c.address(site{2, 1}), port), netip.AddrPortFrom(c.nodes[1].Address.Addr(), port)
	echoPort(t, c.ns(site{2, 1}), at)
	watch := func(want string, to netip.AddrPort) {
		t.Helper()
		verify := l.WatchPath(t.Context(), cell)
		datagramsReturn(t, c.ns(site{1, 1}), to, 100)
		if err := verify(t.Context()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	watch("", asked)
	watch("led 0 packets of the sample to a backend and changed 0 answers", at) // as a socket's program would
	other := cell
	other.Path = result.PathPodToClusterIP
	if err := l.WatchPath(t.Context(), other)(t.Context()); err != nil {
		t.Errorf("a path without the driver: %v", err)
	}
	detach := exec.Cmd{Argv: []string{"ip", "link", "set", "dev", c.nodes[1].Device, "xdp", "off"}, NetNS: c.nodes[1].NS.Path}
	if _, err := newRunner(t).Run(t.Context(), detach); err != nil {
		t.Fatal(err)
	}
	if err := l.WatchPath(t.Context(), cell)(t.Context()); !errors.Is(err, dataplane.ErrNotNative) {
		t.Errorf("without the program: %v", err)
	}
}

// TestNodePortsLeadToTheirOwnNode: one without a backend there gets no answer, and what the
// service loses in an update is not asked again.
func TestNodePortsLeadToTheirOwnNode(t *testing.T) {
	_, c, cell := buildDriver(t, "bridge", 1500)
	far, near := netip.AddrPortFrom(c.address(site{2, 1}), 8080), netip.AddrPortFrom(c.address(site{1, 2}), 8080)
	answers(t, c.ns(site{2, 1}), far)
	answers(t, c.ns(site{1, 2}), near)
	asked := netip.AddrPortFrom(c.nodes[1].Address.Addr(), measuredPort(cell.Placement))
	var service network.Service
	for _, s := range c.programmedNow {
		if s.NodePort == asked.Port() && s.Protocol == "tcp" {
			service = s
		}
	}
	ask := func() error {
		conn, err := netns.Dial(c.ns(site{1, 1}), asked.String())
		if err == nil {
			_, err = io.ReadAll(conn)
			err = errors.Join(err, conn.Close())
		}
		return err
	}
	for _, tc := range []struct {
		backends []netip.AddrPort
		answered bool
	}{{[]netip.AddrPort{near, far}, true}, {[]netip.AddrPort{near}, false}, {[]netip.AddrPort{far}, true}} {
		service.Endpoints = tc.backends
		if err := c.atSockets[1].UpdateService(service); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if err := ask(); (err == nil) != tc.answered {
				t.Errorf("%v: %v", tc.backends, err)
			}
		}
	}
}

// TestXDPNeedsPlainWire: where the device of a node is not the wire, the reason says so.
func TestXDPNeedsPlainWire(t *testing.T) {
	n, err := catalog.Find("flannel/vxlan")
	if err != nil {
		t.Fatal(err)
	}
	encrypted, aggregated := serviceCells(n.Name, "xdp", 1)[0], serviceCells(n.Name, "xdp", 1)[0]
	encrypted.Encryption, aggregated.Link = result.EncryptionWireGuard, "10-gigabit-lag"
	for want, cell := range map[string]result.Cell{"still encrypted": encrypted, "aggregated": aggregated} {
		if err := New(Options{}).planner.checkRules(n, cell); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
