package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
)

// echo answers datagrams to an address in a namespace until the test ends. It
// is bound to the address: a node has several, and would answer by another.
func echo(t *testing.T, ns netns.NS, at netip.Addr) netip.AddrPort {
	t.Helper()
	return echoPort(t, ns, netip.AddrPortFrom(at, 0))
}

func echoPort(t *testing.T, ns netns.NS, at netip.AddrPort) netip.AddrPort {
	t.Helper()
	return echoHeard(t, ns, at, func() {})
}

// echoHeard calls heard for each datagram that it answers.
func echoHeard(t *testing.T, ns netns.NS, at netip.AddrPort, heard func()) netip.AddrPort {
	t.Helper()
	var conn *net.UDPConn
	err := netns.Do(ns, func() (err error) {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			heard()
			if _, err := conn.WriteToUDPAddrPort(buf[:n], from); err != nil {
				return
			}
		}
	}()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// frame is what a test needs to know of one on the wire.
type frame struct {
	src, dst   netip.Addr
	proto      byte
	port       uint16 // destination
	fragmented bool
	bytes      int
	tunnel     string     // "vxlan 4789 4096", "ipip", "udp", "wireguard"; "" for plain packets
	inner      netip.Addr // destination inside the tunnel, where it can be read
}

// watch collects the IP packets that pass a fabric until the test ends.
type watch struct {
	mu     sync.Mutex
	frames []frame
}

func newWatch(t *testing.T, ns netns.NS) *watch {
	t.Helper()
	all := uint16(unix.ETH_P_ALL)
	var fd int
	err := netns.Do(ns, func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(all<<8|all>>8))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	timeout := unix.Timeval{Usec: 100_000}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		t.Fatal(err)
	}
	w, stop, stopped := &watch{}, make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		<-stopped
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	})
	go func() {
		defer close(stopped)
		buf := make([]byte, 1<<17)
		for {
			select {
			case <-stop:
				return
			default:
			}
			n, _, err := unix.Recvfrom(fd, buf, 0)
			if err == nil {
				w.add(buf[:n])
			}
		}
	}()
	return w
}

func (w *watch) add(b []byte) {
	f, ok := readFrame(b)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frames = append(w.frames, f)
}

func (w *watch) seen() []frame {
	time.Sleep(150 * time.Millisecond) // one receive timeout
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]frame(nil), w.frames...)
}

// readFrame reads Ethernet, IPv4 or IPv6, UDP, and what networks put into them.
func readFrame(b []byte) (frame, bool) {
	f := frame{bytes: len(b)}
	var payload []byte
	switch {
	case len(b) >= 14+20 && binary.BigEndian.Uint16(b[12:]) == unix.ETH_P_IP:
		ip := b[14:]
		f.src, _ = netip.AddrFromSlice(ip[12:16])
		f.dst = destination(ip)
		f.proto = ip[9]
		f.fragmented = binary.BigEndian.Uint16(ip[6:])&0x3fff != 0 // more fragments, or an offset
		payload = ip[int(ip[0]&15)*4:]
	case len(b) >= 14+40 && binary.BigEndian.Uint16(b[12:]) == unix.ETH_P_IPV6:
		ip := b[14:]
		f.src, _ = netip.AddrFromSlice(ip[8:24])
		f.dst = destination(ip)
		f.proto = ip[6]
		f.fragmented = f.proto == unix.IPPROTO_FRAGMENT
		payload = ip[40:]
	default:
		return f, false
	}
	if f.proto == unix.IPPROTO_IPIP {
		f.tunnel, f.inner = "ipip", destination(payload)
	}
	if f.proto != unix.IPPROTO_UDP || len(payload) < 8 {
		return f, true
	}
	f.port = binary.BigEndian.Uint16(payload[2:])
	switch inside := payload[8:]; f.port {
	case 8472, 4789, 6784:
		if len(inside) >= 8+14+20 {
			f.tunnel = fmt.Sprintf("vxlan %d %d", f.port, binary.BigEndian.Uint32(inside[4:])>>8)
			f.inner = destination(inside[8+14:])
		}
	case 6081:
		if len(inside) < 8 {
			break
		}
		if options := int(inside[0]&0x3f) * 4; len(inside) >= 8+options+14+20 {
			f.tunnel = fmt.Sprintf("geneve %d", binary.BigEndian.Uint32(inside[4:])>>8)
			if options > 0 { // the first one's class, and its type
				f.tunnel += fmt.Sprintf(" option %04x %02x", binary.BigEndian.Uint16(inside[8:]), inside[10])
			}
			f.inner = destination(inside[8+options+14:])
		}
	case 6783:
		f.tunnel = "sleeve"
		for rest := inside[min(6, len(inside)):]; len(rest) >= 14+14+20; { // each frame behind two names and its length
			size := min(int(binary.BigEndian.Uint16(rest[12:])), len(rest)-14)
			if eth := rest[14 : 14+size]; size >= 34 && binary.BigEndian.Uint16(eth[12:]) == unix.ETH_P_IP {
				f.inner = destination(eth[14:])
			}
			rest = rest[14+size:]
		}
	case 8285:
		f.tunnel, f.inner = "udp", destination(inside)
	case 51820:
		f.tunnel = "wireguard" // what is inside, nobody can read
	}
	return f, true
}

// destination is that of an IP header.
func destination(ip []byte) netip.Addr {
	var a netip.Addr
	switch {
	case len(ip) >= 20 && ip[0]>>4 == 4:
		a, _ = netip.AddrFromSlice(ip[16:20])
	case len(ip) >= 40 && ip[0]>>4 == 6:
		a, _ = netip.AddrFromSlice(ip[24:40])
	}
	return a
}

// tunnels is what each encapsulated network's packets must look like: for VXLAN
// the port and the network identifier.
func tunnels() map[string]string {
	return map[string]string{
		"flannel/vxlan": "vxlan 8472 1", "flannel/vxlan-no-offload": "vxlan 8472 1", "canal": "vxlan 8472 1",
		"calico/vxlan": "vxlan 4789 4096", "calico/vxlan-policy": "vxlan 4789 4096", "docker/overlay": "vxlan 4789 4097",
		"docker/overlay-real": "vxlan 4789 4097",
		"flannel/ipip":        "ipip", "calico/ipip": "ipip", "calico/ipip-policy": "ipip",
		"cilium/vxlan": "vxlan 8472 256", "cilium/vxlan-policy": "vxlan 8472 256", "cilium/geneve": "geneve 256", "cilium/vxlan+netkit": "vxlan 8472 256", // the identity of pods
		"antrea/geneve": "geneve 0", "antrea/geneve-policy": "geneve 0",
		// Node 2's logical switch, OVN's class (ovn-architecture(7)), critical.
		ovnName: "geneve 3 option 0102 80", ovnPolicyName: "geneve 3 option 0102 80",
		kubeOVNName:    "geneve 3 option 0102 80", // the logical switch of all pods
		"weave/fastdp": "vxlan 6784 8193",         // node 2's short name, and node 1's
		"weave/sleeve": "sleeve",
		"flannel/udp":  "udp", "flannel/wireguard": "wireguard",
	}
}

// supported are the cells of a network without those that it says it has not.
func supported(n network.Network) []result.Cell {
	var all []result.Cell
	for _, c := range cells(n.Name) {
		if c.Placement == result.IntraHost || n.NoInterHost == "" {
			all = append(all, c)
		}
	}
	return all
}

// buildLab builds and leaves to the test's end to close; a network that this
// kernel cannot have skips the test.
func buildLab(t *testing.T, l *Lab, all []result.Cell) {
	t.Helper()
	buildLabAnd(t, l, all, nil)
}

// buildLabAnd is buildLab with more cells, and gives the reasons of those that the lab
// does not support.
func buildLabAnd(t *testing.T, l *Lab, all, more []result.Cell) map[result.Cell]string {
	t.Helper()
	labtest.Root(t)
	labtest.Tool(t, "/usr/lib/cni/bridge", "containernetworking-plugins")
	unsupported, err := l.Build(t.Context(), slices.Concat(all, more))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for _, c := range all {
		if reason := unsupported[c]; reason != "" {
			labtest.Feature(t, c.Network, errors.New(reason))
		}
	}
	return unsupported
}

// TestPodsReachEachOther sends datagrams as large as the pods' MTU allows, with DF set,
// over every network, and looks at what is on the wire. On an MTU of 1500, nodes and pods
// of other nodes reach each other too.
func TestPodsReachEachOther(t *testing.T) {
	for _, n := range catalog.List() {
		for _, on := range []struct {
			mtu    int
			family string
		}{{1500, ""}, {9000, ""}, {1500, familyIPv6}} {
			t.Run(fmt.Sprintf("%s/%d%s", n.Name, on.mtu, on.family), func(t *testing.T) {
				t.Parallel()
				l := New(options(newRunner(t), t.TempDir()))
				all := supported(n)
				for i := range all {
					all[i].MTU, all[i].Family = on.mtu, on.family
				}
				if on.family == familyIPv6 && !n.IPv6 {
					hasNoIPv6(t, l, all)
					return
				}
				var hosts []result.Cell
				if on.mtu == 1500 && on.family == "" {
					hosts = hostCells(n.Name)
				}
				reasons := buildLabAnd(t, l, all, hosts)
				for _, cell := range all {
					t.Run(cell.Placement, func(t *testing.T) { reach(t, l, n, cell) })
				}
				rulesAreHit(t, l, n)
				flowsAreHit(t, l, n)
				if hosts != nil {
					t.Run("hosts", func(t *testing.T) { hostsReachPods(t, l, n, hosts, reasons) })
				}
			})
		}
	}
}

func reach(t *testing.T, l *Lab, n network.Network, cell result.Cell) {
	c := l.clusters[keyOf(cell)]
	from, to, err := sites(cell, n.HostNetwork)
	if err != nil {
		t.Fatal(err)
	}
	serverAddress := c.addressOf(to, cell.Family)
	if from == to {
		serverAddress = loopbackOf(cell.Family)
	}
	mtu, err := netns.MTUTo(c.ns(from), serverAddress)
	if err != nil {
		t.Fatal(err)
	}
	want, headers := n.PodMTU(cell.MTU), 28
	if cell.Family == familyIPv6 {
		want, headers = n.PodMTU6(cell.MTU), 48
	}
	if from == to {
		want = 65536 // loopback
	}
	if mtu != want {
		t.Errorf("MTU %d, want %d", mtu, want)
	}
	if from == to && cell.Family != familyIPv6 {
		mtu = 65535 // an IPv4 packet cannot be larger
	}
	w := newWatch(t, l.state.Fabric(c.index))
	server := echo(t, c.ns(to), serverAddress)
	for _, payload := range []int{1, mtu - headers} {
		if err := ask(c.ns(from), server, payload); err != nil {
			t.Errorf("%d bytes: %v", payload, err)
		}
	}
	if err := ask(c.ns(from), server, mtu-headers+1); !errors.Is(err, unix.EMSGSIZE) {
		t.Errorf("a byte more than the MTU: %v, want message too long", err)
	}
	if to.pod > 0 && from.pod > 0 { // and back
		back := echo(t, c.ns(from), c.addressOf(from, cell.Family))
		if err := ask(c.ns(to), back, mtu-headers); err != nil {
			t.Errorf("back: %v", err)
		}
	}
	checkWire(t, n, cell, c.addressOf(to, cell.Family), w.seen())
	checkFragments(t, n, cell, c.ns(site{node: from.node}), c.ns(from), server, 3*mtu)
}

// hasNoIPv6: a network without it says so for every cell.
func hasNoIPv6(t *testing.T, l *Lab, all []result.Cell) {
	t.Helper()
	for _, c := range all {
		if _, _, err := l.planner.support(c); err == nil || err.Error() != c.Network+" has no IPv6" {
			t.Errorf("%v, want %s has no IPv6", err, c.Network)
		}
	}
}

// checkWire holds a network to what it says of its encapsulation.
func checkWire(t *testing.T, n network.Network, cell result.Cell, server netip.Addr, frames []frame) {
	t.Helper()
	plain, tunnelled := 0, 0
	want := tunnels()[n.Name]
	for _, f := range frames {
		switch {
		case f.fragmented:
			t.Errorf("a fragment is on the wire: %+v", f)
		case f.bytes > cell.MTU+14:
			t.Errorf("a frame of %d bytes is on the wire: %+v", f.bytes, f)
		case f.tunnel != "" && f.tunnel == want && f.dst.Is6() == (cell.Family == familyIPv6 && n.Overhead6 > 0) && (f.inner == server || f.tunnel == "wireguard"):
			tunnelled++
		case f.dst == server:
			plain++
		}
	}
	inter := cell.Placement == result.InterHost
	if got := plain > 0; got != (inter && n.Encapsulation == "") {
		t.Errorf("%d packets to %s plain on the wire", plain, server)
	}
	if got := tunnelled > 0; got != (inter && n.Encapsulation != "") {
		t.Errorf("%d packets to %s in a tunnel (%q) on the wire", tunnelled, server, want)
	}
}

// hostCells are the cells of a network with a node at one end or both.
func hostCells(name string) []result.Cell {
	var all []result.Cell
	for _, path := range []string{result.PathHostToHost, result.PathHostToPod, result.PathPodToHost} {
		for _, c := range cells(name) {
			c.Path = path
			all = append(all, c)
		}
	}
	return all
}

// hostsReachPods sends between nodes and pods of other nodes. A cell that cannot be has the
// network's own reason.
func hostsReachPods(t *testing.T, l *Lab, n network.Network, all []result.Cell, reasons map[result.Cell]string) {
	for _, c := range all {
		if reason, not := reasons[c]; not {
			if n.NoInterHost != "" && strings.Contains(reason, n.NoInterHost) {
				continue
			}
			if n.NoHostPaths == "" || !strings.Contains(reason, n.NoHostPaths) {
				t.Errorf("%s %s: %s", c.Path, c.Placement, reason)
			}
			continue
		}
		k := l.clusters[keyOf(c)]
		from, to, err := sites(c, n.HostNetwork)
		if err != nil {
			t.Fatal(err)
		}
		if err := ask(k.ns(from), echo(t, k.ns(to), k.address(to)), 1300); err != nil {
			t.Errorf("%s %s: %v", c.Path, c.Placement, err)
		}
	}
}

func TestEndsHaveLivingAgents(t *testing.T) {
	l := New(options(newRunner(t), t.TempDir()))
	all := cells("flannel/vxlan", "host")
	buildLab(t, l, all)
	for _, c := range all {
		ends, err := l.Ends(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if ends.Client.Agent == ends.Server.Agent || !ends.Client.Agent.Alive() || !ends.Server.Agent.Alive() {
			t.Errorf("%s %s: the ends need an agent each that lives", c.Network, c.Placement)
		}
		if !ends.SharedClock || !ends.ServerAddress.IsValid() {
			t.Errorf("ends %+v", ends)
		}
		if want := c.Network + " node1"; ends.Client.Node != want {
			t.Errorf("client on %q, want %q", ends.Client.Node, want)
		}
	}
	first, err := l.Ends(t.Context(), all[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Client.Agent.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := l.Ends(t.Context(), all[0])
	if err != nil {
		t.Fatal(err)
	}
	if again.Client.Agent == first.Client.Agent || !again.Client.Agent.Alive() {
		t.Error("an agent that died was not started anew")
	}
	if again.Server.Agent != first.Server.Agent {
		t.Error("an agent that lives was started anew")
	}
	env, err := l.Environment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkEnvironment(t, env)
}

func checkEnvironment(t *testing.T, env result.Environment) {
	t.Helper()
	if env.Host.Kernel == "" || env.Host.CPUs == 0 || env.Host.MemoryBytes == 0 || env.Host.OS == "" {
		t.Errorf("host %+v", env.Host)
	}
	if got := env.Networks["flannel/vxlan"]; !strings.Contains(got.Model, "flannel v0.28.0") || got.LeavesOut == "" {
		t.Errorf("flannel/vxlan is %+v", got)
	}
	if !strings.Contains(env.Tools["cni/bridge"], "supports CNI") || env.Tools["cni/host-local"] == "" {
		t.Errorf("tools %v", env.Tools)
	}
	if got := env.Places["flannel/vxlan node1 pod1"]; got.MTUs["eth0"] != 1450 || got.Node != "flannel/vxlan node1" {
		t.Errorf("flannel/vxlan node1 pod1 is %+v", got)
	}
	if got := env.Places["host node2"]; got.MTUs["eth0"] != 1500 {
		t.Errorf("host node2 is %+v", got)
	}
}
