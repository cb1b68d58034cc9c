package ovn

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// testNodes are two nodes as a lab makes them.
func testNodes() []network.Node {
	var nodes []network.Node
	for i := 1; i <= 2; i++ {
		nodes = append(nodes, network.Node{
			Name: fmt.Sprintf("node%d", i), Index: i,
			Address: netip.MustParsePrefix(fmt.Sprintf("198.18.0.%d/24", i)),
			PodCIDR: netip.MustParsePrefix(fmt.Sprintf("10.244.%d.0/24", i)),
		})
	}
	return nodes
}

// TestOVNTopology: each node's logical switch is on the one router, its three addresses
// differ, and no two of its tunnel keys are one.
func TestOVNTopology(t *testing.T) {
	nodes := testNodes()
	text := strings.Join(ovnTopology(nodes), " ")
	for _, want := range []string{
		"-- lr-add ovn_cluster_router ",
		"-- lrp-add ovn_cluster_router rtos-node2 0a:58:0a:f4:02:01 10.244.2.1/24 ",
		"-- lsp-add node2 stor-node2 -- lsp-set-type stor-node2 router ", "-- lsp-set-options stor-node2 router-port=rtos-node2 ",
		"-- lsp-add node2 k8s-node2 -- lsp-set-addresses k8s-node2 0a:58:0a:f4:02:02 10.244.2.2 ",
		"-- --policy=src-ip lr-route-add ovn_cluster_router 10.244.2.0/24 10.244.2.2",
		"set Logical_Router ovn_cluster_router options:requested-tnl-key=1 ",
		"other_config:requested-tnl-key=2 ", "other_config:requested-tnl-key=3 ",
	} {
		if strings.Count(text+" ", want) != 1 {
			t.Errorf("%q is there %d times in %s", want, strings.Count(text, want), text)
		}
	}
	for _, n := range nodes {
		first, last := ovnFirst(n), network.LastAddress(n.PodCIDR)
		if pods := int(last.As4()[3]) - int(first.As4()[3]) + 1; pods != 252 { // what the lab may ask of a node
			t.Errorf("%s has room for %d pods", n.Name, pods)
		}
	}
}

// TestOVNPolicies: each policy has its port group, its peers and its rules; what none allows
// is denied in both directions.
func TestOVNPolicies(t *testing.T) {
	text := strings.Join(append(ovnPolicies(2), "--"), " ")
	for want, times := range map[string]int{
		"-- pg-add ": 5,
		"-- create Address_Set name=peers0000 -- ":                                                                        1,
		`-- create Address_Set name=peers0002 addresses="198.19.0.2" -- `:                                                 1,
		"acl-add ingressDefaultDeny to-lport 1000 outport == @ingressDefaultDeny drop -- ":                                1,
		"--apply-after-lb acl-add egressDefaultDeny from-lport 1000 inport == @egressDefaultDeny drop -- ":                1,
		"to-lport 1001 (arp || nd) && outport == @ingressDefaultDeny allow -- ":                                           1,
		"to-lport 1001 ip4.src == $peers0002 && tcp && 1024 <= tcp.dst <= 65535 && outport == @policy0002 allow-related":  1,
		"from-lport 1001 ip4.dst == $peers0000 && udp && 1024 <= udp.dst <= 65535 && inport == @policy0000 allow-related": 1,
		"to-lport 1001 ip4.src == 169.254.169.5 && outport == @ingressDefaultDeny allow-related":                          1,
		" allow-related": 13,
	} {
		if got := strings.Count(text, want); got != times {
			t.Errorf("%q is there %d times, want %d, in %s", want, got, times, text)
		}
	}
}

// TestOVNMembers: the peers are all nodes and pods of the lab, the ports those of the zone.
func TestOVNMembers(t *testing.T) {
	nodes := testNodes()
	pods := []network.Pod{
		{ID: "one", Node: 1, Address: netip.MustParseAddr("10.244.1.3")}, {ID: "two", Node: 2, Address: netip.MustParseAddr("10.244.2.3")},
	}
	const masquerade = `addresses="169.254.169.2",`
	peers := `-- set Address_Set peers0000 addresses="198.18.0.1","10.244.1.2","198.18.0.2","10.244.2.2","10.244.1.3","10.244.2.3"`
	for _, c := range []struct {
		mode ovnMode
		zone []network.Node
		pods []network.Pod
		want string
	}{
		{ovnMode{tunnel: geneveTunnel()}, nodes, pods, peers + " -- pg-set-ports ingressDefaultDeny one two -- pg-set-ports egressDefaultDeny one two -- pg-set-ports policy0000 one two"},
		{ovnMode{}, nodes[1:], pods, strings.Replace(peers, "addresses=", masquerade, 1) + " -- pg-set-ports ingressDefaultDeny two -- pg-set-ports egressDefaultDeny two -- pg-set-ports policy0000 two"},
		{ovnMode{}, nodes[1:], nil, strings.TrimSuffix(strings.Replace(peers, "addresses=", masquerade, 1), `,"10.244.1.3","10.244.2.3"`)},
	} {
		if got := strings.Join(c.mode.members(c.zone, nodes, c.pods), " "); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// TestOVNSwitch: ovn-controller finds the southbound database, and the node's own device has
// the port that the topology gives it.
func TestOVNSwitch(t *testing.T) {
	nodes := testNodes()
	for _, datapath := range []string{dataplane.OVSUser, dataplane.OVSKernel} {
		args := ovnKubernetes().bridge(nodes[1], ovnRemote(nodes[0].Address.Addr()), datapath, 8942)
		for _, want := range []string{
			"external_ids:system-id=node2", "external_ids:ovn-remote=tcp:198.18.0.1:6642", "external_ids:ovn-encap-ip=198.18.0.2",
			"external_ids:ovn-bridge-datapath-type=" + datapath, "datapath_type=" + datapath,
			`mac="0a:58:0a:f4:02:02"`, "mtu_request=8942", "external_ids:iface-id=k8s-node2",
		} {
			if !slices.Contains(args, want) {
				t.Errorf("%s is not in %q", want, args)
			}
		}
	}
}

func TestOVNMAC(t *testing.T) {
	if got := ovnMAC(netip.MustParseAddr("10.244.1.254")).String(); got != "0a:58:0a:f4:01:fe" {
		t.Errorf("%s", got)
	}
	if a, b := ovnHostDevice("cnb-1-node1-pod1"), ovnHostDevice("cnb-1-node1-pod2"); a == b || len(a) != 15 {
		t.Errorf("devices %s and %s", a, b)
	}
}

func TestMissingOVN(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := ovnTools().Probe(); err == nil || err.Error() != "ovn-controller is not installed: apt-get install ovn-central ovn-host" {
		t.Errorf("%v", err)
	}
	if _, err := ovnVersion(t.Context()); err == nil || !strings.Contains(err.Error(), "ovn-controller") {
		t.Errorf("version: %v", err)
	}
}

// TestOVNPluginNeedsItsConfiguration: each missing key is one clear error, before anything
// is made.
func TestOVNPluginNeedsItsConfiguration(t *testing.T) {
	for conf, want := range map[string]string{
		"{": "configuration: ", `{}`: "are required", `{"ovs":"a","northbound":"b"}`: `"switch" are required`,
	} {
		for verb, call := range map[string]func(*skel.CmdArgs) error{"ADD": ovnAdd, "DEL": ovnDel} {
			if err := call(&skel.CmdArgs{StdinData: []byte(conf)}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %s: %v, want %s", verb, conf, err, want)
			}
		}
	}
}

// TestOVNWaitsForItsDatabase: a database whose socket does not exist yet is asked again, and
// another error ends the waiting.
func TestOVNWaitsForItsDatabase(t *testing.T) {
	v := ovn{dir: t.TempDir()}
	const script = `n=$(cat n 2>/dev/null); n=$((n+1)); echo $n >n; [ $n -gt 2 ] || { echo "ovn-nbctl: unix:nb.sock: $0" >&2; exit 1; }`
	ask := func(word string) error {
		return v.await(t.Context(), "sh", "-c", "cd "+t.TempDir()+"; "+script, word)
	}
	if err := ask("database connection failed (No such file or directory)"); err != nil {
		t.Errorf("a socket that comes: %v", err)
	}
	if err := ask("unknown command"); err == nil || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("another error: %v", err)
	}
	for _, name := range []string{"OVN_NB_DAEMON=", "OVN_RUNDIR=" + v.dir} {
		if !slices.Contains(v.env(), name) {
			t.Errorf("%s is not in %q", name, v.env())
		}
	}
}
