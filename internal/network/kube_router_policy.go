package network

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/netip"
)

// kubeRouterPolicy is kube-router with its firewall (--run-firewall=true).
func kubeRouterPolicy() Network {
	n := kubeRouter()
	n.Name, n.Summary = "kube-router/policy", "kube-router with its policy chains"
	n.Policy = true
	n.Model += " and pkg/controllers/netpol, one NetworkPolicy for every pod: " + policyWords
	n.SetUp = func(ctx context.Context, self Node, nodes []Node) error {
		if err := kubeRouterNode(ctx, self, nodes); err != nil {
			return err
		}
		return restore(ctx, self, kubeRouterTop())
	}
	n.PodsAdded = func(ctx context.Context, self Node, nodes []Node, pods []Pod) error {
		sets, names := kubeRouterSets(nodes, pods)
		if err := fillSets(self, sets...); err != nil {
			return err
		}
		if err := fillSets(self, otherSets(self.Policies)...); err != nil {
			return err
		}
		return restore(ctx, self, kubeRouterPodChains(self, pods, names))
	}
	return n
}

// hashedName is a chain's or a set's name, as kube-router and kube-proxy make
// them of a hash.
func hashedName(prefix, of string) string {
	sum := sha256.Sum256([]byte(of))
	return prefix + base32.StdEncoding.EncodeToString(sum[:])[:16]
}

// kubeRouterPolicyNames are the policy's chain and its sets: the pods that it
// selects, and those that it lets in and out.
type kubeRouterPolicyNames struct{ chain, to, from, out, into string }

func kubeRouterSets(nodes []Node, pods []Pod) ([]ipset, kubeRouterPolicyNames) {
	names := kubeRouterPolicyNames{
		chain: hashedName("KUBE-NWPLCY-", "default lab"),
		to:    hashedName("KUBE-DST-", "default lab ingress pod"), from: hashedName("KUBE-SRC-", "default lab ingress rule 0 pod"),
		out: hashedName("KUBE-SRC-", "default lab egress pod"), into: hashedName("KUBE-DST-", "default lab egress rule 0 pod"),
	}
	var selected, peers []netip.Prefix
	for _, p := range pods {
		selected = append(selected, single(p.Address))
	}
	peers = append(peers, selected...)
	for _, n := range nodes {
		peers = append(peers, single(n.Address.Addr()), single(n.PodCIDR.Addr().Next()))
	}
	return []ipset{
		{name: names.to, kind: "hash:ip", members: selected}, {name: names.from, kind: "hash:ip", members: peers},
		{name: names.out, kind: "hash:ip", members: selected}, {name: names.into, kind: "hash:ip", members: peers},
	}, names
}

// kubeRouterTop are the chains before any pod's.
func kubeRouterTop() *table {
	t := &table{name: "filter"}
	for _, c := range []string{"INPUT", "FORWARD", "OUTPUT"} {
		t.chain("KUBE-ROUTER-" + c)
		t.insert(c, `-m comment --comment "kube-router netpol" -j KUBE-ROUTER-`+c)
	}
	t.chain("KUBE-NWPLCY-DEFAULT", `-m comment --comment "rule to mark traffic matching a network policy" -j MARK --set-xmark 0x10000/0x10000`)
	return t
}

// kubeRouterPodChains are the pods' own chains of one node and how they are
// reached: by source and destination address, routed and bridged.
func kubeRouterPodChains(self Node, pods []Pod, names kubeRouterPolicyNames) *table {
	t := &table{name: "filter"}
	var in, forward, output, bridged []string
	for _, p := range pods {
		if p.Node != self.Index {
			continue
		}
		chain := hashedName("KUBE-POD-FW-", "default"+p.ID)
		t.chain(chain, kubeRouterPod(p, self.Policies, names)...)
		to := fmt.Sprintf("-m comment --comment \"rule to jump traffic destined to POD name:%s namespace: default to chain %s\" -d %s -j %s", p.ID, chain, p.Address, chain)
		from := fmt.Sprintf("-m comment --comment \"rule to jump traffic from POD name:%s namespace: default to chain %s\" -s %s -j %s", p.ID, chain, p.Address, chain)
		// Those for bridged packets are inserted last, so they come first.
		bridged = append(bridged, "-m physdev --physdev-is-bridged "+to, "-m physdev --physdev-is-bridged "+from)
		forward = append(forward, to, from)
		output = append(output, to, from)
		in = append(in, from)
	}
	accept := `-m comment --comment "rule to explicitly ACCEPT traffic that comply to network policies" -m mark --mark 0x20000/0x20000 -j ACCEPT`
	t.chain("KUBE-ROUTER-INPUT", append(in, accept)...)
	t.chain("KUBE-ROUTER-FORWARD", append(append(bridged, forward...), accept)...)
	t.chain("KUBE-ROUTER-OUTPUT", append(output, accept)...)
	var policy []string
	for _, protocol := range []string{"tcp", "udp"} {
		policy = append(policy, kubeRouterRule(names.from, names.to, protocol)...)
	}
	for _, protocol := range []string{"tcp", "udp"} {
		policy = append(policy, kubeRouterRule(names.out, names.into, protocol)...)
	}
	t.chain(names.chain, policy...)
	for i := 1; i <= self.Policies; i++ {
		var rules []string
		for _, protocol := range []string{"tcp", "udp"} {
			rules = append(rules, kubeRouterRule(otherSet(i), names.to, protocol)...)
		}
		for _, protocol := range []string{"tcp", "udp"} {
			rules = append(rules, kubeRouterRule(names.out, otherSet(i), protocol)...)
		}
		t.chain(kubeRouterOther(i), rules...)
	}
	return t
}

// kubeRouterRule is one rule of a policy: mark, and leave where marked.
func kubeRouterRule(source, destination, protocol string) []string {
	first, last := PolicyPorts()
	match := fmt.Sprintf("-m comment --comment \"rule to ACCEPT traffic from source pods to dest pods selected by policy name lab namespace default\" "+
		"-m set --match-set %s src -m set --match-set %s dst -p %s --dport %d:%d ", source, destination, protocol, first, last)
	return []string{match + "-j MARK --set-xmark 0x10000/0x10000", match + "-m mark --mark 0x10000/0x10000 -j RETURN"}
}

// kubeRouterOther is the chain of another policy than the one that allows.
func kubeRouterOther(i int) string { return hashedName("KUBE-NWPLCY-", otherPolicy(i)) }

// kubeRouterPod is one pod's chain: what it has going passes, then each policy
// has its say; what none marked is refused.
func kubeRouterPod(p Pod, others int, names kubeRouterPolicyNames) []string {
	const unmarked = "-m mark ! --mark 0x10000/0x10000 "
	rules := []string{
		`-m comment --comment "rule to drop invalid state for pod" -m conntrack --ctstate INVALID -j DROP`,
		`-m comment --comment "rule for stateful firewall for pod" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
		fmt.Sprintf("-m comment --comment \"rule to permit the traffic traffic to pods when source is the pod's local node\" -m addrtype --src-type LOCAL -d %s -j ACCEPT", p.Address),
	}
	for i := 1; i <= others; i++ {
		rules = append(rules, fmt.Sprintf("-m comment --comment \"run through nw policy %s\" -j %s", otherPolicy(i), kubeRouterOther(i)))
	}
	return append(rules,
		"-m comment --comment \"run through nw policy lab\" -j "+names.chain,
		fmt.Sprintf("-m comment --comment \"rule to log dropped traffic POD name:%s namespace: default\" %s-m limit --limit 10/minute --limit-burst 10 -j NFLOG --nflog-group 100", p.ID, unmarked),
		fmt.Sprintf("-m comment --comment \"rule to REJECT traffic destined for POD name:%s namespace: default\" %s-j REJECT", p.ID, unmarked),
		"-j MARK --set-mark 0/0x10000",
		`-m comment --comment "set mark to ACCEPT traffic that comply to network policies" -j MARK --set-mark 0x20000/0x20000`,
	)
}
