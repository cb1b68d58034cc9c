package ovn

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

// TestKubeOVNTopology: the pods of all nodes have one logical switch, each node has a port in
// the other one, and the router sends what a node's pods send elsewhere to that port.
func TestKubeOVNTopology(t *testing.T) {
	text := strings.Join(kubeOVNTopology(testNodes()), " ") + " --"
	for want, times := range map[string]int{
		"-- lr-add ovn-cluster --": 1, "-- lr-add ": 1, "-- ls-add ": 2, "-- lrp-add ": 2, "-- lr-route-add ": 1, "-- lr-policy-add ": 6,
		"options:requested-tnl-key=1 options:mac_binding_age_threshold=300 options:dynamic_neigh_routers=true --":                1,
		"-- ls-add join -- set Logical_Switch join other_config:requested-tnl-key=2 --":                                          1,
		"-- ls-add ovn-default -- set Logical_Switch ovn-default other_config:requested-tnl-key=3 --":                            1,
		"-- lrp-add ovn-cluster ovn-cluster-ovn-default 0a:58:0a:f4:00:01 10.244.0.1/16 --":                                      1,
		"-- lrp-add ovn-cluster ovn-cluster-join 0a:58:64:40:00:01 100.64.0.1/16 --":                                             1,
		"-- lsp-add ovn-default ovn-default-ovn-cluster -- lsp-set-type ovn-default-ovn-cluster router --":                       1,
		"-- lsp-set-addresses join-ovn-cluster router -- lsp-set-options join-ovn-cluster router-port=ovn-cluster-join --":       1,
		"-- lr-policy-add ovn-cluster 31000 ip4.dst == 10.244.0.0/16 allow --":                                                   1,
		"-- lr-policy-add ovn-cluster 31000 ip4.dst == 100.64.0.0/16 allow --":                                                   1,
		"-- lr-route-add ovn-cluster 0.0.0.0/0 100.64.0.1 --":                                                                    1,
		"-- lsp-add join node-node2 -- lsp-set-addresses node-node2 0a:58:64:40:00:03 100.64.0.3 -- pg-add ovn.default.node2 --": 1,
		"-- lr-policy-add ovn-cluster 30000 ip4.dst == 198.18.0.2 reroute 100.64.0.3 --":                                         1,
		"-- lr-policy-add ovn-cluster 29000 ip4.src == $ovn.default.node1_ip4 reroute 100.64.0.2 --":                             1,
	} {
		if got := strings.Count(text, want); got != times {
			t.Errorf("%q is there %d times, want %d, in %s", want, got, times, text)
		}
	}
}

// TestKubeOVNNode: a node's ovn0 has the port and the address that the router knows, and its
// pods the group.
func TestKubeOVNNode(t *testing.T) {
	nodes := testNodes()
	args := kubeOVN().bridge(nodes[1], ovnRemote(nodes[0].Address.Addr()), dataplane.OVSUser, 1400)
	for _, want := range []string{`mac="0a:58:64:40:00:03"`, "mtu_request=1400", "external_ids:iface-id=node-node2", "external_ids:ovn-encap-ip=198.18.0.2"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is not in %q", want, args)
		}
	}
	many := nodes[0]
	many.Index = 300
	if got := kubeOVNAddress(many); got != netip.MustParseAddr("100.64.1.45") {
		t.Errorf("node 300 has %s", got)
	}
	n := KubeOVN()
	if n.PodMTU(1500) != 1400 || n.Policy {
		t.Errorf("MTU %d, policy %v", n.PodMTU(1500), n.Policy)
	}
	list, err := n.Conflist(nodes[1], nodes)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"switch": "` + kubeOVNPods + `"`, `"group": "` + kubeOVNGroup(nodes[1]) + `"`, `"subnet": "10.244.0.0/16", "rangeStart": "10.244.2.2", "rangeEnd": "10.244.2.254"`} {
		if !strings.Contains(string(list), want) {
			t.Errorf("%s is not in %s", want, list)
		}
	}
}

// TestOVNLogicalPort: OVN-Kubernetes' pods send from their own addresses only, Kube-OVN's are
// in the group of their node.
func TestOVNLogicalPort(t *testing.T) {
	const port = "-- --may-exist lsp-add s p -- lsp-set-addresses p m a"
	for want, conf := range map[string]ovnConf{
		port + " -- lsp-set-port-security p m a":                                          {Switch: "s", PortSecurity: true},
		port + " -- --id=@port get Logical_Switch_Port p -- add Port_Group g ports @port": {Switch: "s", Group: "g"},
	} {
		if got := strings.Join(conf.logicalPort("p", "m a"), " "); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestKubeOVNRules: what pods send past the pods' range is masqueraded.
func TestKubeOVNRules(t *testing.T) {
	filter, nat := &dataplane.Table{Name: "filter"}, &dataplane.Table{Name: "nat"}
	kubeOVNRules(testNodes()[0], filter, nat)
	for want, in := range map[string]*dataplane.Table{
		"-A POSTROUTING -j OVN-POSTROUTING\n": nat, "-A OVN-MASQUERADE -j MASQUERADE\n": nat,
		"-A OVN-POSTROUTING -s 10.244.0.0/16 ! -d 10.244.0.0/16 -j OVN-MASQUERADE\n": nat,
		"-A FORWARD -d 10.244.0.0/16 -j ACCEPT\n":                                    filter, "-A INPUT -s 100.64.0.0/16 -j ACCEPT\n": filter,
	} {
		if strings.Count(in.String(), want) != 1 {
			t.Errorf("%q is not once in %s", want, in)
		}
	}
}

// TestKubeOVNRefusesServices: also where the network is accelerated.
func TestKubeOVNRefusesServices(t *testing.T) {
	for name, refused := range map[string]bool{"ovn/kube-ovn": true, "ovn/kube-ovn+sockmap": true, "ovn/geneve": false, "bridge": false} {
		if why := ServiceProxy().Refuses(network.Network{Name: name}, result.Cell{}); (why != "") != refused {
			t.Errorf("%s: %q", name, why)
		}
	}
}
