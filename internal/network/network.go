// Package network is what all pod networks of a lab share: what a network, a node, a pod
// and a service proxy are, and what most networks set on a node. Each family of networks
// has a folder here that knows this package; internal/network/catalog lists them all.
package network

import (
	"cmp"
	"context"
	"io"
	"net/netip"
	"os"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

// Node is what a network's set-up knows of one node of a lab cluster.
type Node struct {
	Name    string       // "node1"
	Index   int          // from 1
	NS      netns.NS     // the node's network namespace
	Device  string       // the device on the link, "eth0"
	Address netip.Prefix // of Device, 198.18.0.1/16
	PodCIDR netip.Prefix // 10.244.1.0/24
	MTU     int          // of Device, bytes
	// MasqueradeAll is the network's.
	MasqueradeAll bool
	// Policies is how many policies that allow nothing of the lab's are before
	// the one that does, on networks with Policy.
	Policies int
	// Address6 and PodCIDR6 are the same for IPv6: fd00:198:18::1/64,
	// fd00:10:244:1::/64. They are not valid where the cluster has IPv4 alone.
	Address6, PodCIDR6 netip.Prefix
	DataDir            string     // a folder of this node for IPAM and the like; removed with the lab
	Switch             netns.Port // the bridge that all nodes' links are on, in the fabric's namespace
}

// Pod is what a network's agent would learn of one pod.
type Pod struct {
	ID      string     // what plugins know as the container's ID
	Node    int        // the Index of its node
	Address netip.Addr // as its ADD gave it
}

// Dual reports whether the cluster has IPv6 in addition to IPv4.
func (n Node) Dual() bool { return n.Address6.IsValid() }

// Network is one pod network in one variant.
type Network struct {
	// Name is family/variant, "flannel/vxlan".
	Name    string
	Summary string
	// Kind is result.KindReal, KindModel or KindOwnPlugin. Reports mark the last two:
	// their datapath is rebuilt by this program.
	Kind string
	// Model cites what the datapath was modelled on where the network's own
	// agent does not run: "flannel v0.28 backend/vxlan". Empty for networks that
	// are what they say (reference plugins, the host).
	Model string
	// LeavesOut says what a model does without.
	LeavesOut string
	// Distance is by how much a model is cheaper than the real network; nil where that was not
	// counted, or is within 5 %.
	Distance *result.Distance
	// Encapsulation is "", "vxlan", …; Overhead is what it takes from the MTU
	// in bytes, so that the pod's MTU is the link's less Overhead.
	Encapsulation string
	Overhead      int
	// IPv6 reports that the network carries IPv6 in addition to IPv4. Overhead6 is what an
	// encapsulation in IPv6 takes, in place of Overhead, on clusters of both.
	IPv6      bool
	Overhead6 int
	// FixedMTU is the MTU of pods' devices where it does not depend on that of the link; 0:
	// it does.
	FixedMTU int
	// HostNetwork: pods share their node's namespace; no CNI ADD happens.
	HostNetwork bool
	// Needs are the kernel features without which the network is unsupported.
	Needs []netns.Feature
	// Wants are features that nodes of this network have by its documents, and
	// that it also runs without; what is missing is recorded in the environment.
	Wants []netns.Feature
	// InKernel are features without which its packets are switched in user space.
	InKernel []netns.Feature
	// UserSpaceLoses are the datagrams in fragments that do not arrive where its packets are
	// switched in user space: those between nodes where it has no InKernel, and all where a
	// feature of it is missing.
	UserSpaceLoses Fragments
	// Published gives the port at its node's address by which others reach a pod, which has no
	// address that they know, and at which the pod's server must listen; nil where pods are
	// reached at their own addresses.
	Published func(pod netip.Addr) uint16
	// NoHostPaths says why a node cannot reach its pods; "" where it can.
	NoHostPaths string
	// NoServices says why rules on a node cannot carry out a service for its
	// pods; "" where they can. What is done at the pods' sockets works all the
	// same.
	NoServices string
	// NoXDP says why XDP at its nodes' device cannot carry out a NodePort for its pods; ""
	// where it can.
	NoXDP string
	// MasqueradeAll is kube-proxy's --masquerade-all: its pods are of the pods'
	// range and answer each other past their nodes.
	MasqueradeAll bool
	// Nodes is the most nodes that it can have; 0: as many as the lab can.
	Nodes int
	// Policy reports that pods are under a policy (PolicyPorts), before which others
	// can be put.
	Policy bool
	// NoInterHost says why there is no path between nodes; "" where there is.
	NoInterHost string
	// NoEncryption says why what its nodes send each other cannot be encrypted below it;
	// "" where it can. NeedsEthernet says why it needs Ethernet frames at the node's device,
	// which WireGuard's has not; "" where packets are enough.
	NoEncryption, NeedsEthernet string
	// Plugins are the CNI plugin binaries that the conflist names. Those that
	// this program provides itself are not listed.
	Plugins []string
	// SetUp does on one node what the network's agent would do there. It runs
	// on all nodes, after all of them exist. May be nil.
	SetUp func(ctx context.Context, self Node, nodes []Node) error
	// PodsAdded does on one node what the agent would do there once it knows of
	// all pods, those of other nodes too. It runs on all nodes after the ADDs.
	// May be nil.
	PodsAdded func(ctx context.Context, self Node, nodes []Node, pods []Pod) error
	// Wrap gives what goes before the argv of every program at a place on a node: it may
	// put the program into namespaces of its own, in addition to the network's. May be nil.
	Wrap func(self Node) ([]string, error)
	// Unprivileged: what Wrap starts has no rights over the node's network, although the
	// lab is root. The lab then lets it choose a congestion control.
	Unprivileged bool
	// Cgroup is done to a cgroup that the programs at the places of one node
	// run in, where it is not nil: the lab makes one for each node then. What it
	// gives is closed when the lab goes, so such a network cannot be kept.
	Cgroup func(cgroup *os.File) (io.Closer, error)
	// BigTCP reports that its devices pass TCP segments of more than 64 KiB, which the
	// lab verifies in samples of long messages.
	BigTCP bool
	// Proxied gives how many TCP connections were led to the proxies of a node and of its pods,
	// where TCP between pods passes proxies in user space; nil where it passes none. UDP never
	// does.
	Proxied func(ctx context.Context, self Node, pods []Pod) (uint64, error)
	// Bypassed gives how many packets of TCP and UDP a node's flowtable did not take, where
	// established connections bypass the node's routes and rules; nil where they do not.
	Bypassed func(ctx context.Context, self Node) (uint64, error)
	// Attached verifies, at the devices of those of the pods that are on a node, that they are of
	// the kind that the network claims, with its programs at them; nil where no sample asks.
	Attached func(self Node, pods []Pod) error
	// Datapath says what carries the packets on this machine, with its version,
	// where that is not the same on all. May be nil.
	Datapath func(ctx context.Context) (string, error)
	// Conflist is the CNI configuration list for pods of self.
	Conflist func(self Node, nodes []Node) ([]byte, error)
}

// Pods is the network that all pods' addresses are of.
func Pods() netip.Prefix { return netip.MustParsePrefix("10.244.0.0/16") }

// Pods6 is the same for IPv6.
func Pods6() netip.Prefix { return netip.MustParsePrefix("fd00:10:244::/48") }

// Fragments says which datagrams that are longer than the MTU of pods do not arrive.
type Fragments int

const (
	// NoFragments are lost: all of them arrive.
	NoFragments Fragments = iota
	// FloodsOfFragments are lost, those flat out. One by one they arrive.
	FloodsOfFragments
	// AllFragments are lost.
	AllFragments
)

// OnTheWire is NoEncryption of networks whose pods are on the link themselves.
const OnTheWire = "its pods are on the link themselves, and their packets do not pass the IP layer of their node"

// PodMTU is the MTU of a pod's device on a link of the given MTU.
func (n Network) PodMTU(link int) int { return cmp.Or(n.FixedMTU, link-n.Overhead) }

// PodMTU6 is that of a pod's device on a cluster of both families.
func (n Network) PodMTU6(link int) int {
	return cmp.Or(n.FixedMTU, link-max(n.Overhead, n.Overhead6))
}

// PodMTUOn is the MTU of a pod's device on a node.
func (n Network) PodMTUOn(self Node) int {
	if self.Dual() {
		return n.PodMTU6(self.MTU)
	}
	return n.PodMTU(self.MTU)
}
