package lab

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/processes"
)

const (
	ovnName, ovnPlainName             = "ovn/geneve", "ovn/no-overlay"
	ovnPolicyName, ovnPlainPolicyName = "ovn/geneve-policy", "ovn/no-overlay-policy"
	kubeOVNName                       = "ovn/kube-ovn"
)

// nbctl asks the northbound database of a node.
func nbctl(t *testing.T, n network.Node, args ...string) string {
	t.Helper()
	return output(t, append([]string{"ovn-nbctl", "--db=unix:" + filepath.Join(n.DataDir, "ovn", "nb.sock")}, args...)...)
}

// ovnPoliciesAreThere: the switch of node 1 has flows for the peers of every policy, in both
// directions, and every pod is under every policy.
func ovnPoliciesAreThere(t *testing.T, c *cluster, policies int) {
	t.Helper()
	node := c.nodes[0]
	dump := ofctl(t, node, "dump-flows", "br-int")
	for _, field := range []string{"nw_src", "nw_dst"} {
		peers := map[string]bool{}
		for _, m := range regexp.MustCompile(field+`=(198\.19\.\d+\.\d+)`).FindAllStringSubmatch(dump, -1) {
			peers[m[1]] = true
		}
		if len(peers) != policies {
			t.Errorf("%s: flows for the peers of %d policies, want %d", field, len(peers), policies)
		}
	}
	pods := len(c.pods[0])
	if strings.HasPrefix(c.network.Name, ovnName) { // one database for both nodes
		pods += len(c.pods[1])
	}
	groups := 0
	for line := range strings.Lines(nbctl(t, node, "--bare", "--columns=ports", "list", "Port_Group")) {
		if ports := strings.Fields(line); len(ports) > 0 {
			if groups++; len(ports) != pods {
				t.Errorf("a port group has %d pods, want %d", len(ports), pods)
			}
		}
	}
	if want := policies + 3; groups != want { // the policy that allows, and the two that deny
		t.Errorf("%d port groups with pods, want %d", groups, want)
	}
}

// TestOVNPolicyDenies sends to a port that the policy does not allow, and then from a pod
// that is no peer of the policy any more.
func TestOVNPolicyDenies(t *testing.T) {
	for _, name := range []string{ovnPolicyName, ovnPlainPolicyName} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, all := policyDenies(t, name)
			c := l.clusters[keyOf(all[0])]
			from, to, err := sites(result.Cell{Path: result.PathPodToPod, Placement: result.InterHost}, false)
			if err != nil {
				t.Fatal(err)
			}
			database := c.nodes[0] // of the receiver's zone
			if name == ovnPlainPolicyName {
				database = c.nodes[to.node-1]
			}
			nbctl(t, database, "--wait=hv", "remove", "Address_Set", "peers0000", "addresses", fmt.Sprintf("%q", c.address(from)))
			answered(t, c.ns(from), netip.AddrPort{}, deaf(t, c.ns(to), netip.AddrPortFrom(c.address(to), 7070)))
		})
	}
}

// ovnFlowsAreHit looks at node 1's switch for flows that ovn-controller made and that
// packets between nodes must have passed: by the router, into the tunnel with OVN's option,
// and back out of it. With Kube-OVN's topology no packet between pods passes the router.
func ovnFlowsAreHit(t *testing.T, node network.Node, n network.Network) {
	t.Helper()
	const hop, own, peer = "a hop over the router", "0x2", "0x3" // the logical switches of the nodes
	hops := regexp.MustCompile(`n_packets=[1-9].* actions=.*dec_ttl`)
	want := map[string]*regexp.Regexp{hop: hops}
	from, to := own, peer
	if n.Name == kubeOVNName {
		delete(want, hop)
		from, to = peer, peer // that of all pods
	}
	want["from a pod's port"] = regexp.MustCompile(`(?i)table=0, n_packets=[1-9].*in_port=[^ ]+ actions=.*` + from + `->.*metadata`)
	want["to a pod's port"] = regexp.MustCompile(`n_packets=[1-9].*reg15=0x[0-9a-f]+,metadata=` + from + ` actions=.*output:`)
	if n.Encapsulation != "" {
		want["into the tunnel"] = regexp.MustCompile(`(?i)n_packets=[1-9].*,metadata=` + to + ` actions=.*tun_metadata0.*output:`)
		want["out of the tunnel"] = regexp.MustCompile(`(?i)table=0, n_packets=[1-9].*in_port=[^ ]+ actions=.*tun_metadata0\[`)
	}
	flows, missing := ovnAwait(t, node, want)
	for _, what := range missing {
		t.Errorf("%s: no packet passed such a flow %s", node.Name, what)
	}
	if _, passes := want[hop]; !passes && hops.MatchString(flows) {
		t.Errorf("%s: a packet passed the router: %s", node.Name, hops.FindString(flows))
	}
	if t.Failed() {
		t.Logf("flows of %s:\n%s", node.Name, flows)
	}
}

// ovnAwait waits for flows of a node's switch, and gives all of them and which of those that
// are wanted no packet passed. A switch adds up its counters twice a second.
func ovnAwait(t *testing.T, node network.Node, want map[string]*regexp.Regexp) (flows string, missing []string) {
	t.Helper()
	for range 20 {
		flows, missing = ofctl(t, node, "dump-flows", "br-int"), nil
		for what, pattern := range want {
			if !pattern.MatchString(flows) {
				missing = append(missing, what)
			}
		}
		if len(missing) == 0 {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	return flows, missing
}

// output is what a program prints.
func output(t *testing.T, argv ...string) string {
	t.Helper()
	got, err := newRunner(t).Run(t.Context(), exec.Cmd{Argv: argv})
	if err != nil {
		t.Fatal(err)
	}
	return string(got.Stdout)
}

// listeners are the addresses at which TCP is listened for in a namespace.
func listeners(t *testing.T, ns netns.NS) []string {
	t.Helper()
	var text []byte
	err := netns.Do(ns, func() error {
		for _, file := range []string{"tcp", "tcp6"} {
			more, err := os.ReadFile("/proc/thread-self/net/" + file)
			if err != nil && !os.IsNotExist(err) {
				return err
			}
			text = append(text, more...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != "0A" { // TCP_LISTEN
			continue
		}
		address, port, _ := strings.Cut(fields[1], ":")
		a, err := strconv.ParseUint(address, 16, 32)
		p, portErr := strconv.ParseUint(port, 16, 16)
		if err != nil || portErr != nil {
			all = append(all, fields[1]) // IPv6
			continue
		}
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], uint32(a))
		all = append(all, fmt.Sprintf("%s:%d", netip.AddrFrom4(b), p))
	}
	return all
}

// machinesOVN is all that an OVN of the machine's own has, by its usual paths.
func machinesOVN(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"/run/ovn*", "/run/ovn/*", "/var/lib/ovn*", "/var/lib/ovn/*", "/var/log/ovn*", "/var/log/ovn/*", "/etc/ovn*",
		"/etc/ovn/*", "/run/openvswitch/*", "/etc/openvswitch/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// TestOVNIsTheNodesOwn: OVN's programs are in the nodes' namespaces, its only port is at the
// first node's address where nodes share a database, its files are in the lab's folder, and
// an OVN of the machine's own is left alone.
func TestOVNIsTheNodesOwn(t *testing.T) {
	central := []string{"ovn-controller", "ovn-northd", "ovs-vswitchd", "ovsdb-server", "ovsdb-server", "ovsdb-server"}
	for name, want := range map[string]struct {
		second []string // what node 2 runs
		listen []string // where node 1 listens
	}{
		ovnName:      {[]string{"ovn-controller", "ovs-vswitchd", "ovsdb-server"}, []string{"198.18.0.1:6642"}},
		kubeOVNName:  {[]string{"ovn-controller", "ovs-vswitchd", "ovsdb-server"}, []string{"198.18.0.1:6642"}},
		ovnPlainName: {central, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needLab(t)
			before := machinesOVN(t)
			l := New(options(newRunner(t), stateDir(t)))
			n, err := catalog.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			buildLab(t, l, supported(n))
			if now := machinesOVN(t); !slices.Equal(before, now) {
				t.Errorf("the machine has %v, had %v", now, before)
			}
			nodes := l.ordered[0].nodes
			for i, want := range [][]string{central, want.second} {
				on := commandsIn(t, nodes[i].NS)
				if slices.Sort(on); !slices.Equal(on, want) {
					t.Errorf("%s runs %v, want %v", nodes[i].Name, on, want)
				}
			}
			if got := listeners(t, nodes[0].NS); !slices.Equal(got, want.listen) {
				t.Errorf("node 1 listens at %v, want %v", got, want.listen)
			}
			if got := listeners(t, nodes[1].NS); len(got) > 0 {
				t.Errorf("node 2 listens at %v", got)
			}
			for _, file := range []string{"nb.db", "nb.sock", "sb.db", "sb.sock", "ovn-northd.log", "ovn-controller.log"} {
				if _, err := os.Stat(filepath.Join(nodes[0].DataDir, "ovn", file)); err != nil {
					t.Error(err)
				}
			}
			facts, err := l.facts(t.Context(), n)
			if err != nil || facts.Rebuilt() || !regexp.MustCompile(`^OVN \d+\.\d+\.\d+ over Open vSwitch \d`).MatchString(facts.Datapath) {
				t.Errorf("facts %+v (%v)", facts, err)
			}
		})
	}
}

// TestOVNDropsForgedSources: a pod sends from its own address alone (port security).
func TestOVNDropsForgedSources(t *testing.T) {
	l := New(options(newRunner(t), t.TempDir()))
	all := cells(ovnName)
	buildLab(t, l, all)
	for _, cell := range all {
		c := l.clusters[keyOf(cell)]
		from, to, err := sites(cell, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := ask(c.ns(from), echo(t, c.ns(to), c.address(to)), 10); err != nil { // neighbours are found
			t.Fatal(err)
		}
		received := listen(t, c.ns(to), c.address(to), 7777)
		for range 3 {
			sendRaw(t, c.ns(from), c.address(from).Next().Next().Next(), c.address(to), 7777)
		}
		sendRaw(t, c.ns(from), c.address(from), c.address(to), 7777)
		if got := <-received; got != c.address(from) {
			t.Errorf("%s: a packet from %s came through, or the pod's own did not", cell.Placement, got)
		}
	}
}

// TestOVNForgetsPods: CNI DEL takes a pod out of the switch and out of the logical network;
// a second one is no error, and neither is one when OVN has ended.
func TestOVNForgetsPods(t *testing.T) {
	needLab(t)
	l := New(options(newRunner(t), stateDir(t)))
	buildLab(t, l, cells(ovnName))
	c := l.ordered[0]
	node := c.nodes[0]
	has := func(p pod) (port, logical bool) {
		o, nb := filepath.Join(node.DataDir, "ovs", "db.sock"), filepath.Join(node.DataDir, "ovn", "nb.sock")
		port = strings.Contains(output(t, "ovs-vsctl", "--db=unix:"+o, "--columns=external_ids", "list", "Interface"), p.ns.Name)
		return port, strings.Contains(output(t, "ovn-nbctl", "--db=unix:"+nb, "lsp-list", node.Name), p.ns.Name)
	}
	p := c.pods[0][0]
	if port, logical := has(p); !port || !logical {
		t.Fatalf("%s has a port: %v, a logical port: %v", p.ns.Name, port, logical)
	}
	rt := cniRuntime(l.options.Runner, l.state, l.held.Path)
	for range 2 {
		if _, err := rt.Del(t.Context(), attachment(c.conflists[0], p.ns, node.NS)); err != nil {
			t.Error(err)
		}
		if port, logical := has(p); port || logical {
			t.Errorf("%s still has a port: %v, a logical port: %v", p.ns.Name, port, logical)
		}
	}
	if _, err := processes.KillInside([]netns.NS{node.NS}); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Del(t.Context(), attachment(c.conflists[0], c.pods[0][1].ns, node.NS)); err != nil {
		t.Errorf("without OVN: %v", err)
	}
}
