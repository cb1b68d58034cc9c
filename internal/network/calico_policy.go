package network

// felixModel is what the variants with policy add to their Model.
const felixModel = "; Felix's chains (Calico v3.27 felix/rules, iptables over nf_tables), one NetworkPolicy for every pod: " + policyWords

// policyWords says what the policy of the networks with policy allows.
const policyWords = "TCP and UDP ports from 1024 on, from and to the lab's pods and nodes"

// felixLeavesOut is what the variants with policy do without.
const felixLeavesOut = "host endpoints, failsafe ports, policy tiers; kube-proxy's rules; Calico's IPAM (host-local instead)"

// calicoDirectPolicy is calico/direct under Felix.
func calicoDirectPolicy() Network {
	n := calicoDirect()
	n.Name, n.Summary = "calico/direct-policy", "calico/direct with Felix's policy chains"
	n.Model, n.LeavesOut = n.Model+felixModel, felixLeavesOut
	return felixPolicy(n, felix{encapsulation: n.Encapsulation, nat: true})
}

// calicoIPIPPolicy is calico/ipip under Felix.
func calicoIPIPPolicy() Network {
	n := calicoIPIP()
	n.Name, n.Summary = "calico/ipip-policy", "calico/ipip with Felix's policy chains"
	n.Model, n.LeavesOut = n.Model+felixModel, felixLeavesOut
	return felixPolicy(n, felix{encapsulation: n.Encapsulation, nat: true})
}

// calicoVXLANPolicy is calico/vxlan under Felix.
func calicoVXLANPolicy() Network {
	n := calicoVXLAN()
	n.Name, n.Summary = "calico/vxlan-policy", "calico/vxlan with Felix's policy chains"
	n.Model, n.LeavesOut = n.Model+felixModel, felixLeavesOut
	return felixPolicy(n, felix{encapsulation: n.Encapsulation, nat: true})
}
