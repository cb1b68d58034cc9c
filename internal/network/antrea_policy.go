package network

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"strings"
)

//go:embed antrea_policy.flows
var antreaPolicyFlows string

// antreaRule is one policy's rules: the numbers of its two conjunctions, and the
// peers that it is for.
type antreaRule struct {
	Egress, Ingress int
	Peers           []netip.Addr
}

// EgressLabel is what the connections that it allows carry in their label's upper
// half.
func (r antreaRule) EgressLabel() string { return fmt.Sprintf("%#x", uint64(r.Egress)<<32) }

// antreaConjunctions are the rules of which a packet must be in each part: every
// policy has every pod and every port in common, so a pod's or a port's flow
// names all of them, and the peers are its own.
type antreaConjunctions []antreaRule

// newAntreaConjunctions has the policy that allows first, whose peers these are,
// and then the others.
func newAntreaConjunctions(peers []netip.Addr, others int) antreaConjunctions {
	all := antreaConjunctions{{Egress: 2, Ingress: 3, Peers: peers}}
	for i := 1; i <= others; i++ {
		all = append(all, antreaRule{Egress: 2 + 2*i, Ingress: 3 + 2*i, Peers: []netip.Addr{otherPeer(i)}})
	}
	return all
}

// Egress are the actions of a flow that is this part of all rules: "1/3".
func (c antreaConjunctions) Egress(part string) string {
	return c.actions(part, func(r antreaRule) int { return r.Egress })
}

// Ingress is the same for ingress.
func (c antreaConjunctions) Ingress(part string) string {
	return c.actions(part, func(r antreaRule) int { return r.Ingress })
}

func (c antreaConjunctions) actions(part string, id func(antreaRule) int) string {
	var all []string
	for _, r := range c {
		all = append(all, fmt.Sprintf("conjunction(%d,%s)", id(r), part))
	}
	return strings.Join(all, ",")
}

// antreaPolicy sets the flows of the policy that the networks with policy
// have: TCP and UDP, PolicyPorts, from and to pods and nodes of the lab; and of
// the others before it.
func antreaPolicy(ctx context.Context, self Node, nodes []Node, pods []Pod) error {
	data := struct {
		Rules antreaConjunctions
		Pods  []antreaPod
		Ports []string
	}{Ports: portMasks(PolicyPorts())}
	var peers []netip.Addr
	for _, n := range nodes {
		peers = append(peers, n.Address.Addr(), antreaGatewayOf(n))
	}
	var devices []string
	for _, p := range pods {
		peers = append(peers, p.Address)
		if p.Node == self.Index {
			data.Pods = append(data.Pods, antreaPod{Address: p.Address})
			devices = append(devices, antreaHostDevice(p.ID))
		}
	}
	data.Rules = newAntreaConjunctions(peers, self.Policies)
	o := nodeOVS(self)
	ports, err := o.ports(ctx, devices...)
	if err != nil {
		return err
	}
	for i, port := range ports {
		data.Pods[i].Port = port
	}
	flows, err := openFlow(antreaPolicyFlows, AntreaTables(), data)
	if err != nil {
		return err
	}
	return o.addFlows(ctx, antreaBridge, flows)
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
