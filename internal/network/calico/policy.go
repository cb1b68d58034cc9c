package calico

import (
	"github.com/cnibench/cnibench/internal/network"
)

// felixModel is what the variants with policy add to their Model.
const felixModel = "; Felix's chains (Calico v3.27 felix/rules, iptables over nf_tables), one NetworkPolicy for every pod: " + network.PolicyWords

// felixLeavesOut is what the variants with policy do without.
const felixLeavesOut = "host endpoints, failsafe ports, policy tiers; kube-proxy's rules; Calico's IPAM (host-local instead)"

// DirectPolicy is calico/direct under Felix.
func DirectPolicy() network.Network {
	n := Direct()
	n.Name, n.Summary = "calico/direct-policy", "calico/direct with Felix's policy chains"
	return felixPolicy(n, felix{encapsulation: n.Encapsulation, nat: true})
}

// IPIPPolicy is calico/ipip under Felix.
func IPIPPolicy() network.Network {
	n := IPIP()
	n.Name, n.Summary = "calico/ipip-policy", "calico/ipip with Felix's policy chains"
	return felixPolicy(n, felix{encapsulation: n.Encapsulation, nat: true})
}

// VXLANPolicy is calico/vxlan under Felix.
func VXLANPolicy() network.Network {
	n := VXLAN()
	n.Name, n.Summary = "calico/vxlan-policy", "calico/vxlan with Felix's policy chains"
	return felixPolicy(n, felix{encapsulation: n.Encapsulation, nat: true})
}

// UnderFelix adds Felix's policy chains to a network of Calico's veths whose tunnel and
// NAT are another agent's.
func UnderFelix(n network.Network) network.Network { return felixPolicy(n, felix{}) }
