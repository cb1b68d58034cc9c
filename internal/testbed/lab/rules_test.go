package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// hits are, for each network with rules, regular expressions of rules of a
// node's that datagrams between pods of two nodes and of one node must have
// passed.
func hits() map[string][]string {
	const mark, ret = "-j MARK --set-xmark 0x10000/0x10000", "-j RETURN"
	felix := []string{
		"-A FORWARD .*-j cali-FORWARD", "-A cali-FORWARD -i cali\\+ .*-j cali-from-wl-dispatch", "-A cali-FORWARD -o cali\\+ .*-j cali-to-wl-dispatch",
		"-A cali-from-wl-dispatch.* -g cali-fw-cali", "-A cali-to-wl-dispatch.* -g cali-tw-cali",
		"-A cali-fw-cali.*RELATED,ESTABLISHED -j ACCEPT", "-A cali-tw-cali.*RELATED,ESTABLISHED -j ACCEPT",
		"-A cali-fw-cali.*-j cali-po-default.lab", "-A cali-tw-cali.*-j cali-pi-default.lab",
		"-A cali-po-default.lab -p udp .*--match-set cali40s:lab-pods dst .*" + mark, "-A cali-po-default.lab .*" + ret,
		"-A cali-pi-default.lab -p udp .*--match-set cali40s:lab-pods src .*" + mark,
		"-A cali-PREROUTING -i cali\\+ .*-j MARK --set-xmark 0x40000/0x40000", // raw
		"-A cali-PREROUTING .*RELATED,ESTABLISHED -j ACCEPT",                  // mangle
		"-A cali-POSTROUTING .*-j cali-nat-outgoing",                          // nat
	}
	accepted := append(slices.Clone(felix), "-A FORWARD .*--mark 0x10000/0x10000 -j ACCEPT")
	router := []string{`-A FORWARD -o eth0 .*-j ACCEPT`, `-A FORWARD -o kube-bridge .*-j ACCEPT`}
	flannel := []string{
		"-A FORWARD .*-j FLANNEL-FWD", "-A FLANNEL-FWD -s (10.244.0.0/16|fd00:10:244::/48) .*-j ACCEPT",
		"-A POSTROUTING .*-j FLANNEL-POSTRTG", "-A FLANNEL-POSTRTG -s (10.244.1.0/24|fd00:10:244:1::/64) -d .*-j RETURN",
	}
	ovn := []string{"-A FORWARD -i ovn-k8s-mp0 -j ACCEPT", "-A FORWARD -o ovn-k8s-mp0 -j ACCEPT"}
	docker := []string{
		"-A FORWARD -j DOCKER-USER", "-A FORWARD -j DOCKER-ISOLATION-STAGE-1", "-A FORWARD -o docker0 .*RELATED,ESTABLISHED -j ACCEPT",
		"-A FORWARD -i docker0 -o docker0 -j ACCEPT",
	}
	return map[string][]string{
		"flannel/host-gw": flannel, "flannel/vxlan": flannel, "flannel/vxlan-no-offload": flannel, "flannel/udp": flannel,
		"flannel/ipip": flannel, "flannel/wireguard": flannel,
		"calico/direct-policy": accepted,
		"calico/ipip-policy":   append(slices.Clone(accepted), "-A cali-INPUT -p (ipencap|ipv4|4) .*-j ACCEPT"),
		"calico/vxlan-policy":  append(slices.Clone(accepted), "-A cali-INPUT -p udp .*--dports 4789 .*-j ACCEPT", "-A cali-PREROUTING -p udp .*--dport 4789 .*-j CT --notrack"),
		"canal":                append(slices.Clone(felix), flannel...), // flanneld's rule lets them through first
		"kube-router":          router,
		"kube-router/policy": {
			"-A FORWARD .*-j KUBE-ROUTER-FORWARD", "-A KUBE-ROUTER-FORWARD -d 10.244.*-j KUBE-POD-FW-", "-A KUBE-ROUTER-FORWARD -s 10.244.*-j KUBE-POD-FW-",
			"-A KUBE-ROUTER-FORWARD .*--physdev-is-bridged.*-j KUBE-POD-FW-", "-A KUBE-POD-FW-.*RELATED,ESTABLISHED.*-j ACCEPT",
			"-A KUBE-POD-FW-.*-j KUBE-NWPLCY-", "-A KUBE-NWPLCY-.*-p udp .*--match-set KUBE-SRC-.*--match-set KUBE-DST-.*" + mark,
			"-A KUBE-NWPLCY-.*-p udp .*" + ret, "-A KUBE-ROUTER-FORWARD .*--mark 0x20000/0x20000.*-j ACCEPT",
		},
		"docker/bridge": docker, "docker/bridge-real": docker,
		"podman/bridge": {
			"-A FORWARD .*-j NETAVARK_FORWARD", "-A NETAVARK_FORWARD -d 10.244.1.0/24 .*RELATED,ESTABLISHED -j ACCEPT",
			"-A NETAVARK_FORWARD -s 10.244.1.0/24 -j ACCEPT",
		},
		ovnPlainName: ovn, ovnPlainPolicyName: ovn,
	}
}

// denied are the networks with a policy.
func denied() []string {
	return []string{"calico/direct-policy", "calico/ipip-policy", "calico/vxlan-policy", "canal", "kube-router/policy"}
}

// counters are a node's rules, of both families, with how often each was hit.
func counters(t *testing.T, ns netns.NS) map[string]uint64 {
	t.Helper()
	r := newRunner(t)
	all := map[string]uint64{}
	for _, save := range []string{"iptables-nft-save", "ip6tables-nft-save"} {
		out, err := r.Run(t.Context(), exec.Cmd{Argv: []string{save, "--counters"}, NetNS: ns.Path})
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out.Stdout)) {
			count, rule, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "["), "] ")
			packets, _, _ := strings.Cut(count, ":")
			if n, err := strconv.ParseUint(packets, 10, 64); ok && err == nil {
				all[rule] += n
			}
		}
	}
	return all
}

// rulesAreHit looks on node 1 for the rules that the network's packets pass.
func rulesAreHit(t *testing.T, l *Lab, n network.Network) {
	t.Helper()
	want := hits()[n.Name]
	if len(want) == 0 {
		return
	}
	for _, c := range l.ordered {
		all := counters(t, c.nodes[0].NS)
		for _, w := range want {
			pattern := regexp.MustCompile("^" + w)
			found, packets := false, uint64(0)
			for rule, count := range all {
				if pattern.MatchString(rule) {
					found, packets = true, packets+count
				}
			}
			if !found || packets == 0 {
				t.Errorf("rule %q of %s: there %v, hit %d times", w, n.Name, found, packets)
			}
		}
	}
}

// TestPolicyDenies sends to a port that no policy allows, and then from a pod
// that the set does not have any more.
func TestPolicyDenies(t *testing.T) {
	for _, name := range denied() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, all := policyDenies(t, name)
			withoutSet(t, l, all)
		})
	}
}

// policyDenies builds a network with a policy, and sends in every cell to the first port that
// the policy allows and to the last one that it does not.
func policyDenies(t *testing.T, name string) (*Lab, []result.Cell) {
	t.Helper()
	l := New(options(newRunner(t), t.TempDir()))
	all := cells(name)
	buildLab(t, l, all)
	first, _ := network.PolicyPorts()
	for _, cell := range all {
		c := l.clusters[keyOf(cell)]
		from, to, err := sites(cell, false)
		if err != nil {
			t.Fatal(err)
		}
		allowed := echoPort(t, c.ns(to), netip.AddrPortFrom(c.address(to), first))
		answered(t, c.ns(from), allowed, deaf(t, c.ns(to), netip.AddrPortFrom(c.address(to), first-1)))
	}
	return l, all
}

// withoutSet empties the policy's sets on node 2: what was allowed is denied.
func withoutSet(t *testing.T, l *Lab, all []result.Cell) {
	t.Helper()
	cell := all[0] // between nodes
	c := l.clusters[keyOf(cell)]
	from, to, err := sites(cell, false)
	if err != nil {
		t.Fatal(err)
	}
	ns := c.nodes[to.node-1].NS
	out, err := newRunner(t).Run(t.Context(), exec.Cmd{Argv: []string{"ipset", "list", "-name"}, NetNS: ns.Path})
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(out.Stdout)) {
		name = strings.TrimSpace(name)
		if !strings.HasPrefix(name, "cali40s:") && !strings.HasPrefix(name, "KUBE-SRC-") {
			continue
		}
		_, err := newRunner(t).Run(t.Context(), exec.Cmd{
			Argv: []string{"ipset", "del", "-exist", name, c.address(from).String()}, NetNS: ns.Path,
		})
		if err != nil {
			t.Error(err)
		}
	}
	answered(t, c.ns(from), netip.AddrPort{}, deaf(t, c.ns(to), netip.AddrPortFrom(c.address(to), 7070)))
}

// deaf listens where nothing may arrive, which it holds until the test's end, and
// answers what does: its sender fails the test too.
func deaf(t *testing.T, ns netns.NS, at netip.AddrPort) netip.AddrPort {
	t.Helper()
	var came atomic.Int64
	t.Cleanup(func() { // after the socket is closed
		if n := came.Load(); n > 0 {
			t.Errorf("%d datagrams came to %s", n, at)
		}
	})
	return echoHeard(t, ns, at, func() { came.Add(1) })
}

// answered asks at an address that is allowed, behind what it sends to one that is
// not, of which there is no answer then. Without the first it waits instead.
func answered(t *testing.T, from netns.NS, allowed, forbidden netip.AddrPort) {
	t.Helper()
	var conn *net.UDPConn
	err := netns.Do(from, func() (err error) {
		conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(forbidden))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 3 {
		if _, err := conn.Write([]byte("may I")); err != nil && !refused(err) {
			t.Errorf("to %s: %v", forbidden, err)
		}
	}
	if allowed.IsValid() {
		if err := ask(from, allowed, 100); err != nil {
			t.Errorf("to %s, which is allowed: %v", allowed, err)
		}
	}
	if err := conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 100)); !refused(err) {
		t.Errorf("to %s: %v, want no answer", forbidden, err)
	}
}

// refused distinguishes an answer of "denied" from other errors: silence where packets
// are dropped, ICMP where they are rejected.
func refused(err error) bool {
	return err != nil && (strings.Contains(fmt.Sprint(err), "i/o timeout") || errors.Is(err, unix.ECONNREFUSED))
}
