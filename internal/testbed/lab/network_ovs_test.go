package lab

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/antrea"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
)

// ovsNetworks are those whose nodes have an Open vSwitch.
func ovsNetworks() []network.Network {
	return slices.DeleteFunc(catalog.List(), func(n network.Network) bool { return !strings.HasPrefix(n.Name, "antrea/") })
}

// openFlow is one flow of a node's switch.
type openFlow struct {
	table   string
	packets int
	text    string
}

// flows reads a node's OpenFlow flows with their counters.
func flows(t *testing.T, n network.Node) []openFlow {
	t.Helper()
	out := ofctl(t, n, "dump-flows", "br-int")
	tables := antrea.Tables()
	counted := regexp.MustCompile(`table=(\d+), n_packets=(\d+), `)
	var all []openFlow
	for line := range strings.Lines(out) {
		got := counted.FindStringSubmatch(line)
		if got == nil {
			continue
		}
		table, err := strconv.Atoi(got[1])
		if err != nil || table >= len(tables) {
			t.Fatalf("table %s of %q (%v)", got[1], line, err)
		}
		packets, err := strconv.Atoi(got[2])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, openFlow{tables[table], packets, strings.TrimSpace(line)})
	}
	return all
}

func ofctl(t *testing.T, n network.Node, args ...string) string {
	t.Helper()
	out, err := newRunner(t).Run(t.Context(), exec.Cmd{
		Argv: append([]string{"ovs-ofctl", "-OOpenFlow15"}, args...), Env: []string{"OVS_RUNDIR=" + filepath.Join(n.DataDir, "ovs")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(out.Stdout)
}

// packetsOf adds up what flows counted whose table is that and whose text has
// the words.
func packetsOf(all []openFlow, table string, words ...string) (packets int, there bool) {
	for _, f := range all {
		if f.table == table && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(f.text, w) }) {
			there, packets = true, packets+f.packets
		}
	}
	return packets, there
}

// mustPass are the flows of a node that packets between nodes and in one node
// must have passed: a table, and words of the flow.
func mustPass(n network.Network, self, peer network.Node) [][]string {
	all := [][]string{
		{"PipelineRootClassifier", "priority=200,arp"}, {"PipelineRootClassifier", "priority=200,ip"},
		{"ARPSpoofGuard", "arp_spa=" + self.PodCIDR.Addr().Next().Next().String()}, {"ARPResponder", "actions=NORMAL"},
		{"Classifier", "priority=190,"}, {"SpoofGuard", "dl_src=", "nw_src="}, {"UnSNAT", "priority=0"}, {"ConntrackZone", "priority=200", "ct("},
		{"ConntrackState", "priority=190", "ct_mark=0/0x10"}, {"PreRoutingClassifier", "priority=200"}, {"ServiceLB", "priority=0"},
		{"AntreaPolicyEgressRule", "ct_state=-new+est"}, {"L3Forwarding", "reg0=0/0x200", "nw_dst=" + self.PodCIDR.String()},
		{"L3DecTTL", "dec_ttl"}, {"L2ForwardingCalc", "dl_dst="}, {"IngressSecurityClassifier", "priority=0"},
		{"AntreaPolicyIngressRule", "ct_state=-new+est"}, {"ConntrackCommit", "ct(commit"}, {"Output", "output:NXM_NX_REG1[]"},
	}
	to := []string{"L3Forwarding", "nw_dst=" + peer.PodCIDR.String(), "set_field:0x20/0xf0->reg0"} // by the gateway
	if n.Encapsulation != "" {
		to = []string{"L3Forwarding", "nw_dst=" + peer.PodCIDR.String(), "set_field:" + peer.Address.Addr().String() + "->tun_dst"}
		all = append(all, []string{"Classifier", "set_field:0x1/0xf->reg0"}, []string{"L2ForwardingCalc", "dl_dst=aa:bb:cc:dd:ee:ff"})
	} else {
		all = append(all, []string{"Classifier", "set_field:0x8000000/0x8000000->reg4"}) // from another node, by the gateway
	}
	all = append(all, to)
	if strings.HasSuffix(n.Name, "-policy") {
		all = append(all, []string{"EgressRule", "conj_id=2"}, []string{"IngressRule", "conj_id=3"},
			[]string{"EgressMetric", "ct_label=0x200000000"}, []string{"IngressMetric", "ct_label=0x3"})
	}
	return all
}

// flowsAreHit looks at a node's switch for the flows that packets must have
// passed. A switch adds up its counters twice a second.
func flowsAreHit(t *testing.T, l *Lab, n network.Network) {
	t.Helper()
	if strings.HasPrefix(n.Name, "ovn/") {
		ovnFlowsAreHit(t, l.ordered[0].nodes[0], n)
	}
	if !strings.HasPrefix(n.Name, "antrea/") {
		return
	}
	c := l.ordered[0]
	wereHit(t, c.nodes[0], mustPass(n, c.nodes[0], c.nodes[1]))
}

// wereHit waits until every flow of a node, a table and words of its text, has
// counted packets.
func wereHit(t *testing.T, n network.Node, want [][]string) {
	t.Helper()
	var missing []string
	for range 20 {
		all := flows(t, n)
		missing = nil
		for _, w := range want {
			if packets, there := packetsOf(all, w[0], w[1:]...); packets == 0 {
				missing = append(missing, fmt.Sprintf("%v (there: %v)", w, there))
			}
		}
		if len(missing) == 0 {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Errorf("flows of %s that no packet passed:\n%s", n.Name, strings.Join(missing, "\n"))
}

// TestOVSDropsForgedSources: a pod cannot send with an IP or hardware address
// that is not its own, nor answer ARP with one.
func TestOVSDropsForgedSources(t *testing.T) {
	for _, n := range ovsNetworks() {
		t.Run(n.Name, func(t *testing.T) {
			t.Parallel()
			l := New(options(newRunner(t), t.TempDir()))
			all := cells(n.Name)
			buildLab(t, l, all)
			c := l.clusters[keyOf(all[0])]
			for _, cell := range all {
				from, to, err := sites(cell, false)
				if err != nil {
					t.Fatal(err)
				}
				if err := ask(c.ns(from), echo(t, c.ns(to), c.address(to)), 10); err != nil { // neighbours are found
					t.Fatal(err)
				}
				received := listen(t, c.ns(to), c.address(to), 7777)
				before, _ := packetsOf(flows(t, c.nodes[0]), "SpoofGuard", "priority=0")
				for range 3 {
					sendRaw(t, c.ns(from), c.address(from).Next().Next().Next(), c.address(to), 7777)
				}
				sendRaw(t, c.ns(from), c.address(from), c.address(to), 7777)
				if got := <-received; got != c.address(from) {
					t.Errorf("%s: a packet from %s came through, or the pod's own did not", cell.Placement, got)
				}
				awaitPackets(t, c.nodes[0], before+3, "SpoofGuard", "priority=0")
			}
			sendARP(t, c.ns(site{1, 1}), c.address(site{1, 1}).Next().Next().Next())
			awaitPackets(t, c.nodes[0], 1, "ARPSpoofGuard", "priority=0")
		})
	}
}

// awaitPackets waits until a flow has counted exactly so many.
func awaitPackets(t *testing.T, n network.Node, want int, table string, words ...string) {
	t.Helper()
	got := 0
	for range 20 {
		if got, _ = packetsOf(flows(t, n), table, words...); got == want {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Errorf("%s %v of %s counted %d packets, want %d", table, words, n.Name, got, want)
}

// sendARP says to all that an address is at a pod's device.
func sendARP(t *testing.T, ns netns.NS, claimed netip.Addr) {
	t.Helper()
	err := netns.Do(ns, func() error {
		dev, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		ip := claimed.As4()
		b := slices.Concat([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, dev.HardwareAddr, []byte{0x08, 0x06},
			[]byte{0, 1, 8, 0, 6, 4, 0, 1}, dev.HardwareAddr, ip[:], make([]byte, 6), ip[:])
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, b, 0, &unix.SockaddrLinklayer{Ifindex: dev.Index, Protocol: 0x0608})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestOVSPolicyDenies sends to a port that the policy does not allow, and then
// from a pod that the policy does not have any more.
func TestOVSPolicyDenies(t *testing.T) {
	for _, n := range ovsNetworks() {
		if n.Policy {
			t.Run(n.Name, func(t *testing.T) {
				t.Parallel()
				ovsPolicyDenies(t, n.Name)
			})
		}
	}
}

func ovsPolicyDenies(t *testing.T, name string) {
	l, all := policyDenies(t, name)
	c := l.clusters[keyOf(all[0])]
	wereHit(t, c.nodes[0], [][]string{{"EgressDefaultRule", "actions=drop"}})
	// The other node's ingress rule, without the sender.
	from, to, err := sites(result.Cell{Path: result.PathPodToPod, Placement: result.InterHost}, false)
	if err != nil {
		t.Fatal(err)
	}
	ofctl(t, c.nodes[1], "del-flows", "br-int", fmt.Sprintf("table=%d,ip,nw_src=%s", slices.Index(antrea.Tables(), "IngressRule"), c.address(from)))
	answered(t, c.ns(from), netip.AddrPort{}, deaf(t, c.ns(to), netip.AddrPortFrom(c.address(to), 7070)))
	wereHit(t, c.nodes[1], [][]string{{"IngressDefaultRule", "actions=drop"}})
}

// TestOVSIsSaid: which datapath and which version is in the environment.
func TestOVSIsSaid(t *testing.T) {
	t.Parallel()
	l := New(options(newRunner(t), t.TempDir()))
	buildLab(t, l, cells("antrea/noencap")[:1])
	env, err := l.Environment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := env.Networks["antrea/noencap"].Datapath
	if !regexp.MustCompile(`^Open vSwitch \d+\.\d+\.\d+, in (the kernel|user space)`).MatchString(got) {
		t.Errorf("datapath %q", got)
	}
	if labtest.InVM() && !strings.Contains(got, "in the kernel") {
		t.Errorf("datapath %q in a kernel that has it", got)
	}
	// What was built is what the network says.
	n := l.ordered[0].nodes[0]
	out, err := newRunner(t).Run(t.Context(), exec.Cmd{
		Argv: []string{"ovs-vsctl", "--db=unix:" + filepath.Join(n.DataDir, "ovs", "db.sock"), "get", "Bridge", "br-int", "datapath_type"},
	})
	if err != nil || strings.Contains(got, "user space") != (strings.TrimSpace(string(out.Stdout)) == "netdev") {
		t.Errorf("said %q, is %s (%v)", got, out.Stdout, err)
	}
}
