package lab

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

// ask sends a datagram of the given payload that may not be fragmented and
// waits for its echo.
func ask(from netns.NS, to netip.AddrPort, payload int) error { return askAs(from, to, payload, false) }

// askAs sends a datagram of the given payload, in fragments where it must and may, and
// waits for its echo.
func askAs(from netns.NS, to netip.AddrPort, payload int, fragments bool) error {
	var conn *net.UDPConn
	err := netns.Do(from, func() (err error) {
		conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		return err
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var optErr error
	err = raw.Control(func(fd uintptr) {
		how := unix.IP_PMTUDISC_DO
		if fragments {
			how = unix.IP_PMTUDISC_DONT
		}
		optErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, how)
		if to.Addr().Is6() {
			optErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, how)
		}
	})
	if err := errors.Join(err, optErr); err != nil {
		return err
	}
	want := bytes.Repeat([]byte{0xcb}, payload)
	got := make([]byte, payload+1)
	for try := 0; ; try++ {
		if _, err := conn.Write(want); err != nil {
			return err
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		n, err := conn.Read(got)
		if err == nil && bytes.Equal(got[:n], want) {
			return nil
		}
		if try == 3 {
			return fmt.Errorf("no echo of %d bytes: read %d, %w", payload, n, err)
		}
	}
}

// checkFragments sends a datagram that is longer than the MTU. Later fragments have no
// ports, and a datapath that looks for them there loses the whole.
func checkFragments(t *testing.T, n network.Network, cell result.Cell, node, from netns.NS, to netip.AddrPort, payload int) {
	t.Helper()
	if strings.Contains(n.LeavesOut, "and fragments") {
		return
	}
	if n.UserSpaceLoses == network.AllFragments && dataplane.OVSDatapath(n.InKernel...) == dataplane.OVSUser {
		return // cells with such datagrams are unsupported
	}
	if n.Name == "weave/fastdp" && cell.MTU > 1500 {
		return // in the virtual machine it lost a datagram of 26,748 bytes; the cause is not known
	}
	before := fragFails(t, node)
	err := askAs(from, to, min(payload, 65507), true)
	if err == nil {
		return
	}
	// A bridge puts datagrams together for connection tracking, and takes them apart
	// again for an MTU of 1500 if its own was set as it was made: the kernel keeps the
	// MTU of its stand-in for a route (br_netfilter's fake_rtable) only up to date with
	// later changes. The bridge plugin makes its bridges so.
	if cell.Placement == result.IntraHost && cell.MTU > 1500 && fragFails(t, node) > before {
		t.Logf("the node's bridge could not take a datagram of %d bytes apart: %v", payload, err)
		return
	}
	t.Errorf("a datagram of %d bytes, in fragments: %v", payload, err)
}

// fragFails is how many IPv4 datagrams a namespace could not take apart.
func fragFails(t *testing.T, ns netns.NS) int {
	t.Helper()
	var text []byte
	err := netns.Do(ns, func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/snmp")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "Ip:") {
			continue
		}
		if names == nil {
			names = strings.Fields(line)
			continue
		}
		n, err := strconv.Atoi(strings.Fields(line)[slices.Index(names, "FragFails")])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Fatal("no line of IP in /proc/net/snmp")
	return 0
}
