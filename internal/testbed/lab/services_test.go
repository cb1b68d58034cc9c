package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/network/serviceproxy"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// serviceCells are the cells to services of a network: both paths, both
// placements.
func serviceCells(name, proxy string, services int) []result.Cell {
	var all []result.Cell
	for _, c := range cells(name) {
		for _, path := range []string{result.PathPodToClusterIP, result.PathPodToNodePort} {
			c.Path, c.ServiceProxy, c.Services = path, proxy, services
			all = append(all, c)
		}
	}
	return all
}

// eachProxy runs a test for each service proxy that this kernel has, but an ingress, which
// takes HTTP alone (TestIngress).
func eachProxy(t *testing.T, f func(t *testing.T, p network.ServiceProxy)) {
	for _, p := range catalog.ServiceProxies() {
		if p.Requests != nil {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			needLab(t)
			for _, need := range p.Needs {
				labtest.Feature(t, p.Name, need.Probe())
			}
			f(t, p)
		})
	}
}

// answers serves at a place by TCP and UDP, with the place's own name, until
// the test ends.
func answers(t *testing.T, ns netns.NS, at netip.AddrPort) {
	t.Helper()
	var tcp *net.TCPListener
	var udp *net.UDPConn
	err := netns.Do(ns, func() (err error) {
		if tcp, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at)); err != nil {
			return err
		}
		udp, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close(); udp.Close() })
	go func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(ns.Name)) // the client says what is missing
			conn.Close()
		}
	}()
	go func() {
		buf := make([]byte, 100)
		for {
			_, from, err := udp.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			_, _ = udp.WriteToUDPAddrPort([]byte(ns.Name), from)
		}
	}()
}

// asker asks an address a number of times, each time by another socket, and
// prints who answered and which address the socket has for it.
func asker(protocol, address, times string) int {
	n, err := strconv.Atoi(times)
	for range n {
		var line string
		if line, err = askOnce(protocol, address); err != nil {
			break
		}
		fmt.Println(line)
	}
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

func askOnce(protocol, address string) (string, error) {
	deadline := time.Now().Add(3 * time.Second)
	if protocol == "tcp" {
		conn, err := net.DialTimeout("tcp4", address, 3*time.Second)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
		who, err := io.ReadAll(conn)
		return string(who) + " " + conn.RemoteAddr().String(), err
	}
	to, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		return "", err
	}
	conn, err := net.ListenUDP("udp4", nil) // not connected
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := conn.WriteTo([]byte("who"), to); err != nil {
		return "", err
	}
	buf := make([]byte, 100)
	got, from, err := conn.ReadFrom(buf)
	if err != nil {
		return "", err
	}
	return string(buf[:got]) + " " + from.String(), nil
}

// whoAnswers asks from a place and counts the answers of each; every answer
// must seem to come from the address that was asked.
func whoAnswers(t *testing.T, c *cluster, from site, protocol string, to netip.AddrPort, times int) map[string]int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := newRunner(t).Run(t.Context(), exec.Cmd{
		Argv:  []string{self, "asker", protocol, to.String(), strconv.Itoa(times)},
		NetNS: c.ns(from).Path, Cgroup: c.cgroup(from.node),
	})
	if err != nil {
		t.Errorf("%s to %s: %v", protocol, to, err)
	}
	who := map[string]int{}
	for line := range strings.Lines(string(out.Stdout)) {
		name, seen, _ := strings.Cut(strings.TrimSpace(line), " ")
		who[name]++
		if seen != to.String() {
			t.Errorf("%s to %s: the answer is from %s", protocol, to, seen)
		}
	}
	return who
}

// buildServices builds one cluster with services and pods on each node.
func buildServices(t *testing.T, name, proxy string, services int, pods ...int) (*Lab, *cluster) {
	t.Helper()
	l := New(options(newRunner(t), stateDir(t)))
	n, err := catalog.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range serviceCells(name, proxy, services) {
		labtest.Feature(t, name, l.planner.check(n, cell.Link, cell.Profile, cell.MTU))
		if err := l.planner.checkRules(n, cell); err != nil {
			labtest.Feature(t, name, err)
		}
	}
	spec := state.Spec{
		Network: name, Link: "unshaped", Profile: DefaultProfile, MTU: 1500,
		Services: services, ServiceProxy: proxy, Pods: pods,
	}
	if err := l.build(t.Context(), []state.Spec{spec}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return l, l.ordered[0]
}

// TestAServiceReachesAllItsBackends: by its address and by its port at a node,
// by TCP and UDP, from a pod that is a backend itself.
func TestAServiceReachesAllItsBackends(t *testing.T) {
	eachProxy(t, func(t *testing.T, p network.ServiceProxy) {
		names := []string{"flannel/host-gw"}
		switch {
		case p.Family != "":
			names = familyOf(p)
		case p.Name == "ipvs":
			names = append(names, "kube-router") // whose own services are by ipvs
		}
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				reachesBackends(t, name, p)
			})
		}
	})
}

// familyOf are the networks that alone have a proxy, without those that differ in
// policy.
func familyOf(p network.ServiceProxy) []string {
	var all []string
	for _, n := range catalog.List() {
		if strings.HasPrefix(n.Name, p.Family) && !n.Policy && (p.Refuses == nil || p.Refuses(n, result.Cell{}) == "") {
			all = append(all, n.Name)
		}
	}
	return all
}

func reachesBackends(t *testing.T, name string, p network.ServiceProxy) {
	_, c := buildServices(t, name, p.Name, 3, 2, 2) // with hairpin: a pod reaches itself
	var backends []site
	for node := range c.nodes {
		for pod := range c.pods[node] {
			backends = append(backends, site{node + 1, pod + 1})
		}
	}
	names := addEcho(t, c, backends...)
	address, port := echoAddress(), uint16(echoPortOfNodes)
	times := 100 // one of four backends is left out by chance once in 10^12
	if p.Name == "ipvs" {
		times = 12 // it takes them in turn
	}
	for _, to := range []netip.AddrPort{
		netip.AddrPortFrom(address, 80), netip.AddrPortFrom(c.nodes[0].Address.Addr(), port), netip.AddrPortFrom(c.nodes[1].Address.Addr(), port),
	} {
		for _, protocol := range []string{"tcp", "udp"} {
			who := whoAnswers(t, c, site{1, 1}, protocol, to, times)
			t.Logf("%s to %s: %v", protocol, to, who)
			for i, name := range names {
				// XDP has no backends on other nodes than the one whose port is asked.
				away := p.Passed != nil && to.Addr() == c.nodes[1].Address.Addr() && backends[i].node == 1
				if (who[name] == 0) != away {
					t.Errorf("%s to %s: %s answered %d times", protocol, to, name, who[name])
				}
			}
		}
	}
	servicesWereHit(t, c, p, uint64(2*times))
}

// echoPortOfNodes is the port of the service default/echo on nodes, echoAddress its
// own address, whose port is 80.
const echoPortOfNodes = 30500

func echoAddress() netip.Addr { return netip.MustParseAddr("10.96.200.1") }

// addEcho programs the service default/echo in addition to the cluster's own, by TCP and
// UDP, with these pods behind it, and gives what they answer with.
func addEcho(t *testing.T, c *cluster, backends ...site) (names []string) {
	t.Helper()
	services := c.services()
	for _, protocol := range []string{"tcp", "udp"} {
		s := network.Service{
			Name: "default/echo", PortName: protocol, Protocol: protocol, Address: netip.AddrPortFrom(echoAddress(), 80), NodePort: echoPortOfNodes,
		}
		for _, b := range backends {
			s.Endpoints = append(s.Endpoints, netip.AddrPortFrom(c.address(b), 8080))
		}
		services = append(services, s)
	}
	for _, b := range backends {
		answers(t, c.ns(b), netip.AddrPortFrom(c.address(b), 8080))
		names = append(names, c.ns(b).Name)
	}
	if err := c.syncProxy(t.Context(), services); err != nil {
		t.Fatal(err)
	}
	return names
}

// servicesWereHit holds a proxy to the way that connections take on node 1.
func servicesWereHit(t *testing.T, c *cluster, p network.ServiceProxy, least uint64) {
	t.Helper()
	if p.AtSockets != nil {
		counts, err := serviceproxy.Counters(c.cgroups[0].Name())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %v", p.Name, counts)
		if counts["forward"] < least || counts["reverse"] < least {
			t.Errorf("%v, want %d forward and reverse", counts, least)
		}
		return
	}
	if p.Name == "antrea" {
		const port, chosen, virtual = "reg4=0x90000/0xf0000,tp_dst=30500", "nat(dst=10.244.2.", "nw_dst=169.254.0.252"
		near, far := c.nodes[0], c.nodes[1]
		wereHit(t, near, [][]string{{"ServiceLB", "tcp,", "nw_dst=10.96.200.1,tp_dst=80"}, {"ServiceLB", "udp,", port}, {"EndpointDNAT", "tcp,", chosen},
			{"EndpointDNAT", "udp,", "nat(dst=10.244.1."}, {"SNAT", "reg0=0x3/0xf", "nat(src=10.244.1.1)"}, {"Output", "actions=IN_PORT"}})
		away := []string{"SNAT", "ct_mark=0x40/0x40", "nat(src=169.254.0.253)"} // by the node's routes
		if c.network.Encapsulation != "" {
			away = []string{"SNAT", "ct_mark=0x20/0x20", "nat(src=10.244.2.1)"}
		}
		wereHit(t, far, [][]string{{"ServiceMark", virtual}, {"ServiceLB", "tcp,", port}, {"EndpointDNAT", "udp,", chosen}, away})
		return
	}
	if p.Name == "ovn" {
		ovnBalancersWereHit(t, c, int(least))
		return
	}
	if p.Name == "nftables" { // kube-proxy's rules have no counters
		out, err := newRunner(t).Run(t.Context(), exec.Cmd{Argv: []string{"nft", "list", "table", "ip", "kube-proxy"}, NetNS: c.nodes[0].NS.Path})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"numgen random mod 4 vmap { 0 : goto endpoint-", "ip daddr . meta l4proto . th dport vmap @service-ips",
			"10.96.200.1 . tcp . 80 : goto service-", "udp . 30500 : goto external-"} {
			if !strings.Contains(string(out.Stdout), want) {
				t.Errorf("no %q in the table:\n%s", want, out.Stdout)
			}
		}
		return
	}
	all := counters(t, c.nodes[0].NS)
	wants := map[string][]string{
		"iptables": {"-A PREROUTING .*-j KUBE-SERVICES", "-A KUBE-SERVICES -d 10.96.200.1/32 -p tcp .*-j KUBE-SVC-", "-A KUBE-SVC-.*--probability 0.25.* -j KUBE-SEP-",
			"-A KUBE-SVC-.*--probability 0.5.* -j KUBE-SEP-", "-A KUBE-SEP-.*-j DNAT --to-destination 10.244.2.", "-A KUBE-SERVICES .*-j KUBE-NODEPORTS",
			"-A KUBE-NODEPORTS -p udp .*--dport 30500 -j KUBE-EXT-", "-A KUBE-EXT-.*-j KUBE-MARK-MASQ", "-A KUBE-POSTROUTING .*-j MASQUERADE"},
		"ipvs": {"-A PREROUTING .*-j KUBE-SERVICES", "-A KUBE-SERVICES .*KUBE-CLUSTER-IP dst,dst -j ACCEPT", "-A KUBE-SERVICES .*-j KUBE-NODE-PORT",
			"-A KUBE-NODE-PORT .*KUBE-NODE-PORT-TCP dst -j KUBE-MARK-MASQ", "-A KUBE-POSTROUTING .*-j MASQUERADE"},
	}
	for _, want := range wants[p.Name] {
		if n := hit(all, want); n == 0 {
			t.Errorf("rule %q was not hit, or does not exist", want)
		}
	}
}

// hit is how often the rules that a pattern fits were hit, of all together.
func hit(rules map[string]uint64, pattern string) (packets uint64) {
	re := regexp.MustCompile("^" + pattern)
	for rule, n := range rules {
		if re.MatchString(rule) {
			packets += n
		}
	}
	return packets
}

// TestEveryNetworkHasServices sends the native engine's traffic through the services of
// every network that has some, as a campaign does, and reaches both backends of one that
// has a pod of each node. The proxies take turns, so that each network has one of them.
func TestEveryNetworkHasServices(t *testing.T) {
	turn := 0
	all := catalog.List()
	eachProxy(t, func(t *testing.T, p network.ServiceProxy) {
		if p.Family != "" {
			haveServices(t, p, all, familyOf(p))
			return
		}
		var some []network.Network
		for i, n := range all {
			if i%proxiesForAll == turn%proxiesForAll || slices.Contains(everyProxy(), n.Name) {
				some = append(some, n)
			}
		}
		turn++
		haveServices(t, p, some, everyProxy())
	})
}

// TestEveryNetworkHasServicesByEveryProxy does it for every pair of them.
func TestEveryNetworkHasServicesByEveryProxy(t *testing.T) {
	labtest.Long(t)
	eachProxy(t, func(t *testing.T, p network.ServiceProxy) {
		if p.Family == "" {
			haveServices(t, p, catalog.List(), everyProxy())
		}
	})
}

// proxiesForAll is how many proxies, which any network can have, take turns.
const proxiesForAll = 3

// everyProxy are networks that have services by every proxy for all networks.
func everyProxy() []string { return []string{"bridge", "calico/direct"} }

// haveServices builds networks with services by a proxy and sends traffic through them.
// Those that are wanted must have some.
func haveServices(t *testing.T, p network.ServiceProxy, networks []network.Network, want []string) {
	t.Helper()
	l := New(options(newRunner(t), stateDir(t)))
	var all []result.Cell
	for _, n := range networks {
		all = append(all, serviceCells(n.Name, p.Name, 10)...)
	}
	unsupported, err := l.Build(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	with := map[string][]result.Cell{}
	for _, cell := range all {
		n, err := catalog.Find(cell.Network)
		if err != nil {
			t.Fatal(err)
		}
		if reason := unsupported[cell]; reason != "" {
			why := p.Family != "" && strings.Contains(reason, "they are of the networks "+p.Family) || n.NoServices != "" && strings.Contains(reason, n.NoServices) || n.NoInterHost != "" && strings.Contains(reason, n.NoInterHost)
			if p.Refuses != nil {
				refusal := p.Refuses(n, cell)
				why = why || refusal != "" && strings.Contains(reason, refusal)
			}
			if !why && !n.HostNetwork && !strings.HasPrefix(reason, "kernel has no ") && !strings.HasPrefix(reason, "this machine has no ") {
				t.Errorf("%s %s: %s", cell.Network, cell.Path, reason)
			}
			continue
		}
		with[cell.Network] = append(with[cell.Network], cell)
	}
	t.Run("networks", func(t *testing.T) { // the lab stays until all of them are through
		for name, some := range with {
			t.Run(name, func(t *testing.T) {
				t.Parallel() // each has a cluster of its own, and starting agents is most of it
				for _, cell := range some {
					for _, test := range []string{"tcp_crr", "udp_rr"} {
						carry(t, l, cell, test, 20*time.Millisecond)
					}
				}
				if p.AtSockets == nil && p.Family == "" { // the others are the same on each network, and shown above
					reachesBoth(t, l.clusters[keyOf(some[0])])
				}
			})
		}
	})
	for _, name := range want {
		if with[name] == nil {
			t.Errorf("%s has no services by %s", name, p.Name)
		}
	}
}

// reachesBoth asks a service with a pod of the asking one's node and one of the other
// node behind it; one of two is left out by chance once in 10^12.
func reachesBoth(t *testing.T, c *cluster) {
	t.Helper()
	var backends []site
	for _, s := range []site{{1, 2}, {2, 1}} {
		if c.has(s) { // docker/bridge has one node's
			backends = append(backends, s)
		}
	}
	names := addEcho(t, c, backends...)
	for _, protocol := range []string{"tcp", "udp"} {
		who := whoAnswers(t, c, site{1, 1}, protocol, netip.AddrPortFrom(echoAddress(), 80), 40)
		for _, name := range names {
			if who[name] == 0 {
				t.Errorf("%s by %s: %s of default/echo never answered by %s: %v", c.network.Name, c.proxy.Name, name, protocol, who)
			}
		}
	}
}

// TestManyServices: thousands of services are loaded in bounded time, and the
// one that is measured works.
func TestManyServices(t *testing.T) {
	eachProxy(t, func(t *testing.T, p network.ServiceProxy) {
		t.Parallel()
		name, services := "bridge", 3000
		if p.Family != "" {
			name = familyOf(p)[0]
		}
		switch {
		case labtest.InVM() && p.AtSockets == nil && p.Name != "iptables":
			services = 1000 // emulation takes ten times as long
		case p.AtSockets != nil || p.Name == "iptables" || p.Name == "antrea" || p.Name == "ovn":
			services = 10_000
		}
		began := time.Now()
		l, c := buildServices(t, name, p.Name, services, 2)
		took := time.Since(began)
		t.Logf("%d services by %s on a node in %v", services, p.Name, took.Round(100*time.Millisecond))
		if took > 2*time.Minute {
			t.Errorf("%d services took %v", services, took)
		}
		if got := addresses(c.services()); got != services {
			t.Errorf("%d services, want %d", got, services)
		}
		for _, cell := range serviceCells(name, p.Name, services) {
			if cell.Placement == result.InterHost {
				continue // there is one node
			}
			carry(t, l, cell, "tcp_crr", 100*time.Millisecond)
		}
		switch p.Name {
		case "iptables":
			all := counters(t, c.nodes[0].NS)
			list := 0
			for rule := range all {
				if strings.HasPrefix(rule, "-A KUBE-SERVICES -d 10.96.") {
					list++
				}
			}
			if want := len(c.services()); list != want {
				t.Errorf("%d rules in the list of services, want %d", list, want)
			}
		case "ovn":
			if got, want := len(balancers(t, c.nodes[0], "cluster")), services+1; got != want { // the measured one has TCP and UDP
				t.Errorf("%d load balancers, want %d", got, want)
			}
		case "nftables":
			out, err := newRunner(t).Run(t.Context(), exec.Cmd{Argv: []string{"nft", "list", "map", "ip", "kube-proxy", "service-ips"}, NetNS: c.nodes[0].NS.Path})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Count(string(out.Stdout), ": goto "), len(c.services()); got != want {
				t.Errorf("%d services in the map, want %d", got, want)
			}
		}
	})
}

// addresses is the number of services, each of which has an address.
func addresses(ports []network.Service) int {
	seen := map[netip.Addr]bool{}
	for _, p := range ports {
		seen[p.Address.Addr()] = true
	}
	return len(seen)
}

// TestWhereServicesCannotBe: the reason says why.
func TestWhereServicesCannotBe(t *testing.T) {
	for _, tc := range []struct{ network, proxy, want string }{
		{"macvlan", "iptables", "do not pass the node"},
		{"cilium/native", "nftables", "its eBPF programs pass packets by"},
		{"hpc/singularity", "ebpf", "without Kubernetes"},
		{"bridge", "antrea", "they are of the networks antrea/… alone"},
		{"antrea/geneve", "iptables", "service_proxies: [antrea]"},
		{"bridge", "ovn", "they are of the networks ovn/… alone"},
		{"ovn/geneve", "nftables", "service_proxies: [ovn]"},
		{kubeOVNName, "nftables", "which the lab does not make"},
		{kubeOVNName, "ovn", "Kube-OVN has others"},
		{"macvlan", "xdp", "a NodePort's packets reach a pod by its node"},
		{"spiderpool/macvlan", "xdp", "answer past their node"},
		{"antrea/geneve", "xdp", "past a program at the node's device"},
		{"bridge", "ingress", "it takes HTTP alone"},
		{"bridge", "ip_tables", "known: iptables, nftables, ipvs, ebpf, xdp"},
	} {
		n, err := catalog.Find(tc.network)
		if err != nil {
			t.Fatal(err)
		}
		p := New(Options{}).planner
		err = p.checkRules(n, serviceCells(tc.network, tc.proxy, 1)[0])
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s by %s: %v, want %q", tc.network, tc.proxy, err, tc.want)
		}
	}
	n, err := catalog.Find("bridge")
	if err != nil {
		t.Fatal(err)
	}
	c := cells("bridge")[0]
	c.Policies = 10
	if err := New(Options{}).planner.checkRules(n, c); err == nil || !strings.Contains(err.Error(), "enforces no policy") {
		t.Errorf("policies on bridge: %v", err)
	}
	if !errors.Is(New(Options{}).planner.checkRules(n, cells("bridge")[0]), nil) {
		t.Error("a cell with neither is refused")
	}
}
