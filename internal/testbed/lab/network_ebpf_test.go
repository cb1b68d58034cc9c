package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// ebpfNetworks are those whose nodes forward by eBPF programs.
func ebpfNetworks() []network.Network {
	var all []network.Network
	for _, n := range catalog.List() {
		if strings.HasPrefix(n.Name, "cilium/") || n.Name == "calico/ebpf" {
			all = append(all, n)
		}
	}
	return all
}

// counted gives what a node's programs count while f runs.
func counted(t *testing.T, n network.Node, f func()) map[string]uint64 {
	t.Helper()
	read := func() map[string]uint64 {
		counts, err := dataplane.EBPFCounters(n.NS, n.Device)
		if err != nil {
			t.Fatal(err)
		}
		return counts
	}
	before := read()
	f()
	after := read()
	for name := range after {
		after[name] -= before[name]
	}
	return after
}

// TestEBPF: traffic is carried by each network's programs, which drop what a pod may not
// send.
func TestEBPF(t *testing.T) {
	for _, n := range ebpfNetworks() {
		t.Run(n.Name, func(t *testing.T) {
			t.Parallel()
			l := New(options(newRunner(t), t.TempDir()))
			all := cells(n.Name)
			buildLab(t, l, all)
			c := l.clusters[keyOf(all[0])]
			withoutIPv6(t, c)
			t.Run("programs carry the traffic", func(t *testing.T) { programsCarry(t, n, c, all) })
			t.Run("forged sources are dropped", func(t *testing.T) { forgedAreDropped(t, c, all) })
			if n.Policy {
				t.Run("the policy denies", func(t *testing.T) { ciliumPolicyDenies(t, c, all) })
			}
		})
	}
}

// programsCarry checks the way that a network's packets take: what they are
// redirected by, and that neither the stack nor another way carries any.
func programsCarry(t *testing.T, n network.Network, c *cluster, all []result.Cell) {
	const packets = 20
	for _, cell := range all {
		from, to, err := sites(cell, false)
		if err != nil {
			t.Fatal(err)
		}
		server := echo(t, c.ns(to), c.address(to))
		talk := dial(t, c.ns(from), server)
		talk(2) // neighbours are found, the connection is known
		var far map[string]uint64
		near := counted(t, c.nodes[0], func() {
			far = counted(t, c.nodes[1], func() { talk(packets) })
		})
		t.Logf("%s: near %v, far %v", cell.Placement, near, far)
		checkCounts(t, n, cell, near, far, packets)
	}
}

// withoutIPv6 silences what a new device asks the wire for on its own, now and
// then in its first seconds. Programs for IPv4 drop and count that.
func withoutIPv6(t *testing.T, c *cluster) {
	t.Helper()
	off := netns.Setting{Path: "net/ipv6/conf/all/disable_ipv6", Value: "1"}
	if _, err := os.Stat("/proc/sys/" + off.Path); err != nil {
		return // the kernel has none
	}
	for i, n := range c.nodes {
		all := []netns.NS{n.NS}
		for _, p := range c.pods[i] {
			all = append(all, p.ns)
		}
		for _, ns := range all {
			if err := netns.SetSysctls(ns, off); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// dial gives a func that exchanges datagrams with an echo, on one socket.
func dial(t *testing.T, from netns.NS, to netip.AddrPort) func(exchanges int) {
	t.Helper()
	var conn *net.UDPConn
	err := netns.Do(from, func() (err error) {
		conn, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return func(exchanges int) {
		t.Helper()
		for range exchanges {
			if err := conn.SetDeadline(time.Now().Add(3 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write([]byte("cnb")); err != nil {
				t.Fatal(err)
			}
			if n, err := conn.Read(make([]byte, 10)); err != nil || n != 3 {
				t.Fatalf("echo of %d bytes: %v", n, err)
			}
		}
	}
}

func checkCounts(t *testing.T, n network.Network, cell result.Cell, near, far map[string]uint64, packets uint64) {
	t.Helper()
	atLeast := func(counts map[string]uint64, want uint64, names ...string) {
		t.Helper()
		for _, name := range names {
			if counts[name] < want {
				t.Errorf("%s: %q was counted %d times, want %d", cell.Placement, name, counts[name], want)
			}
		}
	}
	if cell.Placement == result.IntraHost {
		into := "to peer"
		if n.Attached != nil { // a netkit's program runs where the pod sends
			into = "to veth"
		}
		atLeast(near, 2*packets, "from pod", into)
	} else {
		out, in := "to neighbour", "from wire"
		if n.Encapsulation != "" {
			out, in = "to tunnel", "from tunnel"
		}
		atLeast(near, packets, "from pod", out, in, "to peer")
		atLeast(far, packets, "from pod", out, in, "to peer")
	}
	for name, count := range near {
		if (strings.HasPrefix(name, "dropped") || name == "connection new") && count > 0 {
			t.Errorf("%s: %q was counted %d times", cell.Placement, name, count)
		}
	}
	if got := near["connection found"]; (got > 0) != tracks(n) {
		t.Errorf("%s: %d packets of known connections", cell.Placement, got)
	}
}

// tracks reports whether a network's programs have a connection table.
func tracks(n network.Network) bool {
	return n.Name == "calico/ebpf" || strings.HasSuffix(n.Name, "-policy")
}

// forgedAreDropped: a pod cannot send with an address that is not its own.
func forgedAreDropped(t *testing.T, c *cluster, all []result.Cell) {
	for _, cell := range all {
		from, to, err := sites(cell, false)
		if err != nil {
			t.Fatal(err)
		}
		received := listen(t, c.ns(to), c.address(to), 7777)
		forged := c.address(from).Next().Next().Next()
		counts := counted(t, c.nodes[0], func() {
			for range 3 {
				sendRaw(t, c.ns(from), forged, c.address(to), 7777)
			}
			sendRaw(t, c.ns(from), c.address(from), c.address(to), 7777)
		})
		if counts["dropped: spoofed"] != 3 {
			t.Errorf("%s: 3 forged packets, %d dropped", cell.Placement, counts["dropped: spoofed"])
		}
		if got := <-received; got != c.address(from) {
			t.Errorf("%s: a packet from %s came through, or the pod's own did not", cell.Placement, got)
		}
	}
}

// listen gives the source of the first datagram to an address.
func listen(t *testing.T, ns netns.NS, at netip.Addr, port int) <-chan netip.Addr {
	t.Helper()
	var fd int
	err := netns.Do(ns, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: at.As4()})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 3}); err != nil {
		t.Fatal(err)
	}
	first := make(chan netip.Addr, 1)
	go func() {
		defer unix.Close(fd)
		var from netip.Addr
		_, sa, err := unix.Recvfrom(fd, make([]byte, 100), 0)
		for err == unix.EINTR { // a signal ends a call with a timeout
			_, sa, err = unix.Recvfrom(fd, make([]byte, 100), 0)
		}
		if v4, ok := sa.(*unix.SockaddrInet4); ok && err == nil {
			from = netip.AddrFrom4(v4.Addr)
		}
		first <- from
	}()
	return first
}

// sendRaw sends an empty UDP datagram with any source.
func sendRaw(t *testing.T, ns netns.NS, src, dst netip.Addr, port uint16) {
	t.Helper()
	b := make([]byte, 28)
	b[0], b[8], b[9] = 0x45, 64, unix.IPPROTO_UDP // the kernel fills in length and checksum
	copy(b[12:], src.AsSlice())
	copy(b[16:], dst.AsSlice())
	binary.BigEndian.PutUint16(b[20:], 7776)
	binary.BigEndian.PutUint16(b[22:], port)
	binary.BigEndian.PutUint16(b[24:], 8)
	err := netns.Do(ns, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, b, 0, &unix.SockaddrInet4{Addr: dst.As4()})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ciliumPolicyDenies: a port that is not allowed, and who is neither pod nor node.
func ciliumPolicyDenies(t *testing.T, c *cluster, all []result.Cell) {
	first, _ := network.PolicyPorts()
	for _, cell := range all {
		from, to, err := sites(cell, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := ask(c.ns(from), echoPort(t, c.ns(to), netip.AddrPortFrom(c.address(to), first)), 100); err != nil {
			t.Errorf("%s: port %d: %v", cell.Placement, first, err)
		}
		for _, denied := range []netip.AddrPort{
			netip.AddrPortFrom(c.address(to), first-1), netip.MustParseAddrPort("203.0.113.1:7777"),
		} {
			counts := counted(t, c.nodes[0], func() { sendRaw(t, c.ns(from), c.address(from), denied.Addr(), denied.Port()) })
			if counts["dropped: denied"] != 1 || counts["to peer"]+counts["to neighbour"]+counts["to tunnel"] > 0 {
				t.Errorf("%s: to %s: %v", cell.Placement, denied, counts)
			}
		}
	}
	// The pod's own policy is applied to what comes from the other node.
	counts := counted(t, c.nodes[1], func() { sendRaw(t, c.nodes[0].NS, c.nodes[0].Address.Addr(), c.pods[1][0].address, first-1) })
	if counts["dropped: denied"] != 1 || counts["to peer"] > 0 {
		t.Errorf("from the other node: %v", counts)
	}
}

// TestEBPFGoesWithTheLab: programs and maps end with it, and on one network many pods come
// up.
func TestEBPFGoesWithTheLab(t *testing.T) {
	for _, n := range ebpfNetworks() {
		pods := 4 // on a node
		if n.Name == "cilium/vxlan" {
			pods = 25
		}
		t.Run(n.Name, func(t *testing.T) {
			needLab(t)
			o := options(newRunner(t), stateDir(t))
			l := New(o)
			labtest.Feature(t, n.Name, l.planner.check(n, "unshaped", DefaultProfile, 1500))
			spec := state.Spec{Network: n.Name, Link: "unshaped", Profile: DefaultProfile, MTU: 1500, Pods: []int{pods, pods}}
			var programs []ebpf.ProgramID
			var maps []ebpf.MapID
			leavesNothing(t, o.Dir, func() string {
				begin := time.Now()
				if err := l.build(t.Context(), []state.Spec{spec}); err != nil {
					t.Fatal(err)
				}
				t.Logf("%d pods in %v", 2*pods, time.Since(begin))
				id := l.ID()
				for _, node := range l.ordered[0].nodes {
					p, m, err := dataplane.EBPFObjects(node.NS)
					if err != nil {
						t.Error(err)
					}
					programs, maps = append(programs, p...), append(maps, m...)
				}
				if len(programs) < 2*pods || len(maps) == 0 {
					t.Errorf("%d programs, %d maps", len(programs), len(maps))
				}
				if err := l.Close(t.Context()); err != nil {
					t.Error(err)
				}
				return id
			})
			if err := goneEBPF(programs, maps); err != nil {
				t.Error(err)
			}
		})
	}
}

// goneEBPF waits until the kernel has let go of all, which takes it a moment.
func goneEBPF(programs []ebpf.ProgramID, maps []ebpf.MapID) error {
	left := func() error {
		for _, id := range programs {
			if p, err := ebpf.NewProgramFromID(id); !errors.Is(err, unix.ENOENT) {
				return errors.Join(fmt.Errorf("program %d is left", id), err, p.Close())
			}
		}
		for _, id := range maps {
			if m, err := ebpf.NewMapFromID(id); !errors.Is(err, unix.ENOENT) {
				return errors.Join(fmt.Errorf("map %d is left", id), err, m.Close())
			}
		}
		return nil
	}
	for range 100 {
		if left() == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return left()
}
