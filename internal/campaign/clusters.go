package campaign

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

const (
	// Kubernetes is the testbed of clusters.
	Kubernetes = "kubernetes"
	// Hosts is the testbed of bare machines, which may be nodes of a Kubernetes.
	Hosts = "hosts"
	// Detected stands in a campaign for the network that a cluster turns out to
	// have. Plans and records have the name that was found.
	Detected = "detected"
)

// Cluster is a Kubernetes, as a kubeconfig names it.
type Cluster struct {
	// Name is what records call it.
	Name string `json:"name"`
	// Context is that of the kubeconfig; "" is its current one.
	Context string `json:"context,omitempty"`
	// Kubeconfig is the file; "" is where kubectl looks.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Nodes are those of client and server, Zones theirs by label; neither: two
	// nodes that take pods, the first by name.
	Nodes []string `json:"nodes,omitempty"`
	Zones []string `json:"zones,omitempty"`
	// Namespace is an existing one, in which the run creates its pods; "": namespaces
	// of the run's own.
	Namespace string `json:"namespace,omitempty"`
	// Switch are commands (program and arguments each) that give the cluster its
	// network; none: it has one.
	Switch [][]string `json:"switch,omitempty"`
	// Network is the one that it must be detected to have, after Switch if there is one;
	// "": any.
	Network string `json:"network,omitempty"`

	// Found is what the cluster turned out to have; a plan needs it.
	Found Found `json:"-"`
}

// What Campaign.Pairs may be.
const (
	// AllPairs are all ordered pairs of nodes.
	AllPairs = "all"
	// PairsAcrossZones are those of nodes of different zones.
	PairsAcrossZones = "across-zones"
)

// EveryPair are the ordered pairs of some nodes.
func EveryPair(nodes []string) [][2]string {
	var pairs [][2]string
	for _, from := range nodes {
		for _, to := range nodes {
			if from != to {
				pairs = append(pairs, [2]string{from, to})
			}
		}
	}
	return pairs
}

// MaxCells is the most that a campaign may have.
const MaxCells = maxCells

// Found is what is not chosen on a cluster.
type Found struct {
	// Network is its pod network, "unknown" where it was not detected.
	Network string
	// MTU is that of its nodes' device, bytes.
	MTU int
	// Enforces reports that the network enforces policies.
	Enforces bool
	// Pairs are client and server node of each pair that is measured; nil: they are
	// not chosen yet, or one pair is measured whose nodes are no factor.
	Pairs [][2]string
}

// TheCluster is what a cluster is called in a campaign that names none.
const TheCluster = "cluster"

// clusterGivens are the keys that a campaign cannot choose on a cluster.
func clusterGivens() []string {
	return []string{"ladders", "links", "profiles", "mtu", "services", "service_proxies"}
}

// checkClusters reports keys about clusters that the campaign's testbed does not take.
func (d *decoder) checkClusters(c *Campaign) {
	if c.Testbed != Kubernetes {
		if d.root.child("clusters") != nil {
			d.fail(keyPath{"clusters"}, "write testbed: kubernetes", "clusters requires testbed kubernetes; this campaign uses %s", c.Testbed)
		}
		if d.root.child("pairs") != nil {
			d.fail(keyPath{"pairs"}, "write testbed: kubernetes", "pairs requires testbed kubernetes; this campaign uses %s", c.Testbed)
		}
		if d.root.child("networks") == nil {
			d.failAt(d.root, nil, "for example networks: [host, bridge]", "missing key %q", "networks")
		}
		return
	}
	for _, name := range clusterGivens() {
		if d.root.child(name) != nil {
			d.fail(keyPath{name}, "leave it out: it is read and recorded", "a cluster has what it has")
		}
	}
	if d.root.child("networks") == nil {
		c.Networks = []Network{{Name: result.HostNetwork}, {Name: Detected}}
	}
	if len(c.Clusters) > 1 && d.good(keyPath{"networks"}) && !c.hasNetwork(Detected) {
		d.fail(keyPath{"networks"}, "add detected", "several clusters have nothing in common but what is %s", Detected)
	}
	d.checkPairs(c)
	d.checkSwitches(c)
	c.asFound()
}

// checkPairs refuses what is not measured between many nodes.
func (d *decoder) checkPairs(c *Campaign) {
	if c.Pairs == "" {
		for i, cluster := range c.Clusters {
			for name, values := range map[string][]string{"nodes": cluster.Nodes, "zones": cluster.Zones} {
				if len(values) > 2 {
					d.fail(keyPath{"clusters", i, name}, "write pairs: all to measure every pair", "one pair is measured, of two %s: found %d", name, len(values))
				}
			}
		}
		return
	}
	for i, p := range c.Paths {
		if where := (keyPath{"paths", i}); d.good(where) && (p.Placement != result.InterHost || p.To != "pod" && p.To != "host") {
			d.fail(where, "write {from: pod, to: pod}; other paths are a campaign of their own", "pairs of nodes are measured from pod or host to pod or host, %s", result.InterHost)
		}
	}
	if c.withPolicies() {
		d.fail(keyPath{"policies"}, "make them a campaign of their own", "pairs of nodes are measured without policies")
	}
}

// checkSwitches compares clusters whose network is switched with each other: they
// are measured one after the other, so all are, or none is.
func (d *decoder) checkSwitches(c *Campaign) {
	for i, cluster := range c.Clusters {
		where := keyPath{"clusters", i}
		switch {
		case !d.good(where):
		case cluster.Switch != nil && cluster.Network == "":
			d.fail(where, "switch: [[helm, upgrade, …]] and network: cilium/native", "switch is the commands that give a cluster its network: expected the network too")
		case (cluster.Switch == nil) != (c.Clusters[0].Switch == nil):
			d.fail(where, "measure it in a campaign of its own", "some clusters have switch and some do not: those that have it are measured one after the other, the others in turns")
		}
	}
}

// Switched reports whether the clusters are one in which commands switch the network:
// they are then measured one after the other.
func (c Campaign) Switched() bool { return len(c.Clusters) > 0 && c.Clusters[0].Switch != nil }

// asFound leaves out what is not chosen on a cluster.
func (c *Campaign) asFound() { c.MTU, c.Services, c.ServiceProxies = nil, nil, nil }

// OnClusters is the campaign of another testbed, measured on a Kubernetes: in
// place of its networks what the cluster has. The notes say what it asks for
// that is no choice there.
func (c Campaign) OnClusters() (Campaign, []string) {
	if c.Testbed == Kubernetes {
		return c, nil
	}
	notes := c.detect()
	for _, g := range []struct {
		what   string
		values []string
		given  string
	}{{"links", c.Links, result.UnshapedLink}, {"profiles", c.Profiles, result.DefaultProfile}} {
		if slices.ContainsFunc(g.values, func(v string) bool { return v != g.given }) {
			notes = append(notes, fmt.Sprintf("%s are no choice on a cluster: in place of %s it is measured as it is", g.what, strings.Join(g.values, ", ")))
		}
	}
	if len(c.MTU) > 1 || slices.ContainsFunc(c.MTU, func(n int) bool { return n != 1500 }) {
		notes = append(notes, "the MTU is no choice on a cluster: that of its nodes is measured")
	}
	c.Testbed, c.Links, c.Profiles = Kubernetes, []string{result.UnshapedLink}, []string{result.DefaultProfile}
	c.asFound()
	return c, notes
}

// OnNodes is the campaign between hosts that are nodes of a Kubernetes, and what
// of it gives way to what the cluster has. Profiles and MTUs stay: hosts are given
// them.
func (c Campaign) OnNodes() (Campaign, []string) {
	notes := c.detect()
	c.Services, c.ServiceProxies = nil, nil
	return c, notes
}

// detect puts the network that a cluster has in place of those of labs.
func (c *Campaign) detect() (notes []string) {
	var left []string
	var networks []Network
	for _, n := range c.Networks {
		switch n.Name {
		case result.HostNetwork:
			networks = append(networks, n)
		case Detected:
		default:
			left = append(left, n.Name)
		}
	}
	if len(networks) < len(c.Networks) {
		networks = append(networks, Network{Name: Detected})
	}
	if len(left) > 0 {
		notes = append(notes, fmt.Sprintf("in place of %s the network that the cluster has is measured", strings.Join(left, ", ")))
	}
	c.Networks = networks
	return notes
}

// Named is the campaign with what was found in place of what is to be detected.
func (c Campaign) Named(found Found) Campaign {
	networks := make([]Network, len(c.Networks))
	for i, n := range c.Networks {
		if n.Name == Detected {
			n.Name, n.Enforces = found.Network, found.Enforces
		}
		networks[i] = n
	}
	c.Networks = networks
	return c
}

func clusterKeys() []key {
	return []key{
		{name: "name", required: true, kind: "cluster name", pattern: campaignName, patternDoc: "at most 63 letters, digits, dots, dashes and underscores, a letter or digit first",
			example: "with-cilium", doc: "What records and reports call the cluster."},
		{name: "context", defDoc: "the kubeconfig's current one", kind: "context", example: "admin@with-cilium",
			doc: "The kubeconfig's context."},
		{name: "kubeconfig", defDoc: "where kubectl looks", kind: "path of a kubeconfig", example: "./with-cilium.kubeconfig",
			doc: "The file. Relative paths are relative to the campaign file."},
		{name: "nodes", defDoc: "the first two that take pods", kind: "node", minItems: 2, example: "[node-a, node-b]",
			doc: "The client's node and the server's node. Paths inside one node use the client's. Ranks fill the nodes in this order. With pairs: all nodes to measure."},
		{name: "zones", defDoc: "any", kind: "zone", minItems: 2, repeats: true, example: "[eu-1a, eu-1b]",
			doc: "The zones (label topology.kubernetes.io/zone) of the client's and the server's node, instead of nodes. With pairs: the zones whose nodes are measured."},
		{name: "namespace", defDoc: "namespaces of the run's own", kind: "name of a namespace", pattern: namespaceName, patternDoc: "at most 63 small letters, digits and dashes, no dash first or last", example: "team-a",
			doc: "An existing namespace, for users who cannot create one. The run creates everything in it, labels what it creates, and deletes that at the end. The namespace stays."},
		{name: "switch", defDoc: "it has its network", kind: "word of a command", minItems: 1, repeats: true, example: "[[helm, upgrade, --install, cilium, ./cilium], [kubectl, -n, kube-system, rollout, status, ds/cilium]]",
			doc: "Commands that install the cluster's network. Each is a list of a program and its arguments, without a shell. They run in the campaign file's folder with the cluster's KUBECONFIG. Use them to measure one cluster with several networks, under several names. cnibench measures all blocks of one network before it switches to the next, because a network cannot be switched between samples. Requires network."},
		{name: "network", defDoc: "what is detected", kind: "network name", pattern: networkName, patternDoc: "small letters, digits, dots, dashes and underscores, with at most one slash (family/variant)", example: "cilium/native",
			doc: "The network that the cluster must be detected to have. If it has another one, cnibench refuses the run and names what it found. After switch, it fails the samples of that network instead."},
	}
}
