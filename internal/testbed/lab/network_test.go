package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/labtest/onwire"
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
	if n.Published != nil {
		reachPublished(t, l, c, cell)
		return
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
	w := onwire.NewWatch(t, l.state.Fabric(c.index))
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
	checkWire(t, n, cell, c.addressOf(to, cell.Family), w.Seen())
	checkFragments(t, n, cell, c.ns(site{node: from.node}), c.ns(from), server, 3*mtu)
}

// reachPublished: a pod is reached by the ports that its node publishes for it, from pods and
// nodes, and by no other port. Datagrams may be longer than a packet on the wire.
func reachPublished(t *testing.T, l *Lab, c *cluster, cell result.Cell) {
	from, to, err := sites(cell, false)
	if err != nil {
		t.Fatal(err)
	}
	target, port := c.target(cell, from, to)
	if mtu, err := netns.MTUTo(c.ns(from), target); err != nil || from.pod > 0 && mtu != c.network.FixedMTU {
		t.Errorf("MTU %d (%v), want %d", mtu, err, c.network.FixedMTU)
	}
	w := onwire.NewWatch(t, l.state.Fabric(c.index))
	for _, port := range []uint16{port, port + 1} {
		echoPort(t, c.ns(to), netip.AddrPortFrom(c.address(to), port))
		for _, payload := range []int{1, 1400, 20_000} {
			if err := askAs(c.ns(from), netip.AddrPortFrom(target, port), payload, true); err != nil {
				t.Errorf("port %d, %d bytes: %v", port, payload, err)
			}
		}
	}
	private := echoPort(t, c.ns(to), netip.AddrPortFrom(c.address(to), port+100))
	if err := ask(c.ns(from), netip.AddrPortFrom(target, private.Port()), 1); err == nil {
		t.Errorf("port %d is reached, which is not published", private.Port())
	}
	onWire := slices.ContainsFunc(w.Seen(), func(f onwire.Frame) bool { return f.Destination == target && f.Tunnel == "" })
	if inter := cell.Placement == result.InterHost; onWire != inter {
		t.Errorf("packets to %s on the wire: %v, want %v", target, onWire, inter)
	}
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
func checkWire(t *testing.T, n network.Network, cell result.Cell, server netip.Addr, frames []onwire.Frame) {
	t.Helper()
	plain, tunnelled := 0, 0
	want := tunnels()[n.Name]
	for _, f := range frames {
		switch {
		case f.Fragmented:
			t.Errorf("a fragment is on the wire: %+v", f)
		case f.Bytes > cell.MTU+14:
			t.Errorf("a frame of %d bytes is on the wire: %+v", f.Bytes, f)
		case f.Tunnel != "" && f.Tunnel == want && f.Destination.Is6() == (cell.Family == familyIPv6 && n.Overhead6 > 0) && (f.Inner == server || f.Tunnel == "wireguard"):
			tunnelled++
		case f.Destination == server:
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
		if n.Published != nil && to.pod > 0 {
			reachPublished(t, l, k, c)
			continue
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
