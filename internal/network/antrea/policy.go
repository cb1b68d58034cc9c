package antrea

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

//go:embed policy.flows
var policyFlows string

// rule is one policy's rules: the numbers of its two conjunctions, and the
// peers that it is for.
type rule struct {
	Egress, Ingress int
	Peers           []netip.Addr
}

// EgressLabel is what the connections that it allows carry in their label's upper
// half.
func (r rule) EgressLabel() string { return fmt.Sprintf("%#x", uint64(r.Egress)<<32) }

// conjunctions are the rules of which a packet must be in each part: every
// policy has every pod and every port in common, so a pod's or a port's flow
// names all of them, and the peers are its own.
type conjunctions []rule

// newAntreaConjunctions has the policy that allows first, whose peers these are,
// and then the others.
func newAntreaConjunctions(peers []netip.Addr, others int) conjunctions {
	all := conjunctions{{Egress: 2, Ingress: 3, Peers: peers}}
	for i := 1; i <= others; i++ {
		all = append(all, rule{Egress: 2 + 2*i, Ingress: 3 + 2*i, Peers: []netip.Addr{dataplane.OtherPeer(i)}})
	}
	return all
}

// Egress are the actions of a flow that is this part of all rules: "1/3".
func (c conjunctions) Egress(part string) string {
	return c.actions(part, func(r rule) int { return r.Egress })
}

// Ingress is the same for ingress.
func (c conjunctions) Ingress(part string) string {
	return c.actions(part, func(r rule) int { return r.Ingress })
}

func (c conjunctions) actions(part string, id func(rule) int) string {
	var all []string
	for _, r := range c {
		all = append(all, fmt.Sprintf("conjunction(%d,%s)", id(r), part))
	}
	return strings.Join(all, ",")
}

// policy sets the flows of the policy that the networks with policy
// have: TCP and UDP, PolicyPorts, from and to pods and nodes of the lab; and of
// the others before it.
func policy(ctx context.Context, self network.Node, nodes []network.Node, pods []network.Pod) error {
	data := struct {
		Rules conjunctions
		Pods  []pod
		Ports []string
	}{Ports: portMasks(network.PolicyPorts())}
	var peers []netip.Addr
	for _, n := range nodes {
		peers = append(peers, n.Address.Addr(), gatewayOf(n))
	}
	var devices []string
	for _, p := range pods {
		peers = append(peers, p.Address)
		if p.Node == self.Index {
			data.Pods = append(data.Pods, pod{Address: p.Address})
			devices = append(devices, hostDevice(p.ID))
		}
	}
	data.Rules = newAntreaConjunctions(peers, self.Policies)
	o := dataplane.NodeOVS(self)
	ports, err := o.Ports(ctx, devices...)
	if err != nil {
		return err
	}
	for i, port := range ports {
		data.Pods[i].Port = port
	}
	flows, err := openFlow(policyFlows, Tables(), data)
	if err != nil {
		return err
	}
	return o.AddFlows(ctx, antreaBridge, flows)
}

// portMasks divides a range of ports into values with masks, as OpenFlow
// matches them.
func portMasks(first, last uint16) []string {
	var masks []string
	for from, to := int(first), int(last); from <= to; {
		size := 1
		for from%(2*size) == 0 && from+2*size-1 <= to {
			size *= 2
		}
		masks = append(masks, fmt.Sprintf("%#x/%#x", from, 0x10000-size))
		from += size
	}
	return masks
}
