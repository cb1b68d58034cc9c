package kubeclient

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unknown is the name of a network that could not be identified.
const Unknown = "unknown"

// Network is what a cluster's pod network was found to be, as opposed to what
// somebody says that it is.
type Network struct {
	// Name is the network in its variant, as cnibench list networks has it:
	// "flannel/vxlan", "cilium/native"; Unknown where nothing fits.
	Name string
	// Version is that of its agent; "": undetermined.
	Version string
	Mode    Mode
	// Undetermined says what could not be found out, and why: "version: …".
	Undetermined []string
}

// Mode is how a network carries packets. An empty value is undetermined.
type Mode struct {
	// Encapsulation between nodes: "vxlan", "ipip", "geneve", "none".
	Encapsulation string
	// Routing is who knows the way: "tunnel", "node routes", "BGP", "VPC".
	Routing string
	// KubeProxy is what carries services out: "iptables", "nftables", "ipvs", or the
	// network that does it itself.
	KubeProxy string
	// Encryption between nodes: "wireguard", "ipsec", "none".
	Encryption string
	// PolicyEngine is what enforces NetworkPolicies, "none" where nothing does.
	PolicyEngine string
}

// Words are what is determined of a mode, by the names that environment.json has.
func (m Mode) Words() map[string]string {
	all := map[string]string{
		"encapsulation": m.Encapsulation, "routing": m.Routing, "kube_proxy": m.KubeProxy,
		"encryption": m.Encryption, "policy_engine": m.PolicyEngine,
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// Seen is what agents saw inside a pod and on a node; without an agent there it is zero.
type Seen struct{ Pod, Node Devices }

// Devices is what an agent reports of the devices and routes around it.
type Devices struct {
	// MTUs and Drivers are by device, Routes as the agent's facts have them.
	MTUs    map[string]int
	Drivers map[string]string
	Routes  []string
}

// detector reports whether a network is the cluster's, and how it is configured.
// An agent's DaemonSet is the better evidence, so configuration counts
// only if no such DaemonSet exists: it outlives the network that it was of.
type detector struct {
	name string
	// agents are the names of the container that only this network's agent has.
	agents []string
	// configured reports configuration that the network left; nil: none is known.
	configured func(e *evidence) bool
	// read finds the variant and fills in all but the version.
	read func(e *evidence, n *Network)
}

// detectors is every network that is known, those first that contain others.
func detectors() []detector {
	return []detector{
		canal(), calico(), cilium(), antrea(), weave(), kubeRouter(), kindnet(), ovn(), awsVPC(), flannel(), spiderpool(),
	}
}

// Detect finds out what the cluster's network is from what its API says, and
// what agents saw. What cannot be read is undetermined and never an error.
func (c *Client) Detect(ctx context.Context, seen Seen) Network {
	e := c.gather(ctx)
	e.seen = seen
	return e.network()
}

// network decides. It is pure.
func (e *evidence) network() Network {
	found, by := e.candidates()
	var n Network
	switch len(found) {
	case 0:
		plain(e, &n)
	case 1:
		n.Name = found[0].name
		if by == byAgent {
			n.Version = e.version(found[0].agents)
		}
		found[0].read(e, &n)
	default:
		var names []string
		for _, d := range found {
			names = append(names, d.name)
		}
		n.Name = Unknown
		n.lacks("network", "there is more than one: "+strings.Join(names, ", "))
	}
	if n.Version == "" && len(found) == 1 {
		why := "no DaemonSet of " + found[0].name + " is to be seen"
		if by == byAgent {
			why = "its agent's image has no tag"
		}
		n.lacks("version", why)
	}
	e.proxy(&n)
	known := n.Mode.Words()
	for _, what := range []string{"encapsulation", "routing", "kube_proxy", "encryption", "policy_engine"} {
		if known[what] == "" && !n.said(what) {
			n.lacks(what, "nothing that can be read shows it")
		}
	}
	e.confirm(&n)
	n.Undetermined = append(n.Undetermined, e.unread...)
	return n
}

// What a network was found by.
const (
	byAgent         = "agent"
	byConfiguration = "configuration"
)

func (e *evidence) candidates() (found []detector, by string) {
	for _, d := range detectors() {
		if d.name == "canal" && !e.isCanal() {
			continue
		}
		if e.agent(d.agents...) != nil && !e.onlyPolicy(d) {
			found = append(found, d)
		}
	}
	if len(found) > 0 {
		return outer(found), byAgent
	}
	for _, d := range detectors() {
		if d.configured != nil && d.configured(e) {
			found = append(found, d)
		}
	}
	return outer(found), byConfiguration
}

// outer leaves Calico and flannel out where they are parts of Canal, and what is
// beside Spiderpool where the pod is in the nodes' network.
func outer(found []detector) []detector {
	if len(found) > 0 && found[0].name == "canal" {
		found = found[:1]
	}
	if i := slices.IndexFunc(found, func(d detector) bool { return d.name == "spiderpool" }); i >= 0 {
		return found[i : i+1]
	}
	return found
}

// onlyPolicy reports an agent that enforces policies for another network, or is there
// for other devices than the one that is measured.
func (e *evidence) onlyPolicy(d detector) bool {
	switch d.name {
	case "antrea":
		return e.antreaBeside()
	case "spiderpool":
		return !e.underlay()
	case "calico", "canal":
		return !e.isCanal() && (e.env("calico-node", "CALICO_NETWORKING_BACKEND") == "none" || e.env("calico-node", "FELIX_INTERFACEPREFIX") == "eni")
	case "kube-router":
		return e.flag("kube-router", "run-router") == "false"
	}
	return false
}

// lacks says that something is undetermined, and why.
func (n *Network) lacks(what, why string) {
	n.Undetermined = append(n.Undetermined, what+": "+why)
}

func (n *Network) said(what string) bool {
	return slices.ContainsFunc(n.Undetermined, func(u string) bool { return strings.HasPrefix(u, what+":") })
}

// confirm compares the variant that configuration names with the devices that were
// seen: an agent may not have taken a new configuration yet.
func (e *evidence) confirm(n *Network) {
	if name, _, _ := strings.Cut(n.Name, "/"); e.underlay() && n.Name != Unknown && name != "spiderpool" && name != e.seen.Pod.Drivers["eth0"] {
		n.lacks("network", fmt.Sprintf("it is configured as %s, but a pod's eth0 is a %s: another plugin attached it", n.Name, e.seen.Pod.Drivers["eth0"]))
		n.Name, n.Version, n.Mode = Unknown, "", Mode{KubeProxy: n.Mode.KubeProxy}
		return
	}
	device, known := map[string]string{
		"flannel/vxlan": "flannel.1", "canal": "flannel.1", "flannel/udp": "flannel0", "flannel/ipip": "flannel.ipip", "flannel/wireguard": "flannel-wg",
		"calico/vxlan": "vxlan.calico", "calico/ipip": "tunl0", "cilium/vxlan": "cilium_vxlan", "cilium/geneve": "cilium_geneve", "cilium/native": "cilium_host",
		"antrea/geneve": "antrea-gw0", "antrea/vxlan": "antrea-gw0", "antrea/wireguard": "antrea-wg0", "antrea/noencap": "antrea-gw0", "kube-router": "kube-bridge", "weave/fastdp": "weave", "weave/sleeve": "weave",
	}[n.Name]
	if !known || len(e.seen.Node.MTUs) == 0 {
		return
	}
	if _, there := e.seen.Node.MTUs[device]; !there {
		n.lacks("network", fmt.Sprintf("it is configured as %s, but the node has no device %s", n.Name, device))
		n.Name = Unknown
	}
}
