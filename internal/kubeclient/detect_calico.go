package kubeclient

import (
	"cmp"
	"net/netip"
	"strings"
)

// calico is Calico, as its manifests and its operator (Tigera) install it.
func calico() detector {
	return detector{name: "calico", agents: []string{"calico-node"}, read: readCalico}
}

// canal is flannel's network under Calico's policies, in one DaemonSet; its
// agent's containers are both networks', so its ConfigMap decides.
func canal() detector {
	return detector{name: "canal", agents: []string{"calico-node"}, read: readCanal}
}

// isCanal reports an agent of Canal's: both containers, in one DaemonSet.
func (e *evidence) isCanal() bool {
	for _, ds := range e.daemonSets {
		names := map[string]bool{}
		for _, c := range ds.Spec.Template.Spec.Containers {
			names[c.Name] = true
		}
		if names["calico-node"] && names["kube-flannel"] {
			return true
		}
	}
	return false
}

func readCanal(e *evidence, n *Network) {
	e.readBackend(n, "canal-config")
	n.Name = "canal"
	if n.Mode.Encapsulation != "vxlan" { // as it ships
		n.Name += "/" + cmp.Or(n.Mode.Encapsulation, Unknown)
	}
	e.felixEngine(n)
}

// felixEngine finds out by what Felix enforces policies. From v3.32 on it follows
// kube-proxy (nftablesMode Auto); before, nftables had to be configured.
func (e *evidence) felixEngine(n *Network) {
	bpf := e.felixSays("FELIX_BPFENABLED", func(f felixConfiguration) *bool { return f.Spec.BPFEnabled })
	if bpf == "true" {
		n.Mode.KubeProxy, n.Mode.PolicyEngine = "calico (eBPF)", "calico (eBPF)"
		return
	}
	if bpf == "" {
		n.lacks("policy_engine", "Calico's, but Felix's configuration cannot be read: iptables, nftables or eBPF")
		return
	}
	mode := e.env("calico-node", "FELIX_NFTABLESMODE")
	for _, f := range e.felix {
		if f.Metadata.Name == "default" {
			mode = cmp.Or(mode, f.Spec.NFTablesMode)
		}
	}
	e.proxy(n)
	switch mode = strings.ToLower(mode); {
	case mode == "enabled", mode == "auto" && n.Mode.KubeProxy == "nftables":
		n.Mode.PolicyEngine = "calico (nftables)"
	case mode == "auto" && n.Mode.KubeProxy == "":
		n.lacks("policy_engine", "Calico's, in iptables or nftables as kube-proxy is (nftablesMode Auto), whose mode is not known")
	case mode == "" && n.Mode.KubeProxy == "nftables":
		n.lacks("policy_engine", "Calico's, in iptables or nftables by its version: kube-proxy is in nftables, and nftablesMode is not set")
	default:
		n.Mode.PolicyEngine = "calico (iptables)"
	}
}

// readCalico reads the pools that addresses are taken from, and Felix's
// configuration (docs.tigera.io, IP pool and Felix configuration resources). The
// agent's environment only makes the first pool, so it counts where pools cannot
// be read.
func readCalico(e *evidence, n *Network) {
	n.Mode.Encapsulation = e.calicoEncapsulation(n)
	variant := n.Mode.Encapsulation
	if variant == "none" {
		variant = "direct"
	}
	bpf := e.felixSays("FELIX_BPFENABLED", func(f felixConfiguration) *bool { return f.Spec.BPFEnabled })
	switch {
	case bpf == "true" && variant == "direct":
		variant = "ebpf"
	case bpf == "true" && variant != "":
		variant = "ebpf-" + variant
	}
	if n.Name = "calico"; variant != "" {
		n.Name += "/" + variant
	}
	backend := cmp.Or(e.env("calico-node", "CALICO_NETWORKING_BACKEND"), e.configMaps["calico-config"]["calico_backend"])
	switch {
	case n.Mode.Encapsulation == "vxlan":
		n.Mode.Routing = "tunnel"
	case backend == "bird":
		n.Mode.Routing = "BGP"
	case backend == "vxlan":
		n.Mode.Routing = "node routes"
	}
	e.felixEngine(n)
	switch e.felixSays("FELIX_WIREGUARDENABLED", func(f felixConfiguration) *bool { return f.Spec.WireguardEnabled }) {
	case "true":
		n.Mode.Encryption = "wireguard"
	case "false":
		n.Mode.Encryption = "none"
	}
}

// felixSays is a setting of Felix that is off unless it is set, in the agent's
// environment or in the configuration "default"; "" where neither can be read.
func (e *evidence) felixSays(env string, get func(felixConfiguration) *bool) string {
	if v := strings.ToLower(e.env("calico-node", env)); v != "" {
		return v
	}
	known := ""
	for _, f := range e.felix {
		if f.Metadata.Name != "default" {
			continue
		}
		known = "false"
		if v := get(f); v != nil && *v {
			return "true"
		}
	}
	return known
}

func (e *evidence) calicoEncapsulation(n *Network) string {
	ipip, vxlan := e.env("calico-node", "CALICO_IPV4POOL_IPIP"), e.env("calico-node", "CALICO_IPV4POOL_VXLAN")
	seen := false
	for _, p := range e.pools {
		if prefix, err := netip.ParsePrefix(p.Spec.CIDR); err != nil || !prefix.Addr().Is4() || p.Spec.Disabled {
			continue
		}
		if seen && (p.Spec.IPIPMode != ipip || p.Spec.VXLANMode != vxlan) {
			n.lacks("encapsulation", "the IP pools differ in it")
			return ""
		}
		seen, ipip, vxlan = true, p.Spec.IPIPMode, p.Spec.VXLANMode
	}
	if ipip == "" && vxlan == "" {
		n.lacks("encapsulation", "neither an IP pool nor the agent shows it")
		return ""
	}
	switch {
	case ipip == "Always":
		return "ipip"
	case vxlan == "Always":
		return "vxlan"
	case ipip != "CrossSubnet" && vxlan != "CrossSubnet":
		return "none"
	}
	switch e.subnets() {
	case 0:
		n.lacks("encapsulation", "it is CrossSubnet, and the nodes' subnets cannot be read")
	case 1:
		return "none"
	default:
		n.lacks("encapsulation", "it is CrossSubnet, and the nodes are in several subnets: it is another between different nodes")
	}
	return ""
}

// subnets is in how many subnets the nodes are, by what Calico's agents wrote at
// them; 0: unknown.
func (e *evidence) subnets() int {
	all := map[netip.Prefix]bool{}
	for _, node := range e.nodes {
		prefix, err := netip.ParsePrefix(node.Annotations["projectcalico.org/IPv4Address"])
		if err != nil {
			return 0
		}
		all[prefix.Masked()] = true
	}
	return len(all)
}
