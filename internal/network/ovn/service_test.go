package ovn

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/network"
)

// testServices are two ports of one service by TCP, one of it by UDP, and one that has neither
// a NodePort nor endpoints.
func testServices() []network.Service {
	at := netip.MustParseAddrPort
	return []network.Service{
		{Name: "default/echo", PortName: "a", Protocol: "tcp", Address: at("10.96.0.10:80"), NodePort: 30080, Endpoints: []netip.AddrPort{at("10.244.1.3:8080"), at("10.244.2.3:8080")}},
		{Name: "default/echo", PortName: "b", Protocol: "tcp", Address: at("10.96.0.10:81"), NodePort: 30081, Endpoints: []netip.AddrPort{at("10.244.1.3:8081")}},
		{Name: "default/echo", PortName: "c", Protocol: "udp", Address: at("10.96.0.10:80"), NodePort: 30080, Endpoints: []netip.AddrPort{at("10.244.1.3:8080")}},
		{Name: "default/none", Protocol: "tcp", Address: at("10.96.0.11:80")},
	}
}

// joined is commands as one line.
func joined(commands [][]string) string { return strings.Join(slices.Concat(commands...), " ") }

// TestOVNBalancers: a service has one load balancer for each protocol, with all of its ports.
func TestOVNBalancers(t *testing.T) {
	all := ovnBalancers(testServices(), ovnForCluster, ovnClusterVIP)
	text := joined(ovnBalance(all, nil, ovnForCluster, "Load_Balancer_Group", ovnBalancerGroup))
	for _, want := range []string{
		`create Load_Balancer name=Service_default/echo_TCP_cluster protocol=tcp vips={"10.96.0.10:80"="10.244.1.3:8080,10.244.2.3:8080","10.96.0.10:81"="10.244.1.3:8081"} options:`,
		`create Load_Balancer name=Service_default/echo_UDP_cluster protocol=udp vips={"10.96.0.10:80"="10.244.1.3:8080"} options:`,
		`create Load_Balancer name=Service_default/none_TCP_cluster protocol=tcp vips={"10.96.0.11:80"=""} options:`,
		`options:hairpin_snat_ip="169.254.169.5 fd69::5" `, `external_ids:k8s.ovn.org/owner="default/none"`,
		"-- add Load_Balancer_Group clusterLBGroup load_balancer @load_balancer_group2",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	node := testNodes()[1]
	text = joined(ovnBalance(ovnBalancers(testServices(), ovnForNode(node), ovnNodeVIP(node)), nil, ovnForNode(node), "Logical_Switch", node.Name))
	for _, want := range []string{
		`name=Service_default/echo_TCP_node_switch_node2 protocol=tcp vips={"198.18.0.2:30080"="10.244.1.3:8080,10.244.2.3:8080","198.18.0.2:30081"=`,
		"-- add Logical_Switch node2 load_balancer @logical_switch1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if strings.Contains(text, "default/none") {
		t.Errorf("a service without a NodePort has one: %s", text)
	}
}

// TestOVNBalancersAreReplaced: existing ones get their endpoints, those that are gone
// are destroyed, those of other nodes stay.
func TestOVNBalancersAreReplaced(t *testing.T) {
	has := []string{"Service_default/none_TCP_cluster", "Service_default/old_TCP_cluster", "Service_default/echo_TCP_node_switch_node1", "node1"}
	services := testServices()[3:]
	got := joined(ovnBalance(ovnBalancers(services, ovnForCluster, ovnClusterVIP), has, ovnForCluster, "Load_Balancer_Group", ovnBalancerGroup))
	want := `-- set Load_Balancer Service_default/none_TCP_cluster vips={"10.96.0.11:80"=""} -- destroy Load_Balancer Service_default/old_TCP_cluster`
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := joined([][]string{ovnGroup(has)}); got != "-- --id=@group create Load_Balancer_Group name=clusterLBGroup -- add Logical_Switch node1 load_balancer_group @group" {
		t.Errorf("%s", got)
	}
}

// TestOVNServiceChanged: the load balancers of one service get one address's endpoints.
func TestOVNServiceChanged(t *testing.T) {
	node, services := testNodes()[0], testServices()
	for i, want := range map[int]string{
		1: `-- set Load_Balancer Service_default/echo_TCP_cluster vips:"10.96.0.10:81"="10.244.1.3:8081" ` +
			`-- set Load_Balancer Service_default/echo_TCP_node_switch_node1 vips:"198.18.0.1:30081"="10.244.1.3:8081"`,
		3: `-- set Load_Balancer Service_default/none_TCP_cluster vips:"10.96.0.11:80"=""`,
	} {
		if got := strings.Join(ovnChanged(node, services[i]), " "); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestOVNNodePortRules: what enters OVN has the address to which answers find back.
func TestOVNNodePortRules(t *testing.T) {
	node := testNodes()[1]
	for tunnels, source := range map[bool]string{true: "10.244.2.2", false: "169.254.169.2"} {
		text := ovnNodePortRules(node, testServices(), tunnels).String()
		for want, times := range map[string]int{
			"-A OVN-KUBE-NODEPORT ": 3,
			"-A OVN-KUBE-NODEPORT -p udp -m addrtype --dst-type LOCAL -m udp --dport 30080 -j DNAT --to-destination 10.96.0.10:80\n": 1,
			"-A OVN-KUBE-SNAT-MGMTPORT -o ovn-k8s-mp0 -d 10.96.0.0/12 -j SNAT --to-source " + source + "\n":                          1,
		} {
			if got := strings.Count(text, want); got != times {
				t.Errorf("%q is there %d times, want %d, in %s", want, got, times, text)
			}
		}
		if got := strings.Contains(text, "MASQUERADE"); got == tunnels {
			t.Errorf("with tunnels %v: masquerade %v", tunnels, got)
		}
	}
	want := "-- --may-exist --policy=src-ip lr-route-add ovn_cluster_router 169.254.169.0/24 10.244.2.2 " +
		"-- --may-exist --policy=dst-ip lr-route-add ovn_cluster_router 169.254.169.0/24 10.244.2.2"
	if got := strings.Join(ovnMasqueradeRoutes(node), " "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestOVNChunks: no command is divided or lost, and a large one is alone.
func TestOVNChunks(t *testing.T) {
	commands := [][]string{{"--", "a"}, {"--", "b"}, {"--", strings.Repeat("c", 100)}, {"--", "d"}}
	got := ovnChunks(commands, 50)
	want := [][]string{{"--", "a", "--", "b"}, commands[2], commands[3]}
	if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := ovnChunks(nil, 50); len(got) > 0 {
		t.Errorf("%q of none", got)
	}
}

// TestOVNFindsTheZonesDatabase: the zone's first node has the databases, another a link.
func TestOVNFindsTheZonesDatabase(t *testing.T) {
	first, second := ovn{dir: t.TempDir()}, ovn{dir: t.TempDir() + "/ovn"}
	if _, err := second.hasDatabases(); err == nil {
		t.Error("a node that has none is no error")
	}
	if err := second.usesDatabases(first); err != nil {
		t.Fatal(err)
	}
	if own, err := second.hasDatabases(); own || err != nil {
		t.Errorf("the second has databases: %v (%v)", own, err)
	}
}
