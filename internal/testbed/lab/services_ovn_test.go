package lab

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
)

// balancers are the load balancers in a node's northbound database whose names end with that,
// by name, and what each of them is.
func balancers(t *testing.T, n network.Node, where string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(nbctl(t, n, "--format=csv", "--data=bare", "--no-headings", "--columns=name,_uuid,protocol,vips", "list", "Load_Balancer")) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ",")
		if strings.HasSuffix(name, "_"+where) {
			all[name] = rest
		}
	}
	return all
}

// ovnHits adds up what flows of a node's switch counted whose text has the words, and gives
// the groups to which they lead.
func ovnHits(t *testing.T, n network.Node, words ...string) (packets int, groups []string) {
	t.Helper()
	counted, group := regexp.MustCompile(` n_packets=(\d+), `), regexp.MustCompile(`group:(\d+)`)
	for line := range strings.Lines(ofctl(t, n, "dump-flows", "br-int")) {
		if got := counted.FindStringSubmatch(line); got != nil && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			more, err := strconv.Atoi(got[1])
			if err != nil {
				t.Fatal(err)
			}
			packets += more
			if to := group.FindStringSubmatch(line); to != nil && more > 0 {
				groups = append(groups, to[1])
			}
		}
	}
	return packets, groups
}

// ovnBalancersWereHit holds OVN's load balancers to the way that connections to the service
// default/echo take. A pod of node 1 made least connections to each of three addresses, half of
// them by TCP and half by UDP. They passed the flow of their address in node 1's switch, and the
// flow's group, each of whose buckets changed the destination of some. Those to node 2's port
// passed a rule there, and then node 2's switch. A switch adds up its counters twice a second.
func ovnBalancersWereHit(t *testing.T, c *cluster, least int) {
	t.Helper()
	near, far := c.nodes[0], c.nodes[1]
	port := strconv.Itoa(echoPortOfNodes)
	for _, want := range []struct {
		node  network.Node
		words []string
	}{
		{near, []string{"+new", ",tcp,", "nw_dst=10.96.200.1,tp_dst=80 ", "group:"}},
		{near, []string{"+new", ",udp,", "nw_dst=10.96.200.1,tp_dst=80 ", "group:"}},
		{near, []string{"+new", ",tcp,", "nw_dst=198.18.0.1,tp_dst=" + port + " ", "group:"}},
		{near, []string{"+new", ",udp,", "nw_dst=198.18.0.1,tp_dst=" + port + " ", "group:"}},
		{far, []string{"+new", ",tcp,", "nw_dst=10.96.200.1,tp_dst=80 ", "group:"}},
		{far, []string{"+new", ",udp,", "nw_dst=10.96.200.1,tp_dst=80 ", "group:"}},
		{near, []string{"nat(src=169.254.169.5)"}}, // a pod that reached itself
	} {
		packets, groups, few := 0, []string(nil), 1
		if slices.Contains(want.words, "group:") {
			few = least / 4 // half of each protocol's: a socket with the port of an earlier one is no new connection
		}
		for range 20 {
			if packets, groups = ovnHits(t, want.node, want.words...); packets >= few {
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
		if packets < few {
			t.Errorf("%s: %d packets passed flows with %v, want %d", want.node.Name, packets, want.words, few)
		}
		for _, group := range groups {
			bucketsWereHit(t, want.node, group)
		}
	}
	at := map[string]uint64{near.Name: 0, far.Name: 1}
	for _, n := range []network.Node{near, far} {
		all := counters(t, n.NS)
		for _, protocol := range []string{"tcp", "udp"} {
			rule := fmt.Sprintf("-A OVN-KUBE-NODEPORT -p %s .*--dport %s -j DNAT --to-destination 10.96.200.1:80", protocol, port)
			if got := hit(all, rule); (got > 0) != (at[n.Name] > 0) {
				t.Errorf("%s: %d connections passed %s", n.Name, got, rule)
			}
		}
		if got := hit(all, "-A OVN-KUBE-SNAT-MGMTPORT -d 10.96.0.0/12 -o ovn-k8s-mp0 -j SNAT"); (got > 0) != (at[n.Name] > 0) {
			t.Errorf("%s: %d connections entered OVN for a service by the node's own device", n.Name, got)
		}
		for rule := range all {
			if strings.Contains(rule, "KUBE-SERVICES") || strings.Contains(rule, "KUBE-SVC") {
				t.Errorf("%s has a rule of kube-proxy's: %s", n.Name, rule)
			}
		}
	}
}

// bucketsWereHit: each bucket of a group changes destinations, and has done so.
func bucketsWereHit(t *testing.T, n network.Node, group string) {
	t.Helper()
	buckets := strings.Count(ofctl(t, n, "dump-groups", "br-int", group), "nat(dst=10.244.")
	hit := len(regexp.MustCompile(`bucket\d+:packet_count=[1-9]`).FindAllString(ofctl(t, n, "dump-group-stats", "br-int", "group_id="+group), -1))
	if buckets == 0 || hit != buckets {
		t.Errorf("%s: group %s has %d endpoints, of which %d got connections", n.Name, group, buckets, hit)
	}
}

// buildOVN builds one cluster of a network with services by OVN's load balancers.
func buildOVN(t *testing.T, name string) *cluster {
	t.Helper()
	needLab(t)
	p, err := catalog.FindServiceProxy("ovn")
	if err != nil {
		t.Fatal(err)
	}
	for _, need := range p.Needs {
		labtest.Feature(t, p.Name, need.Probe())
	}
	_, c := buildServices(t, name, p.Name, 3, 2, 2)
	return c
}

// TestOVNServicesUnderPolicy: a policy lets a pod's connections to a service pass, to itself
// too. A NodePort reaches the pods of its own node.
func TestOVNServicesUnderPolicy(t *testing.T) {
	for _, name := range []string{ovnPolicyName, ovnPlainPolicyName} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := buildOVN(t, name)
			everyone := func(to netip.AddrPort, names []string) {
				for _, protocol := range []string{"tcp", "udp"} {
					who := whoAnswers(t, c, site{1, 1}, protocol, to, 100)
					for _, name := range names {
						if who[name] == 0 {
							t.Errorf("%s to %s: %s never answered: %v", protocol, to, name, who)
						}
					}
				}
			}
			names := addEcho(t, c, site{1, 1}, site{1, 2}, site{2, 1}, site{2, 2})
			everyone(netip.AddrPortFrom(echoAddress(), 80), names)
			everyone(netip.AddrPortFrom(c.nodes[0].Address.Addr(), echoPortOfNodes), names)
			c = withEcho(t, c, site{2, 1}, site{2, 2})
			everyone(netip.AddrPortFrom(c.nodes[1].Address.Addr(), echoPortOfNodes), names[2:])
			// What is for a pod of the node does not leave OVN again.
			if got := hit(counters(t, c.nodes[1].NS), "-A OVN-KUBE-SNAT-MGMTPORT -s 169.254.169.2/32 .*-j MASQUERADE"); got != 0 {
				t.Errorf("%d connections left OVN on their way to a pod of the node", got)
			}
		})
	}
}

// withEcho gives default/echo other pods, which answer already.
func withEcho(t *testing.T, c *cluster, backends ...site) *cluster {
	t.Helper()
	services := slices.Clone(c.programmedNow)
	for i, s := range services {
		if s.Name == "default/echo" {
			services[i].Endpoints = nil
			for _, b := range backends {
				services[i].Endpoints = append(services[i].Endpoints, netip.AddrPortFrom(c.address(b), 8080))
			}
		}
	}
	if err := c.syncProxy(t.Context(), services); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOVNServicesChange: an update changes the load balancers of one service and no other. A
// service without endpoints rejects connections. Those that are gone leave nothing.
func TestOVNServicesChange(t *testing.T) {
	for _, name := range []string{ovnName, ovnPlainName} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := buildOVN(t, name)
			node, own := c.nodes[0], "node_switch_"+c.nodes[0].Name
			plain, ports, rules := balancers(t, node, "cluster"), balancers(t, node, own), natOf(t, node)
			addEcho(t, c, site{1, 2})
			before := balancers(t, node, "cluster")
			maps.Copy(before, balancers(t, node, own))
			if got, want := len(before), len(plain)+len(ports)+4; got != want {
				t.Fatalf("%d load balancers, want %d: %v", got, want, before)
			}
			i := slices.IndexFunc(c.programmedNow, func(s network.Service) bool { return s.Name == "default/echo" && s.Protocol == "tcp" })
			c.programmedNow[i].Endpoints = nil
			if err := c.proxy.Update(t.Context(), node, c.programmedNow, i); err != nil {
				t.Fatal(err)
			}
			after := balancers(t, node, "cluster")
			maps.Copy(after, balancers(t, node, own))
			for name, was := range before {
				if changed := after[name] != was; changed != strings.HasPrefix(name, "Service_default/echo_TCP_") {
					t.Errorf("%s was %s and is %s", name, was, after[name])
				}
			}
			to := netip.AddrPortFrom(echoAddress(), 80)
			ovnRejects(t, c, to)
			services := slices.DeleteFunc(slices.Clone(c.programmedNow), func(s network.Service) bool { return s.Name == "default/echo" })
			if err := c.syncProxy(t.Context(), services); err != nil {
				t.Fatal(err)
			}
			if now := balancers(t, node, "cluster"); !maps.Equal(now, plain) {
				t.Errorf("the load balancers are %v, were %v", now, plain)
			}
			if now := balancers(t, node, own); !maps.Equal(now, ports) {
				t.Errorf("those of the node are %v, were %v", now, ports)
			}
			if now := natOf(t, node); !slices.Equal(now, rules) {
				t.Errorf("the rules are %v, were %v", now, rules)
			}
			for _, n := range c.nodes {
				if flows := ofctl(t, n, "dump-flows", "br-int"); strings.Contains(flows, "nw_dst="+to.Addr().String()) {
					t.Errorf("%s still has flows for %s", n.Name, to.Addr())
				}
			}
		})
	}
}

// natOf is a node's rules without their counters.
func natOf(t *testing.T, n network.Node) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(counters(t, n.NS)))
}

// ovnRejects: OVN answers for a service without endpoints, at once.
func ovnRejects(t *testing.T, c *cluster, to netip.AddrPort) {
	t.Helper()
	_, err := newRunner(t).Run(t.Context(), exec.Cmd{
		Argv: []string{"bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/%s/%d", to.Addr(), to.Port())}, NetNS: c.ns(site{1, 1}).Path,
	})
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a connection to %s, which has no endpoint: %v, want it refused", to, err)
	}
}
