package ovn

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// Priorities of access rules, as OVN-Kubernetes gives them (go-controller/pkg/types).
const (
	ovnDenyPriority  = "1000"
	ovnAllowPriority = "1001"
)

// Port groups of the pods that any policy selects. All that no policy allows is dropped there.
const ovnDenyIngress, ovnDenyEgress = "ingressDefaultDeny", "egressDefaultDeny"

// ovnPolicy and ovnPeers name policy i: the port group of the pods that it selects, and the
// address set of the peers that it allows. Policy 0 allows the lab's traffic.
func ovnPolicy(i int) string { return fmt.Sprintf("policy%04d", i) }

func ovnPeers(i int) string { return fmt.Sprintf("peers%04d", i) }

// GenevePolicy is Geneve where every pod is selected by one policy.
func GenevePolicy() network.Network { return underPolicy(geneveMode(), Geneve()) }

// NoOverlayPolicy is NoOverlay where every pod is selected by one policy.
func NoOverlayPolicy() network.Network { return underPolicy(noOverlayMode(), NoOverlay()) }

// underPolicy is a network of that mode, with policies.
func underPolicy(m ovnMode, plain network.Network) network.Network {
	m.policy = true
	n := m.network(plain.Name + "-policy")
	n.Summary, n.Policy = plain.Summary+", with a NetworkPolicy as access rules", true
	return n
}

// ovnPolicies is ovn-nbctl's commands for the policies of a zone, before there are pods. Each
// has what OVN-Kubernetes makes of a NetworkPolicy (go-controller/pkg/ovn/policy.go): a port
// group, and rules that allow connections with peers of an address set. The others allow the
// same with peers that do not exist.
func ovnPolicies(others int) []string {
	args := []string{"--", "pg-add", ovnDenyIngress, "--", "pg-add", ovnDenyEgress}
	args = append(args, ovnIngress(ovnDenyIngress, ovnDenyPriority, "", "drop")...)
	args = append(args, ovnIngress(ovnDenyIngress, ovnAllowPriority, "(arp || nd)", "allow")...)
	args = append(args, ovnEgress(ovnDenyEgress, ovnDenyPriority, "", "drop")...)
	args = append(args, ovnEgress(ovnDenyEgress, ovnAllowPriority, "(arp || nd)", "allow")...)
	args = append(args, ovnIngress(ovnDenyIngress, ovnAllowPriority, "ip4.src == "+ovnHairpin, "allow-related")...)
	first, last := network.PolicyPorts()
	for i := range others + 1 {
		args = append(args, "--", "pg-add", ovnPolicy(i), "--", "create", "Address_Set", "name="+ovnPeers(i))
		if i > 0 {
			args = append(args, ovnAddresses(dataplane.OtherPeer(i)))
		}
		for _, protocol := range []string{"tcp", "udp"} {
			ports := fmt.Sprintf("%s && %d <= %s.dst <= %d", protocol, first, protocol, last)
			args = append(args, ovnIngress(ovnPolicy(i), ovnAllowPriority, "ip4.src == $"+ovnPeers(i)+" && "+ports, "allow-related")...)
			args = append(args, ovnEgress(ovnPolicy(i), ovnAllowPriority, "ip4.dst == $"+ovnPeers(i)+" && "+ports, "allow-related")...)
		}
	}
	return args
}

// ovnIngress is the command for a rule about what enters the pods of a port group.
func ovnIngress(group, priority, match, verdict string) []string {
	return []string{"--", "--type=port-group", "acl-add", group, "to-lport", priority, ovnMatch("outport == @"+group, match), verdict}
}

// ovnEgress is the same for what leaves them. OVN-Kubernetes has these rules looked at after
// the load balancers.
func ovnEgress(group, priority, match, verdict string) []string {
	return []string{"--", "--type=port-group", "--apply-after-lb", "acl-add", group, "from-lport", priority, ovnMatch("inport == @"+group, match), verdict}
}

func ovnMatch(port, more string) string {
	if more == "" {
		return port
	}
	return more + " && " + port
}

// members is ovn-nbctl's commands that put a zone's pods under all policies, and all nodes
// and pods of the lab into the peers of the policy that allows.
func (m ovnMode) members(zone, nodes []network.Node, pods []network.Pod) []string {
	var peers []netip.Addr
	if !m.overlay() { // what comes for NodePorts has this address
		peers = append(peers, netip.MustParseAddr(ovnHostMasquerade))
	}
	for _, n := range nodes {
		peers = append(peers, n.Address.Addr(), ovnManagementAddress(n))
	}
	inZone := map[int]bool{}
	for _, n := range zone {
		inZone[n.Index] = true
	}
	var ports []string
	for _, p := range pods {
		peers = append(peers, p.Address)
		if inZone[p.Node] {
			ports = append(ports, p.ID)
		}
	}
	args := []string{"--", "set", "Address_Set", ovnPeers(0), ovnAddresses(peers...)}
	if len(ports) == 0 { // pg-set-ports wants at least one
		return args
	}
	groups := []string{ovnDenyIngress, ovnDenyEgress}
	for i := range zone[0].Policies + 1 {
		groups = append(groups, ovnPolicy(i))
	}
	for _, group := range groups {
		args = append(append(args, "--", "pg-set-ports", group), ports...)
	}
	return args
}

// ovnAddresses is the members of an address set as ovn-nbctl's database commands take them.
func ovnAddresses(all ...netip.Addr) string {
	quoted := make([]string, 0, len(all))
	for _, a := range all {
		quoted = append(quoted, fmt.Sprintf("%q", a.String()))
	}
	return "addresses=" + strings.Join(quoted, ",")
}
