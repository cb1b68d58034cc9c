package kubeclient

import (
	"encoding/json"
	"fmt"
	"strings"
)

// flannelBackend is what each flanneld writes at its node: its backend.
const flannelBackend = "flannel.alpha.coreos.com/backend-type"

// flannel is flannel, in a DaemonSet or inside another program, as in k3s.
func flannel() detector {
	return detector{
		name: "flannel", agents: []string{"kube-flannel"}, read: readFlannel,
		configured: func(e *evidence) bool {
			backend, several := e.annotation(flannelBackend)
			return backend != "" || several || e.configMaps["kube-flannel-cfg"] != nil
		},
	}
}

func readFlannel(e *evidence, n *Network) {
	n.Name = "flannel"
	backend := e.readBackend(n, "kube-flannel-cfg")
	if backend != "" {
		n.Name += "/" + backend
	}
	e.policyBeside(n)
}

// readBackend finds out flannel's backend and gives the name of the variant; ""
// where it is undetermined. What the running agents wrote counts before what they
// will read when they start again.
func (e *evidence) readBackend(n *Network, configMap string) string {
	var config struct {
		Backend struct {
			Type          string
			DirectRouting bool
		}
	}
	if text := e.configMaps[configMap]["net-conf.json"]; text != "" {
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			n.lacks("configuration", fmt.Sprintf("ConfigMap %s is not understood: %v", configMap, err))
		}
	}
	backend, several := e.annotation(flannelBackend)
	switch {
	case several:
		n.lacks("encapsulation", "the nodes have different backends of flannel")
		return ""
	case backend == "":
		backend = config.Backend.Type
	}
	backend = strings.ToLower(backend)
	n.Mode.Encryption, n.Mode.Routing = "none", "tunnel"
	switch backend {
	case "":
		n.Mode.Encryption, n.Mode.Routing = "", ""
		n.lacks("encapsulation", "neither a node nor a ConfigMap names flannel's backend")
		return ""
	case "host-gw":
		n.Mode.Encapsulation, n.Mode.Routing = "none", "node routes"
	case "wireguard":
		n.Mode.Encapsulation, n.Mode.Encryption = "wireguard", "wireguard"
	case "ipsec":
		n.Mode.Encapsulation, n.Mode.Encryption = "ipsec", "ipsec"
	default:
		n.Mode.Encapsulation = backend
	}
	if config.Backend.DirectRouting && (backend == "vxlan" || backend == "ipip") {
		n.Mode.Encapsulation = ""
		n.lacks("encapsulation", backend+" with DirectRouting: none between nodes of one subnet")
		return backend + "-direct-routing"
	}
	return backend
}

// policyBeside finds out what enforces policies for a network that does not.
func (e *evidence) policyBeside(n *Network) {
	switch {
	case e.agent("calico-node") != nil:
		e.felixEngine(n)
	case e.agent("antrea-agent") != nil:
		n.Mode.PolicyEngine = "antrea (Open vSwitch)"
	case e.agent("kube-router") != nil && e.flag("kube-router", "run-firewall") != "false":
		n.Mode.PolicyEngine = "kube-router (iptables)"
	case e.agent("kube-network-policies") != nil:
		n.Mode.PolicyEngine = "kube-network-policies (nftables)"
	case e.cannotRead("DaemonSets"):
		n.lacks("policy_engine", "DaemonSets cannot be read")
	case e.kubelet("+k3s"):
		n.lacks("policy_engine", "k3s has one inside, unless it was switched off")
	default:
		n.Mode.PolicyEngine = "none"
	}
}

// kubelet reports a node whose kubelet belongs to a distribution.
func (e *evidence) kubelet(distribution string) bool {
	for _, node := range e.nodes {
		if strings.Contains(node.Status.NodeInfo.KubeletVersion, distribution) {
			return true
		}
	}
	return false
}
