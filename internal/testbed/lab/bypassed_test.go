package lab

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/catalog"
)

// TestFlowtable: the packets of a connection between nodes are taken by the flowtables of both,
// the kernel marks the connection, and a sample without the flowtable is found.
func TestFlowtable(t *testing.T) {
	needLab(t)
	const name = "bridge+flowtable"
	n, err := catalog.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, need := range n.Needs {
		labtest.Feature(t, name, need.Probe())
	}
	l := New(options(newRunner(t), stateDir(t)))
	cell := cells(name)[0]
	cell.Workload = "udp_rr"
	buildLab(t, l, cells(name))
	c := l.clusters[keyOf(cell)]
	from, to := site{1, 1}, site{2, 1}
	// A connected socket is one connection, whatever number of packets it has.
	talk := func() {
		server := echo(t, c.ns(to), c.address(to))
		exchange(t, c.ns(from), server, 200)
	}
	verify := l.WatchPath(t.Context(), cell)
	talk()
	if err := verify(t.Context()); err != nil {
		t.Error(err)
	}
	for _, n := range c.nodes {
		slow, err := c.network.Bypassed(t.Context(), n)
		if err != nil || slow > 100 {
			t.Errorf("%s: %d packets missed the flowtable, %v", n.Name, slow, err)
		}
		known, err := newRunner(t).Run(t.Context(), exec.Cmd{Argv: []string{"cat", "/proc/thread-self/net/nf_conntrack"}, NetNS: n.NS.Path})
		if err == nil && !strings.Contains(string(known.Stdout), "[OFFLOAD]") {
			t.Errorf("%s: no connection is marked:\n%s", n.Name, known.Stdout)
		}
	}
	// A flowtable without the nodes' devices takes no packet.
	for _, n := range c.nodes {
		plain := strings.Join([]string{
			"delete table inet cnb-flowtable", "add table inet cnb-flowtable",
			"add flowtable inet cnb-flowtable fast { hook ingress priority filter ; devices = { lo } ; }",
			"add chain inet cnb-flowtable forward { type filter hook forward priority filter ; }",
			"add rule inet cnb-flowtable forward meta l4proto { tcp, udp } counter flow add @fast", "",
		}, "\n")
		_, err := newRunner(t).Run(t.Context(), exec.Cmd{Argv: []string{"nft", "-f", "-"}, NetNS: n.NS.Path, Stdin: strings.NewReader(plain)})
		if err != nil {
			t.Fatal(err)
		}
	}
	verify = l.WatchPath(t.Context(), cell)
	talk()
	if err := verify(t.Context()); err == nil || !strings.Contains(err.Error(), "not offloaded") {
		t.Errorf("without the devices in the flowtable: %v", err)
	}
}

// exchange sends datagrams from one socket and waits for the answer to each.
func exchange(t *testing.T, from netns.NS, to netip.AddrPort, times int) {
	t.Helper()
	err := netns.Do(from, func() error {
		conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		if err != nil {
			return err
		}
		defer conn.Close()
		buf := make([]byte, 100)
		for range times {
			if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
				return err
			}
			if _, err := conn.Write([]byte("here")); err != nil {
				return err
			}
			if _, err := conn.Read(buf); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
