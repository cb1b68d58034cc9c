package kuberouter

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// Policy is kube-router with its firewall (--run-firewall=true).
func Policy() network.Network {
	n := Network()
	n.Name, n.Summary = "kube-router/policy", "kube-router with its policy chains"
	n.Policy = true
	n.Model += " and pkg/controllers/netpol, one NetworkPolicy for every pod: " + network.PolicyWords
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		if err := node(ctx, self, nodes); err != nil {
			return err
		}
		return dataplane.Restore(ctx, self, topChains())
	}
	n.PodsAdded = func(ctx context.Context, self network.Node, nodes []network.Node, pods []network.Pod) error {
		sets, names := kubeRouterSets(nodes, pods)
		if err := dataplane.FillSets(self, sets...); err != nil {
			return err
		}
		if err := dataplane.FillSets(self, dataplane.OtherSets(self.Policies)...); err != nil {
			return err
		}
		return dataplane.Restore(ctx, self, podChains(self, pods, names))
	}
	return n
}

// policyNames are the policy's chain and its sets: the pods that it
// selects, and those that it lets in and out.
type policyNames struct{ chain, to, from, out, into string }

func kubeRouterSets(nodes []network.Node, pods []network.Pod) ([]dataplane.IPSet, policyNames) {
	names := policyNames{
		chain: dataplane.HashedName("KUBE-NWPLCY-", "default lab"),
		to:    dataplane.HashedName("KUBE-DST-", "default lab ingress pod"), from: dataplane.HashedName("KUBE-SRC-", "default lab ingress rule 0 pod"),
		out: dataplane.HashedName("KUBE-SRC-", "default lab egress pod"), into: dataplane.HashedName("KUBE-DST-", "default lab egress rule 0 pod"),
	}
	var selected, peers []netip.Prefix
	for _, p := range pods {
		selected = append(selected, network.Single(p.Address))
	}
	peers = append(peers, selected...)
	for _, n := range nodes {
		peers = append(peers, network.Single(n.Address.Addr()), network.Single(n.PodCIDR.Addr().Next()))
	}
	return []dataplane.IPSet{
		{Name: names.to, Kind: "hash:ip", Members: selected}, {Name: names.from, Kind: "hash:ip", Members: peers},
		{Name: names.out, Kind: "hash:ip", Members: selected}, {Name: names.into, Kind: "hash:ip", Members: peers},
	}, names
}

// topChains are the chains before any pod's.
func topChains() *dataplane.Table {
	t := &dataplane.Table{Name: "filter"}
	for _, c := range []string{"INPUT", "FORWARD", "OUTPUT"} {
		t.Chain("KUBE-ROUTER-" + c)
		t.Insert(c, `-m comment --comment "kube-router netpol" -j KUBE-ROUTER-`+c)
	}
	t.Chain("KUBE-NWPLCY-DEFAULT", `-m comment --comment "rule to mark traffic matching a network policy" -j MARK --set-xmark 0x10000/0x10000`)
	return t
}

// podChains are the pods' own chains of one node and how they are
// reached: by source and destination address, routed and bridged.
func podChains(self network.Node, pods []network.Pod, names policyNames) *dataplane.Table {
	t := &dataplane.Table{Name: "filter"}
	var in, forward, output, bridged []string
	for _, p := range pods {
		if p.Node != self.Index {
			continue
		}
		chain := dataplane.HashedName("KUBE-POD-FW-", "default"+p.ID)
		t.Chain(chain, pod(p, self.Policies, names)...)
		to := fmt.Sprintf("-m comment --comment \"rule to jump traffic destined to POD name:%s namespace: default to chain %s\" -d %s -j %s", p.ID, chain, p.Address, chain)
		from := fmt.Sprintf("-m comment --comment \"rule to jump traffic from POD name:%s namespace: default to chain %s\" -s %s -j %s", p.ID, chain, p.Address, chain)
		// Those for bridged packets are inserted last, so they come first.
		bridged = append(bridged, "-m physdev --physdev-is-bridged "+to, "-m physdev --physdev-is-bridged "+from)
		forward = append(forward, to, from)
		output = append(output, to, from)
		in = append(in, from)
	}
	accept := `-m comment --comment "rule to explicitly ACCEPT traffic that comply to network policies" -m mark --mark 0x20000/0x20000 -j ACCEPT`
	t.Chain("KUBE-ROUTER-INPUT", append(in, accept)...)
	t.Chain("KUBE-ROUTER-FORWARD", append(append(bridged, forward...), accept)...)
	t.Chain("KUBE-ROUTER-OUTPUT", append(output, accept)...)
	var policy []string
	for _, protocol := range []string{"tcp", "udp"} {
		policy = append(policy, policyRule(names.from, names.to, protocol)...)
	}
	for _, protocol := range []string{"tcp", "udp"} {
		policy = append(policy, policyRule(names.out, names.into, protocol)...)
	}
	t.Chain(names.chain, policy...)
	for i := 1; i <= self.Policies; i++ {
		var rules []string
		for _, protocol := range []string{"tcp", "udp"} {
			rules = append(rules, policyRule(dataplane.OtherSet(i), names.to, protocol)...)
		}
		for _, protocol := range []string{"tcp", "udp"} {
			rules = append(rules, policyRule(names.out, dataplane.OtherSet(i), protocol)...)
		}
		t.Chain(otherChain(i), rules...)
	}
	return t
}

// policyRule is one rule of a policy: mark, and leave where marked.
func policyRule(source, destination, protocol string) []string {
	first, last := network.PolicyPorts()
	match := fmt.Sprintf("-m comment --comment \"rule to ACCEPT traffic from source pods to dest pods selected by policy name lab namespace default\" "+
		"-m set --match-set %s src -m set --match-set %s dst -p %s --dport %d:%d ", source, destination, protocol, first, last)
	return []string{match + "-j MARK --set-xmark 0x10000/0x10000", match + "-m mark --mark 0x10000/0x10000 -j RETURN"}
}

// otherChain is the chain of another policy than the one that allows.
func otherChain(i int) string { return dataplane.HashedName("KUBE-NWPLCY-", dataplane.OtherPolicy(i)) }

// pod is one pod's chain: what it has going passes, then each policy
// has its say; what none marked is refused.
func pod(p network.Pod, others int, names policyNames) []string {
	const unmarked = "-m mark ! --mark 0x10000/0x10000 "
	rules := []string{
		`-m comment --comment "rule to drop invalid state for pod" -m conntrack --ctstate INVALID -j DROP`,
		`-m comment --comment "rule for stateful firewall for pod" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
		fmt.Sprintf("-m comment --comment \"rule to permit the traffic traffic to pods when source is the pod's local node\" -m addrtype --src-type LOCAL -d %s -j ACCEPT", p.Address),
	}
	for i := 1; i <= others; i++ {
		rules = append(rules, fmt.Sprintf("-m comment --comment \"run through nw policy %s\" -j %s", dataplane.OtherPolicy(i), otherChain(i)))
	}
	return append(rules,
		"-m comment --comment \"run through nw policy lab\" -j "+names.chain,
		fmt.Sprintf("-m comment --comment \"rule to log dropped traffic POD name:%s namespace: default\" %s-m limit --limit 10/minute --limit-burst 10 -j NFLOG --nflog-group 100", p.ID, unmarked),
		fmt.Sprintf("-m comment --comment \"rule to REJECT traffic destined for POD name:%s namespace: default\" %s-j REJECT", p.ID, unmarked),
		"-j MARK --set-mark 0/0x10000",
		`-m comment --comment "set mark to ACCEPT traffic that comply to network policies" -j MARK --set-mark 0x20000/0x20000`,
	)
}
