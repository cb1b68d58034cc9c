package network

// felixModel is what the variants with policy add to their Model.
const felixModel = "; Felix's chains of Calico v3.27 (felix/rules, iptables over nf_tables) with one NetworkPolicy for every pod: " +
	"TCP and UDP ports from 1024 on, from and to the lab's pods and nodes"

// felixLeavesOut is what the variants with policy do without.
const felixLeavesOut = "chains of host endpoints (empty) and failsafe ports, IPv6, policy tiers; kube-proxy's rules; Calico's IPAM (host-local instead)"

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
