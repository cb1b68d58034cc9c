package ovn

import (
	_ "embed"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed kubeovn.conflist
var kubeOVNConflist string

// What Kube-OVN calls the parts of its default network (dist/images/install.sh,
// pkg/util/const.go, pkg/ovs/ovn-nb-logical_switch.go).
const (
	kubeOVNName   = "ovn/kube-ovn"
	kubeOVNRouter = "ovn-cluster"
	kubeOVNPods   = "ovn-default" // the logical switch of all pods
	kubeOVNJoin   = "join"        // the logical switch of the nodes
	kubeOVNDevice = "ovn0"        // the node's own device in it

	// kubeOVNOverhead is what Kube-OVN gives the tunnel of the link's MTU, in bytes
	// (GeneveHeaderLength, pkg/daemon/config.go).
	kubeOVNOverhead = 100
)

// Priorities of the router's policies (pkg/util/const.go): packets to a logical switch,
// packets to a node, packets from the pods of a node.
const (
	kubeOVNToSubnet, kubeOVNToNode, kubeOVNFromNode = "31000", "30000", "29000"
)

// KubeOVN is OVN itself with Kube-OVN's default topology: one logical switch for the pods of
// all nodes. Packets between pods pass no router.
//
// It follows Kube-OVN v1.17.0, commit 1533681: pkg/controller (init.go, subnet.go, node.go and
// vpc.go have the switches, the router, its policies and its route), pkg/daemon
// (ovs_linux.go has ovn0, controller_linux.go the node's routes, gateway_linux.go its rules).
// docs/real.md lists what is different and left out. Whether Kube-OVN's OVN 25.03 with its own
// patches computes the same flows as Debian's 23.03 was not verified.
func KubeOVN() network.Network {
	n := ovnMode{topology: kubeOVN(), tunnel: geneveTunnel()}.network(kubeOVNName)
	n.Summary = "OVN itself, with Kube-OVN's default topology: one logical switch for the pods of all nodes, Geneve between nodes"
	return n
}

// kubeOVN is the topology of Kube-OVN's default network.
func kubeOVN() topology {
	return topology{
		overhead: kubeOVNOverhead, conflist: kubeOVNConflist,
		noServices: "its pods' packets pass Open vSwitch, where Kube-OVN has load balancers of OVN for them, which the lab does not make",
		device:     kubeOVNDevice,
		port:       kubeOVNPort,
		address: func(self network.Node) netip.Prefix {
			return netip.PrefixFrom(kubeOVNAddress(self), kubeOVNNodes().Bits())
		},
		gateway: func(network.Node) netip.Addr { return kubeOVNNodes().Addr().Next() },
		source:  func(self network.Node) netip.Addr { return self.Address.Addr() },
		logical: kubeOVNTopology,
		rules:   kubeOVNRules,
	}
}

// kubeOVNNodes is the subnet of the nodes' own devices.
func kubeOVNNodes() netip.Prefix { return netip.MustParsePrefix("100.64.0.0/16") }

// kubeOVNAddress is that of a node's ovn0. Kube-OVN takes any free one.
func kubeOVNAddress(self network.Node) netip.Addr {
	a := kubeOVNNodes().Addr().As4()
	i := 1 + self.Index // the first is the router's
	return netip.AddrFrom4([4]byte{a[0], a[1], byte(i >> 8), byte(i)})
}

// kubeOVNPort is the logical port of a node's ovn0.
func kubeOVNPort(self network.Node) string { return "node-" + self.Name }

// kubeOVNGroup is the port group of a node's pods, after which OVN names the address set of
// the pods' addresses (getOverlaySubnetsPortGroupName in pkg/controller/subnet.go).
func kubeOVNGroup(self network.Node) string {
	return strings.ReplaceAll(kubeOVNPods+"."+self.Name, "-", ".")
}

// kubeOVNTopology is ovn-nbctl's commands for the logical network. The router's policies are
// those of Kube-OVN's distributed gateway: what a pod sends to no pod and no node leaves by
// ovn0 of its own node, and what it sends to a node enters that node by its ovn0. Policies
// come after routes, so that a packet needs the default route in order to meet one.
func kubeOVNTopology(nodes []network.Node) []string {
	args := []string{
		"--", "lr-add", kubeOVNRouter, "--", "set", "Logical_Router", kubeOVNRouter,
		"options:requested-tnl-key=1", "options:mac_binding_age_threshold=300", "options:dynamic_neigh_routers=true",
	}
	args = append(args, kubeOVNSwitch(kubeOVNJoin, kubeOVNNodes(), 2)...)
	args = append(args, kubeOVNSwitch(kubeOVNPods, network.Pods(), 3)...)
	args = append(args, "--", "lr-route-add", kubeOVNRouter, "0.0.0.0/0", kubeOVNNodes().Addr().Next().String())
	for _, n := range nodes {
		port, address, group := kubeOVNPort(n), kubeOVNAddress(n), kubeOVNGroup(n)
		args = append(args,
			"--", "lsp-add", kubeOVNJoin, port, "--", "lsp-set-addresses", port, ovnMAC(address).String()+" "+address.String(),
			"--", "pg-add", group,
			"--", "lr-policy-add", kubeOVNRouter, kubeOVNToNode, "ip4.dst == "+n.Address.Addr().String(), "reroute", address.String(),
			"--", "lr-policy-add", kubeOVNRouter, kubeOVNFromNode, "ip4.src == $"+group+"_ip4", "reroute", address.String(),
		)
	}
	return args
}

// kubeOVNSwitch is the commands for a logical switch: its port to the router, which has the
// first address of its subnet, and the policy that lets packets to the subnet pass. Kube-OVN
// has OVN choose the key.
func kubeOVNSwitch(name string, subnet netip.Prefix, key int) []string {
	toRouter, router, gateway := name+"-"+kubeOVNRouter, kubeOVNRouter+"-"+name, subnet.Addr().Next()
	return []string{
		"--", "ls-add", name, "--", "set", "Logical_Switch", name, fmt.Sprintf("other_config:requested-tnl-key=%d", key),
		"--", "lrp-add", kubeOVNRouter, router, ovnMAC(gateway).String(), netip.PrefixFrom(gateway, subnet.Bits()).String(),
		"--", "lsp-add", name, toRouter, "--", "lsp-set-type", toRouter, "router",
		"--", "lsp-set-addresses", toRouter, "router", "--", "lsp-set-options", toRouter, "router-port=" + router,
		"--", "lr-policy-add", kubeOVNRouter, kubeOVNToSubnet, "ip4.dst == " + subnet.String(), "allow",
	}
}

// kubeOVNRules are Kube-OVN's for packets between a node and pods (setIptables in
// pkg/daemon/gateway_linux.go), with the subnets in place of its sets: ovn40subnets has both,
// ovn40subnets-nat that of the pods.
func kubeOVNRules(_ network.Node, filter, nat *dataplane.Table) {
	const toPods, masquerade = "OVN-POSTROUTING", "OVN-MASQUERADE"
	for _, subnet := range []netip.Prefix{network.Pods(), kubeOVNNodes()} {
		for _, chain := range []string{"INPUT", "FORWARD"} {
			filter.Add(chain, fmt.Sprintf("-s %s -j ACCEPT", subnet), fmt.Sprintf("-d %s -j ACCEPT", subnet))
		}
	}
	nat.Chain(toPods,
		fmt.Sprintf("-s %s -d %s -j %s", network.Pods(), network.Pods(), masquerade),
		"-p tcp -m tcp --tcp-flags SYN NONE -m conntrack --ctstate NEW -j RETURN",
		fmt.Sprintf("-s %s ! -d %s -j %s", network.Pods(), network.Pods(), masquerade))
	nat.Chain(masquerade, "-j MASQUERADE")
	nat.Add("POSTROUTING", "-j "+toPods)
}

// kubeOVNRefuses says why the service proxy ovn cannot serve a network; "" where it can.
func kubeOVNRefuses(n network.Network, _ result.Cell) string {
	if !strings.HasPrefix(n.Name, kubeOVNName) {
		return ""
	}
	return "its load balancers are made for OVN-Kubernetes' logical switches and router, and Kube-OVN has others"
}
