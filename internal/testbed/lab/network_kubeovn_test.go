package lab

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// arrival is where a datagram came from, and its hop limit at the receiver.
type arrival struct {
	from netip.Addr
	ttl  int
}

func (a arrival) String() string { return fmt.Sprintf("from %s with %d hops left", a.from, a.ttl) }

// arrives sends datagrams between two namespaces until one arrives.
func arrives(t *testing.T, from, to netns.NS, at netip.Addr) arrival {
	t.Helper()
	var in, out *net.UDPConn
	err := netns.Do(to, func() (err error) {
		in, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, 0)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	raw, err := in.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVTTL, 1) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = netns.Do(from, func() (err error) {
		out, err = net.DialUDP("udp4", nil, in.LocalAddr().(*net.UDPAddr))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for range 10 { // the first may be lost while neighbours are asked for
		if _, err := out.Write([]byte("hop")); err != nil {
			t.Fatal(err)
		}
		if err := in.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		control := make([]byte, 100)
		_, n, _, sender, err := in.ReadMsgUDPAddrPort(make([]byte, 10), control)
		if err != nil {
			continue
		}
		messages, err := unix.ParseSocketControlMessage(control[:n])
		if err != nil || len(messages) != 1 || messages[0].Header.Type != unix.IP_TTL {
			t.Fatalf("control messages %v (%v)", messages, err)
		}
		return arrival{sender.Addr().Unmap(), int(messages[0].Data[0])} // the machine is little-endian
	}
	t.Errorf("nothing arrived at %s", at)
	return arrival{}
}

// TestKubeOVNPassesNoRouter: no packet between pods loses a hop, on one node or two. One from
// a node to a pod passes the router, with the node's own address.
func TestKubeOVNPassesNoRouter(t *testing.T) {
	l := New(options(newRunner(t), t.TempDir()))
	all := cells(kubeOVNName)
	hosts := hostCells(kubeOVNName)
	reasons := buildLabAnd(t, l, all, hosts)
	for _, cell := range append(all, hosts...) {
		if cell.Path == result.PathHostToHost {
			continue
		}
		if reason := reasons[cell]; reason != "" {
			t.Errorf("%s %s: %s", cell.Path, cell.Placement, reason)
			continue
		}
		c := l.clusters[keyOf(cell)]
		from, to, err := sites(cell, false)
		if err != nil {
			t.Fatal(err)
		}
		want := arrival{c.address(from), 64}
		if cell.Path != result.PathPodToPod {
			want.ttl-- // the router
		}
		if got := arrives(t, c.ns(from), c.ns(to), c.address(to)); got != want {
			t.Errorf("%s %s: %v, want %v", cell.Path, cell.Placement, got, want)
		}
	}
}

// TestKubeOVNLeavesByTheOwnNode: what a pod sends outside leaves by ovn0 of its own node,
// which masquerades it; the port groups that lead it there have the pods of their nodes.
func TestKubeOVNLeavesByTheOwnNode(t *testing.T) {
	labtest.Tool(t, "ip", "iproute2")
	l := New(options(newRunner(t), t.TempDir()))
	buildLab(t, l, cells(kubeOVNName))
	c := l.ordered[0]
	for i, own := range c.nodes {
		other := c.nodes[1-i]
		outside := netip.AddrFrom4([4]byte{203, 0, 113, byte(own.Index)}) // behind the other node
		for _, set := range []exec.Cmd{
			{Argv: []string{"ip", "address", "add", outside.String(), "dev", "lo"}, NetNS: other.NS.Path},
			{Argv: []string{"ip", "route", "add", outside.String(), "via", other.Address.Addr().String()}, NetNS: own.NS.Path},
		} {
			if _, err := l.options.Runner.Run(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}
		want := arrival{own.Address.Addr(), 62} // the logical router, and the node
		if got := arrives(t, c.pods[i][0].ns, other.NS, outside); got != want {
			t.Errorf("from a pod of %s: %v, want %v", own.Name, got, want)
		}
		if hit(counters(t, own.NS), "-A OVN-POSTROUTING -s 10.244.0.0/16 ! -d 10.244.0.0/16 -j OVN-MASQUERADE") == 0 {
			t.Errorf("%s masqueraded nothing", own.Name)
		}
		if ports := kubeOVNGroup(t, c, own); len(ports) != len(c.pods[i]) {
			t.Errorf("the group of %s has the ports %v, want %d", own.Name, ports, len(c.pods[i]))
		}
	}
	rt := cniRuntime(l.options.Runner, l.state, l.held.Path)
	if _, err := rt.Del(t.Context(), attachment(c.conflists[0], c.pods[0][0].ns, c.nodes[0].NS)); err != nil {
		t.Fatal(err)
	}
	if ports := kubeOVNGroup(t, c, c.nodes[0]); len(ports) != len(c.pods[0])-1 {
		t.Errorf("without a pod, the group has the ports %v", ports)
	}
}

// kubeOVNGroup is the ports of the port group of a node's pods.
func kubeOVNGroup(t *testing.T, c *cluster, n network.Node) []string {
	t.Helper()
	return strings.Fields(nbctl(t, c.nodes[0], "--bare", "--columns=ports", "find", "Port_Group", "name=ovn.default."+n.Name))
}
