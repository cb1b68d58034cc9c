package kubeclient

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// antrea is Antrea; its agents read the ConfigMap antrea-config.
func antrea() detector {
	return detector{name: "antrea", agents: []string{"antrea-agent"}, read: readAntrea}
}

// antreaConfig is what matters of antrea-agent.conf.
type antreaConfig struct {
	FeatureGates          map[string]bool `yaml:"featureGates"`
	TrafficEncapMode      string          `yaml:"trafficEncapMode"`
	TunnelType            string          `yaml:"tunnelType"`
	TrafficEncryptionMode string          `yaml:"trafficEncryptionMode"`
	AntreaProxy           struct {
		Enable   *bool `yaml:"enable"`
		ProxyAll bool  `yaml:"proxyAll"`
	} `yaml:"antreaProxy"`
}

func (e *evidence) antreaConfig() (config antreaConfig, ok bool, err error) {
	text, ok := e.configMaps["antrea-config"]["antrea-agent.conf"]
	return config, ok, yaml.Unmarshal([]byte(text), &config)
}

// antreaBeside reports an Antrea that enforces policies for another network, as on
// EKS and AKS.
func (e *evidence) antreaBeside() bool {
	config, ok, err := e.antreaConfig()
	return ok && err == nil && strings.EqualFold(config.TrafficEncapMode, "networkPolicyOnly")
}

func readAntrea(e *evidence, n *Network) {
	n.Name, n.Mode.PolicyEngine = "antrea", "antrea (Open vSwitch)"
	config, ok, err := e.antreaConfig()
	if !ok {
		n.lacks("encapsulation", "there is no ConfigMap antrea-config that can be read")
		return
	}
	if err != nil {
		n.lacks("encapsulation", fmt.Sprintf("ConfigMap antrea-config is not understood: %v", err))
		return
	}
	n.Mode.Encryption = strings.ToLower(cmp.Or(config.TrafficEncryptionMode, "none"))
	gate, gated := config.FeatureGates["AntreaProxy"]
	switch off := config.AntreaProxy.Enable != nil && !*config.AntreaProxy.Enable || gated && !gate; {
	case off:
	case config.AntreaProxy.ProxyAll:
		n.Mode.KubeProxy = "antrea (Open vSwitch)"
	default: // AntreaProxy is on unless it is switched off, for what pods send to ClusterIPs
		e.besideProxy(n, "antrea (Open vSwitch)")
	}
	switch strings.ToLower(cmp.Or(config.TrafficEncapMode, "encap")) {
	case "encap":
		n.Mode.Encapsulation, n.Mode.Routing = strings.ToLower(cmp.Or(config.TunnelType, "geneve")), "tunnel"
		if n.Mode.Encryption == "wireguard" { // then tunnelType has no effect (antrea-agent.conf)
			n.Mode.Encapsulation = "wireguard"
		}
		n.Name += "/" + n.Mode.Encapsulation
	case "noencap":
		n.Mode.Encapsulation, n.Mode.Routing = "none", "node routes"
		n.Name += "/noencap"
	case "hybrid":
		n.Name += "/hybrid"
		n.lacks("encapsulation", "it is hybrid: none between nodes of one subnet")
	default:
		n.lacks("encapsulation", "Antrea only enforces policies (trafficEncapMode "+config.TrafficEncapMode+")")
	}
}

// ovn is OVN-Kubernetes, also as OpenShift has it.
func ovn() detector {
	return detector{name: "ovn-kubernetes", agents: []string{"ovnkube-controller", "ovnkube-node"}, read: func(e *evidence, n *Network) {
		n.Mode = Mode{Encapsulation: "geneve", Routing: "tunnel", KubeProxy: "ovn (Open vSwitch)", PolicyEngine: "ovn (Open vSwitch)", Encryption: "none"}
		if e.agent("ovn-ipsec") != nil {
			n.Mode.Encryption = "ipsec"
		}
	}}
}

// weave is Weave Net. Its agents choose between the fast datapath and sleeve for
// each other node by what gets through, so only devices show it.
func weave() detector {
	return detector{name: "weave", agents: []string{"weave"}, read: func(e *evidence, n *Network) {
		encrypted := false
		if c := e.agent("weave"); c != nil {
			for _, v := range c.Env {
				encrypted = encrypted || v.Name == "WEAVE_PASSWORD"
			}
		}
		_, datapath := e.seen.Node.MTUs["datapath"]
		n.Mode.Routing, n.Mode.Encryption = "tunnel", "none"
		switch {
		case e.env("weave", "WEAVE_NO_FASTDP") != "" || len(e.seen.Node.MTUs) > 0 && !datapath:
			n.Name, n.Mode.Encapsulation = "weave/sleeve", "sleeve"
		case datapath:
			n.Name, n.Mode.Encapsulation = "weave/fastdp", "vxlan"
		default:
			n.lacks("encapsulation", "the fast datapath (VXLAN) or sleeve: no agent has seen a node")
		}
		if encrypted {
			n.Mode.Encryption = map[string]string{"sleeve": "nacl", "vxlan": "ipsec"}[n.Mode.Encapsulation]
		}
		if n.Mode.PolicyEngine = "none"; e.agent("weave-npc") != nil {
			n.Mode.PolicyEngine = "weave-npc (iptables)"
		}
	}}
}
