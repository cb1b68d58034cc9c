package calico

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// Felix's chains, as Calico v3.27 renders them for its iptables dataplane:
// felix/rules/static.go (the chains that hook into the kernel's),
// dispatch.go (from device to endpoint), endpoints.go (cali-tw-, cali-fw-),
// policy.go (cali-pi-, cali-po-, and the profiles' cali-pri-, cali-pro-),
// nat.go. There are no host endpoints, so their chains are empty, as they are in
// most clusters. The marks are the first bits of IptablesMarkMask 0xffff0000.
const (
	markAccept  = "0x10000/0x10000"
	markPass    = "0x20000/0x20000"
	markScratch = "0x40000/0x40000" // comes from a workload
	clearAccept = "0x0/0x10000"
	clearPass   = "0x0/0x20000"
	clearAll    = "0x0/0xf0000"
	clearOthers = "0x0/0xe0000" // all but accept

	felixPolicyName = "default.lab"
	// felixPods is the set of the policy's selector.
	felixPods    = "cali40s:lab-pods"
	felixHosts   = "cali40all-hosts-net"
	felixVTEPs   = "cali40all-vxlan-net"
	felixPools   = "cali40all-ipam-pools"
	felixMasq    = "cali40masq-ipam-pools"
	natOutgoing  = "-m set --match-set " + felixMasq + " src -m set ! --match-set " + felixPools + " dst -j MASQUERADE --random-fully"
	established  = "-m conntrack --ctstate RELATED,ESTABLISHED "
	invalidState = "-m conntrack --ctstate INVALID "
)

// felixPolicy adds to a network of Calico's veths what Felix adds where every
// pod is selected by one NetworkPolicy: ingress and egress, from and to the
// lab's pods and nodes, TCP and UDP ports 1024 to 65535.
func felixPolicy(n network.Network, f felix) network.Network {
	n.Model, n.LeavesOut = n.Model+felixModel, felixLeavesOut
	n.Policy = true
	n.IPv6 = false // Felix's chains of ip6tables are left out
	n.Needs = append(slices.Clone(n.Needs), dataplane.RuleNeeds()...)
	base := n.SetUp
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		if err := base(ctx, self, nodes); err != nil {
			return err
		}
		if err := dataplane.FillSets(self, f.sets(nodes)...); err != nil {
			return err
		}
		return dataplane.Restore(ctx, self, f.static()...)
	}
	n.PodsAdded = func(ctx context.Context, self network.Node, nodes []network.Node, pods []network.Pod) error {
		sets := dataplane.OtherSets(self.Policies)
		members := dataplane.IPSet{Name: felixPods, Kind: "hash:net"}
		var devices []string
		for _, p := range pods {
			members.Members = append(members.Members, network.Single(p.Address))
			if p.Node == self.Index {
				devices = append(devices, hostDevice(p.ID))
			}
		}
		if err := dataplane.FillSets(self, append(sets, members)...); err != nil {
			return err
		}
		return dataplane.Restore(ctx, self, f.endpoints(devices, self.Policies))
	}
	return n
}

// felix is what its configuration says.
type felix struct {
	encapsulation string // of Calico's own tunnels
	nat           bool   // natOutgoing of the pool
}

// sets are those that hold before there is a pod.
func (f felix) sets(nodes []network.Node) []dataplane.IPSet {
	pods := dataplane.IPSet{Name: felixPods, Kind: "hash:net"}
	hosts, vteps := dataplane.IPSet{Name: felixHosts, Kind: "hash:net"}, dataplane.IPSet{Name: felixVTEPs, Kind: "hash:net"}
	for _, n := range nodes {
		// Nodes, with their addresses on tunnels, so that the lab's paths
		// between nodes and pods are allowed.
		pods.Members = append(pods.Members, network.Single(n.Address.Addr()), network.Single(tunnelAddress(n)), network.Single(n.PodCIDR.Addr()))
		hosts.Members = append(hosts.Members, network.Single(n.Address.Addr()))
		vteps.Members = append(vteps.Members, network.Single(n.Address.Addr()))
	}
	pool := []netip.Prefix{network.Pods()}
	return []dataplane.IPSet{pods, hosts, vteps, {Name: felixPools, Kind: "hash:net", Members: pool}, {Name: felixMasq, Kind: "hash:net", Members: pool}}
}

// static are the chains that are the same whatever pods there are.
func (f felix) static() []*dataplane.Table {
	return []*dataplane.Table{f.raw(), f.mangle(), f.natTable(), f.filter()}
}

func (f felix) filter() *dataplane.Table {
	t := &felixTable{dataplane.Table{Name: "filter"}}
	for _, empty := range []string{
		"cali-from-host-endpoint", "cali-to-host-endpoint", "cali-from-hep-forward", "cali-to-hep-forward", "cali-cidr-block",
		"cali-from-wl-dispatch", "cali-to-wl-dispatch",
	} {
		t.Chain(empty)
	}
	t.Chain("cali-FORWARD",
		"-j MARK --set-xmark "+clearOthers,
		"-m mark --mark "+clearAccept+" -j cali-from-hep-forward",
		"-i cali+ -j cali-from-wl-dispatch",
		"-o cali+ -j cali-to-wl-dispatch",
		"-j cali-to-hep-forward",
		"-j cali-cidr-block")
	var in, out []string
	switch f.encapsulation {
	case "ipip":
		in = []string{"-p 4 -m set --match-set " + felixHosts + " src -m addrtype --dst-type LOCAL -j ACCEPT", "-p 4 -j DROP"}
		out = []string{"-p 4 -m set --match-set " + felixHosts + " dst -m addrtype --src-type LOCAL -j ACCEPT"}
	case "vxlan":
		tunnel := fmt.Sprintf("-p udp -m multiport --dports %d ", dataplane.VXLANPort)
		in = []string{
			tunnel + "-m set --match-set " + felixVTEPs + " src -m addrtype --dst-type LOCAL -j ACCEPT",
			tunnel + "-m addrtype --dst-type LOCAL -j DROP",
		}
		out = []string{tunnel + "-m addrtype --src-type LOCAL -m set --match-set " + felixVTEPs + " dst -j ACCEPT"}
	}
	accepted := "-m mark --mark " + markAccept + " -j ACCEPT"
	t.Chain("cali-INPUT", append(in,
		"-i cali+ -g cali-wl-to-host",
		accepted,
		"-j MARK --set-xmark "+clearAll,
		"-j cali-from-host-endpoint",
		accepted)...)
	t.Chain("cali-wl-to-host", "-j cali-from-wl-dispatch", "-j ACCEPT")
	t.Chain("cali-OUTPUT", append(append([]string{accepted, "-o cali+ -j RETURN"}, out...),
		"-j MARK --set-xmark "+clearAll,
		"-m conntrack ! --ctstate DNAT -j cali-to-host-endpoint",
		accepted)...)
	for _, chain := range []string{"INPUT", "FORWARD", "OUTPUT"} {
		t.Insert(chain, "-j cali-"+chain)
	}
	t.Add("FORWARD", accepted, "-j MARK --set-xmark "+markAccept)
	return t.named()
}

func (f felix) raw() *dataplane.Table {
	t := &felixTable{dataplane.Table{Name: "raw"}}
	var untracked []string
	if f.encapsulation == "vxlan" {
		untracked = []string{fmt.Sprintf("-p udp -m udp --dport %d -j CT --notrack", dataplane.VXLANPort)}
	}
	t.Chain("cali-from-host-endpoint")
	t.Chain("cali-to-host-endpoint")
	t.Chain("cali-rpf-skip")
	t.Chain("cali-PREROUTING", append(append([]string{"-j MARK --set-xmark " + clearAll}, untracked...),
		"-i cali+ -j MARK --set-xmark "+markScratch,
		"-m mark --mark "+markScratch+" -j cali-rpf-skip",
		"-m mark --mark "+markScratch+" -m rpfilter --validmark --invert -j DROP",
		"-m mark --mark 0x0/0x40000 -j cali-from-host-endpoint",
		"-m mark --mark "+markAccept+" -j ACCEPT")...)
	t.Chain("cali-OUTPUT", append(append([]string{"-j MARK --set-xmark " + clearAll, "-j cali-to-host-endpoint"}, untracked...),
		"-m mark --mark "+markAccept+" -j ACCEPT")...)
	t.Insert("PREROUTING", "-j cali-PREROUTING")
	t.Insert("OUTPUT", "-j cali-OUTPUT")
	return t.named()
}

func (f felix) mangle() *dataplane.Table {
	t := &felixTable{dataplane.Table{Name: "mangle"}}
	t.Chain("cali-from-host-endpoint")
	t.Chain("cali-to-host-endpoint")
	t.Chain("cali-PREROUTING",
		established+"-j ACCEPT",
		"-m mark --mark "+markAccept+" -j ACCEPT",
		"-j cali-from-host-endpoint",
		"-m mark --mark "+markAccept+" -j ACCEPT")
	t.Chain("cali-POSTROUTING",
		"-m mark --mark "+markAccept+" -j RETURN",
		"-j MARK --set-xmark "+clearAll,
		"-m conntrack --ctstate DNAT -j cali-to-host-endpoint",
		"-m mark --mark "+markAccept+" -j RETURN")
	t.Insert("PREROUTING", "-j cali-PREROUTING")
	t.Insert("POSTROUTING", "-j cali-POSTROUTING")
	return t.named()
}

func (f felix) natTable() *dataplane.Table {
	t := &felixTable{dataplane.Table{Name: "nat"}}
	t.Chain("cali-fip-dnat")
	t.Chain("cali-fip-snat")
	var outgoing, tunnel []string
	if f.nat {
		outgoing = []string{natOutgoing}
	}
	if device := map[string]string{"ipip": "tunl0", "vxlan": vxlanDevice}[f.encapsulation]; device != "" {
		tunnel = []string{"-o " + device + " -m addrtype ! --src-type LOCAL --limit-iface-out -m addrtype --src-type LOCAL -j MASQUERADE --random-fully"}
	}
	t.Chain("cali-nat-outgoing", outgoing...)
	t.Chain("cali-PREROUTING", "-j cali-fip-dnat")
	t.Chain("cali-OUTPUT", "-j cali-fip-dnat")
	t.Chain("cali-POSTROUTING", append([]string{"-j cali-fip-snat", "-j cali-nat-outgoing"}, tunnel...)...)
	for _, chain := range []string{"PREROUTING", "OUTPUT", "POSTROUTING"} {
		t.Insert(chain, "-j cali-"+chain)
	}
	return t.named()
}

// endpoints are the chains of a node's pods, by their devices, and of the
// policies and the profiles that they have. others is the number of policies
// before the one that allows.
func (f felix) endpoints(devices []string, others int) *dataplane.Table {
	t := &felixTable{dataplane.Table{Name: "filter"}}
	t.dispatch("cali-from-wl-dispatch", "-i", "cali-fw-", devices)
	t.dispatch("cali-to-wl-dispatch", "-o", "cali-tw-", devices)
	for _, d := range devices {
		t.Chain("cali-tw-"+d, workload(others, "cali-pi-", "cali-pri-", nil)...)
		t.Chain("cali-fw-"+d, workload(others, "cali-po-", "cali-pro-", []string{
			fmt.Sprintf("-p udp -m multiport --dports %d -j DROP", dataplane.VXLANPort), "-p 4 -j DROP",
		})...)
	}
	for i := 1; i <= others; i++ {
		t.policy("cali-pi-"+dataplane.OtherPolicy(i), dataplane.OtherSet(i), "src")
		t.policy("cali-po-"+dataplane.OtherPolicy(i), dataplane.OtherSet(i), "dst")
	}
	t.policy("cali-pi-"+felixPolicyName, felixPods, "src")
	t.policy("cali-po-"+felixPolicyName, felixPods, "dst")
	for _, profile := range []string{"cali-pri-", "cali-pro-"} {
		t.Chain(profile+"kns.default", "-j MARK --set-xmark "+markAccept, "-m mark --mark "+markAccept+" -j RETURN")
		t.Chain(profile + "ksa.default.default")
	}
	return t.named()
}

// workload is one direction of an endpoint.
func workload(others int, policies, profiles string, drop []string) []string {
	accepted := "-m mark --mark " + markAccept + " -j RETURN"
	rules := append([]string{
		established + "-j ACCEPT",
		invalidState + "-j DROP",
		"-j MARK --set-xmark " + clearAccept,
	}, drop...)
	rules = append(rules, "-j MARK --set-xmark "+clearPass)
	for i := 1; i <= others; i++ {
		rules = append(rules, "-m mark --mark "+clearPass+" -j "+policies+dataplane.OtherPolicy(i), accepted)
	}
	return append(rules,
		"-m mark --mark "+clearPass+" -j "+policies+felixPolicyName,
		accepted,
		"-m mark --mark "+clearPass+" -j DROP",
		"-j "+profiles+"kns.default",
		accepted,
		"-j "+profiles+"ksa.default.default",
		accepted,
		"-j DROP")
}

// felixTable gives each rule the comment that Felix knows it by. It is a match
// of its own to the kernel where iptables is the legacy one.
type felixTable struct{ dataplane.Table }

func (t *felixTable) named() *dataplane.Table {
	for i, r := range t.Rules {
		sum := sha256.Sum256([]byte(r))
		head, spec, _ := strings.Cut(r, " ")
		chain, spec, _ := strings.Cut(spec, " ")
		t.Rules[i] = fmt.Sprintf("%s %s -m comment --comment cali:%s %s", head, chain, base64.RawURLEncoding.EncodeToString(sum[:12]), spec)
	}
	return &t.Table
}

// policy is a policy's chain with one rule for each protocol; side is what the
// set is compared with.
func (t *felixTable) policy(chain, set, side string) {
	first, last := network.PolicyPorts()
	var rules []string
	for _, protocol := range []string{"tcp", "udp"} {
		rules = append(rules,
			fmt.Sprintf("-p %s -m set --match-set %s %s -m multiport --dports %d:%d -j MARK --set-xmark %s", protocol, set, side, first, last, markAccept),
			"-m mark --mark "+markAccept+" -j RETURN")
	}
	t.Chain(chain, rules...)
}

// dispatch is the tree from a device's name to its endpoint's chain: devices
// whose names share what follows all names' common head share a chain.
func (t *felixTable) dispatch(root, match, endpoint string, devices []string) {
	const unknown = "-j DROP" // "Unknown interface"
	head := commonHead(devices)
	groups := map[string][]string{}
	var order []string
	for _, d := range slices.Sorted(slices.Values(devices)) {
		p := d[:min(len(head)+1, len(d))]
		if groups[p] == nil {
			order = append(order, p)
		}
		groups[p] = append(groups[p], d)
	}
	var rules []string
	for _, p := range order {
		if len(groups[p]) == 1 {
			rules = append(rules, fmt.Sprintf("%s %s -g %s%s", match, groups[p][0], endpoint, groups[p][0]))
			continue
		}
		child := root + "-" + strings.TrimPrefix(p, head)
		var inner []string
		for _, d := range groups[p] {
			inner = append(inner, fmt.Sprintf("%s %s -g %s%s", match, d, endpoint, d))
		}
		t.Chain(child, append(inner, unknown)...)
		rules = append(rules, fmt.Sprintf("%s %s+ -g %s", match, p, child))
	}
	t.Chain(root, append(rules, unknown)...)
}

func commonHead(names []string) string {
	if len(names) == 0 {
		return ""
	}
	head := names[0]
	for _, n := range names {
		for !strings.HasPrefix(n, head) {
			head = head[:len(head)-1]
		}
	}
	return head
}
