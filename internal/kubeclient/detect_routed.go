package kubeclient

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// kubeRouter is kube-router where it carries packets (docs/user-guide.md:
// overlays are on by default, between subnets only).
func kubeRouter() detector {
	return detector{name: "kube-router", agents: []string{"kube-router"}, read: func(e *evidence, n *Network) {
		n.Mode.Routing, n.Mode.Encryption = "BGP", "none"
		tunnel := cmp.Or(e.flag("kube-router", "overlay-encap"), "ipip")
		switch {
		case e.flag("kube-router", "enable-overlay") == "false":
			n.Mode.Encapsulation = "none"
		case e.flag("kube-router", "overlay-type") == "full":
			n.Mode.Encapsulation = tunnel
		case len(e.seen.Node.Routes) == 0:
			n.lacks("encapsulation", tunnel+" between subnets only, and no agent has seen a node")
		case slices.ContainsFunc(e.seen.Node.Routes, func(r string) bool { return strings.Contains(r, " dev tun-") }):
			n.lacks("encapsulation", tunnel+" between subnets only, and the node has routes of both kinds")
		default:
			n.Mode.Encapsulation = "none"
		}
		if e.flag("kube-router", "run-service-proxy") != "false" {
			n.Mode.KubeProxy = "kube-router (ipvs)"
		}
		if n.Mode.PolicyEngine = "none"; e.flag("kube-router", "run-firewall") != "false" {
			n.Mode.PolicyEngine = "kube-router (iptables)"
		}
	}}
}

// firstPolicies is the image of kindnetd that came to enforce policies (kind
// v0.24).
const firstPolicies = "v20240813"

// kindnet is the network that kind brings along.
func kindnet() detector {
	return detector{name: "kindnet", agents: []string{"kindnet-cni"}, read: func(e *evidence, n *Network) {
		n.Mode.Encapsulation, n.Mode.Routing, n.Mode.Encryption = "none", "node routes", "none"
		if n.Version >= firstPolicies {
			n.Mode.PolicyEngine = "kube-network-policies (nftables)"
			return
		}
		e.policyBeside(n)
	}}
}

// awsVPC is the Amazon VPC CNI: a pod's address is one of its node's own.
func awsVPC() detector {
	return detector{name: "aws-vpc-cni", agents: []string{"aws-node"}, read: func(e *evidence, n *Network) {
		n.Mode.Encapsulation, n.Mode.Routing = "none", "VPC"
		n.lacks("encryption", "none by the network; some instances encrypt between each other on their own")
		if e.flag("aws-eks-nodeagent", "enable-network-policy") == "true" {
			n.Mode.PolicyEngine = "aws (eBPF)"
			return
		}
		e.policyBeside(n)
	}}
}

// underlay reports a pod whose eth0 is a device in the nodes' own network.
func (e *evidence) underlay() bool {
	driver := e.seen.Pod.Drivers["eth0"]
	return driver == "macvlan" || driver == "ipvlan"
}

// spiderpool is Spiderpool where it attaches pods' eth0 to the nodes' network
// (charts/spiderpool, DaemonSet spiderpool-agent). Beside another network it gives pods
// more devices, and eth0 is the other's.
func spiderpool() detector {
	return detector{name: "spiderpool", agents: []string{"spiderpool-agent"}, read: func(e *evidence, n *Network) {
		n.Name = "spiderpool/" + e.seen.Pod.Drivers["eth0"]
		n.Mode.Encapsulation, n.Mode.Routing, n.Mode.Encryption = "none", "the nodes' network", "none"
		n.lacks("policy_engine", "Spiderpool has none, and a plugin chained after it may")
	}}
}

// plain is a network without agents: only a plugin on the nodes, which only the
// pod itself shows.
func plain(e *evidence, n *Network) {
	n.Name = Unknown
	n.lacks("version", "no agent of a network is known here")
	if e.cannotRead("DaemonSets") {
		n.lacks("network", "DaemonSets cannot be read, so its agent cannot be seen")
		return
	}
	if name := e.installer(); name != "" {
		n.lacks("network", "DaemonSet "+name+" puts CNI files on nodes, and it is none that is known")
		return
	}
	pod := e.seen.Pod
	switch driver := pod.Drivers["eth0"]; driver {
	case "macvlan", "ipvlan":
		n.Name, n.Mode.Encapsulation, n.Mode.Routing = driver, "none", "the nodes' network"
	case "veth":
		direct, ok := onLink(pod.Routes)
		if !ok {
			n.lacks("network", "the pod has veth and no route that is known: "+strings.Join(pod.Routes, ", "))
			return
		}
		if n.Name = "ptp"; direct {
			n.Name = "bridge"
		}
		n.Mode.Encapsulation, n.Mode.Routing = "none", "node routes"
	case "":
		n.lacks("network", "there is no agent of a network, and the device eth0 of a pod was not seen")
		return
	default:
		n.lacks("network", "there is no agent of a network, and a pod's eth0 is of the kind "+driver)
		return
	}
	n.Mode.Encryption = "none"
	e.policyBeside(n)
}

// onLink reports whether a pod reaches its node's other pods on the link, as those
// of a bridge do, or by its gateway, as those of ptp; ok: one of the two.
func onLink(routes []string) (direct, ok bool) {
	for _, route := range routes {
		to, rest, _ := strings.Cut(route, " ")
		prefix, err := netip.ParsePrefix(to)
		if err != nil || prefix.Bits() == 0 || !strings.HasSuffix(rest, "dev eth0") {
			continue
		}
		switch via := strings.HasPrefix(rest, "via "); {
		case prefix.Bits() < 31 && !via:
			return true, true
		case prefix.Bits() < 31 || prefix.IsSingleIP() && !via && !prefix.Addr().IsLinkLocalUnicast():
			ok = true
		}
	}
	return false, ok
}

// installer is a DaemonSet that has the nodes' CNI folders.
func (e *evidence) installer() string {
	for _, ds := range e.daemonSets {
		for _, v := range ds.Spec.Template.Spec.Volumes {
			if v.HostPath != nil && ds.Status.DesiredNumberScheduled > 0 &&
				(strings.HasPrefix(v.HostPath.Path, "/etc/cni") || strings.HasPrefix(v.HostPath.Path, "/opt/cni")) {
				return ds.Namespace + "/" + ds.Name
			}
		}
	}
	return ""
}

func (e *evidence) cannotRead(what string) bool {
	return slices.ContainsFunc(e.unread, func(u string) bool { return strings.HasPrefix(u, what+":") })
}
