package kubeclient

import "cmp"

// cilium is Cilium; its agents read the ConfigMap cilium-config (keys:
// pkg/option/config.go of v1.18).
func cilium() detector {
	return detector{
		name: "cilium", agents: []string{"cilium-agent"}, read: readCilium,
		configured: func(e *evidence) bool { return e.configMaps["cilium-config"] != nil },
	}
}

func readCilium(e *evidence, n *Network) {
	n.Name = "cilium"
	config, ok := e.configMaps["cilium-config"]
	if !ok {
		n.lacks("encapsulation", "there is no ConfigMap cilium-config that can be read")
		return
	}
	tunnel := cmp.Or(config["tunnel-protocol"], "vxlan")
	// Before 1.14 one key said both.
	if old := config["tunnel"]; old != "" && config["routing-mode"] == "" && old != "disabled" {
		tunnel = old
	}
	native := config["routing-mode"] == "native" || config["routing-mode"] == "" && config["tunnel"] == "disabled"
	switch mode := config["cni-chaining-mode"]; {
	case mode != "" && mode != "none" && mode != "portmap":
		n.Name = "cilium/chained"
		n.lacks("encapsulation", "Cilium is chained after another network ("+mode+")")
	case native:
		n.Name, n.Mode.Encapsulation, n.Mode.Routing = "cilium/native", "none", "the nodes' network"
		if config["auto-direct-node-routes"] == "true" {
			n.Mode.Routing = "node routes"
		}
	default:
		n.Name, n.Mode.Encapsulation, n.Mode.Routing = "cilium/"+tunnel, tunnel, "tunnel"
	}
	switch config["kube-proxy-replacement"] {
	case "true", "strict":
		n.Mode.KubeProxy = "cilium (eBPF)"
	case "partial", "probe":
		n.lacks("kube_proxy", "Cilium replaces it in part")
	default: // "only enables per-packet in-cluster load-balancing of ClusterIP services" (v1.18, kubeproxy-free.rst)
		e.besideProxy(n, "cilium (eBPF)")
	}
	switch {
	case config["enable-wireguard"] == "true":
		n.Mode.Encryption = "wireguard"
	case config["enable-ipsec"] == "true":
		n.Mode.Encryption = "ipsec"
	case config["enable-ztunnel"] == "true":
		n.Mode.Encryption = "ztunnel"
	default:
		n.Mode.Encryption = "none"
	}
	n.Mode.PolicyEngine = "cilium (eBPF)"
	if config["enable-policy"] == "never" || config["enable-k8s-networkpolicy"] == "false" || config["policy-audit-mode"] == "true" {
		n.Mode.PolicyEngine = "none"
	}
}
