package main

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/result"
)

// order says that one thing takes more instructions than another.
type order struct {
	// Claim is who says it; Source is where, or "theory".
	Claim, Source string
	Less, More    subject
	Workload      string
	Placement     string
	// Because explains, with evidence, an order that does not hold.
	Because string
}

// subject is a network, with what is added to it.
type subject struct {
	Network  string
	Nodes    string // whose; "": the lab's
	Rules    rules
	Services services
}

func (s subject) String() string {
	switch {
	case s.Nodes == onKubernetes:
		return s.Network + " in Kubernetes"
	case s.Nodes == withKubelet:
		return s.Network + " with a kubelet's rules"
	case s.Rules.Kind != "":
		return s.Network + " with " + s.Rules.String()
	case s.Services.Count > 0:
		return s.Network + " with " + s.Services.String()
	default:
		return s.Network
	}
}

const (
	qi     = "Qi et al., 2020"
	theory = "theory"
)

// orders are those that the counts are compared with.
func orders() []order {
	net := func(name string) subject { return subject{Network: name} }
	pair := func(claim, source, placement, less, more string) order {
		return order{Claim: claim, Source: source, Less: net(less), More: net(more), Workload: "udp_stream", Placement: placement}
	}
	const (
		overlay  = "an overlay costs more than native routing"
		policy   = "policy costs more than none"
		ebpf     = "eBPF is the cheapest inside a node"
		pods     = "a pod network costs more than the host's"
		noPolicy = "a policy in iptables costs more than one in eBPF"
	)
	inter, intra := result.InterHost, result.IntraHost
	all := []order{
		pair(pods, theory, inter, "host", "flannel/host-gw"),
		pair(overlay, theory, inter, "flannel/host-gw", "flannel/vxlan"),
		pair(overlay, qi, inter, "flannel/host-gw", "flannel/ipip"),
		pair(overlay, qi, inter, "flannel/host-gw", "flannel/udp"),
		pair(overlay, qi, inter, "kube-router", "flannel/vxlan"),
		pair(overlay, qi, inter, "calico/direct", "calico/ipip"),
		pair(overlay, qi, inter, "calico/direct", "calico/vxlan"),
		pair(overlay, qi, inter, "calico/direct-policy", "calico/ipip-policy"),
		pair(overlay, qi, inter, "cilium/native", "cilium/vxlan"),
		pair(overlay, qi, inter, "cilium/native", "cilium/geneve"),
		pair(policy, qi, inter, "calico/direct", "calico/direct-policy"),
		pair(policy, qi, intra, "calico/direct", "calico/direct-policy"),
		pair(policy, qi, inter, "calico/ipip", "calico/ipip-policy"),
		pair(policy, qi, inter, "kube-router", "kube-router/policy"),
		pair(policy, theory, inter, "cilium/native", "cilium/native-policy"),
		pair(noPolicy, qi, intra, "cilium/native-policy", "calico/direct-policy"),
	}
	for _, other := range []string{"flannel/vxlan", "kube-router", "calico/direct", "calico/direct-policy"} {
		all = append(all, pair(ebpf, qi, intra, "cilium/native", other))
	}
	flat := rules{Kind: "iptables-legacy", Count: sweepCounts()[2]}
	chained := flat
	chained.Chains = 10
	return append(all, order{
		Claim: "more chains cost more, at the same number of rules", Source: qi, Workload: "udp_stream", Placement: inter,
		Less: subject{Network: sweepNetwork, Rules: flat}, More: subject{Network: sweepNetwork, Rules: chained},
	})
}

// sweepNetwork has no rules of its own that others would come after.
const sweepNetwork = "bridge"

// sweepCounts are the numbers of rules that are added one after the other.
func sweepCounts() []int { return []int{0, 10, 100, 1000} }

// sweepKinds are the ways in which they are.
func sweepKinds() []string { return []string{"iptables-legacy", "iptables-nft", "nft"} }

// find gives what was counted per packet.
func (c counted) find(s subject, workload, placement string, twicePercent int) ([]float64, error) {
	failed := "it was not counted"
	var xs []float64
	for _, one := range c.counts {
		if one.Network != s.Network || one.Nodes != s.Nodes || one.Rules != s.Rules || one.Services != s.Services {
			continue
		}
		if one.Failed != "" {
			failed = one.Failed
			continue
		}
		if t := one.Traffic; t.Workload == workload && t.Placement == placement && t.TwicePercent == twicePercent {
			xs = append(xs, one.perPacket()...)
		}
	}
	if len(xs) < 2 {
		return nil, fmt.Errorf("%s, %s %s: %s", s, workload, placement, failed)
	}
	return xs, nil
}

// check gives the difference of an order, and the share that it is of the less.
func (c counted) check(o order) (less, more, diff value, err error) {
	a, err := c.find(o.Less, o.Workload, o.Placement, 0)
	if err != nil {
		return less, more, diff, err
	}
	b, err := c.find(o.More, o.Workload, o.Placement, 0)
	if err != nil {
		return less, more, diff, err
	}
	return meanOf(a), meanOf(b), difference(a, b), nil
}

// fullPlan is everything on the page docs/instructions.md.
func fullPlan(networks []string, samples, packets int) plan {
	p := plan{Samples: samples, Packets: packets}
	for _, n := range networks {
		p.Settings = append(p.Settings, setting{Network: n, Traffic: columns()})
	}
	udp := []traffic{{Workload: "udp_stream", Placement: result.InterHost}}
	for _, kind := range sweepKinds() {
		for _, n := range sweepCounts() {
			s := setting{Network: sweepNetwork, Traffic: udp}
			if n > 0 {
				s.Rules = rules{Kind: kind, Count: n}
				p.Settings = append(p.Settings, s)
			}
		}
	}
	chained := rules{Kind: "iptables-legacy", Count: sweepCounts()[2], Chains: 10}
	p.Settings = append(p.Settings, setting{Network: sweepNetwork, Rules: chained, Traffic: udp}, knownChange())
	return p
}

// knownTwicePercent is the known change: so many packets of a hundred are sent
// twice.
const knownTwicePercent = 3

// knownChange is the same network with and without it.
func knownChange() setting {
	plain := traffic{Workload: "udp_stream", Placement: result.InterHost}
	costly := plain
	costly.TwicePercent = knownTwicePercent
	return setting{Network: sweepNetwork, Rules: rules{}, Traffic: []traffic{plain, costly}}
}
