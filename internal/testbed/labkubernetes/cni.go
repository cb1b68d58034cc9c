package labkubernetes

import (
	"context"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/netns"
)

// CNI is one pod network of a Kubernetes in a lab: what its installation would
// bring to the API and to nodes. What it needs nothing of is nil.
type CNI struct {
	Name    string
	Summary string
	IPv6    bool // it can have IPv6 in addition to IPv4
	// KubeProxy is the only one of KubeProxies that it runs with; "" where any will do.
	KubeProxy string
	// Programs are binaries that make cluster-binaries builds, or that cureOf says
	// how to get; Cluster.Program gives their paths.
	Programs []string
	// Plugins are those that the configuration lists name; they are looked for
	// among the built binaries and in the usual folders of plugins.
	Plugins []string
	// Needs are the kernel features without which it does not run here.
	Needs []netns.Feature
	// Conflist gives a node's CNI configuration list, before the API answers; it
	// also does to the node what needs no API. nil: StartNode's agent writes one
	// into Node.Conf.
	Conflist func(ctx context.Context, c *Cluster, n *Node) ([]byte, error)
	// Objects makes the API's objects that an installation has. Kubelets start
	// afterwards.
	Objects func(ctx context.Context, c *Cluster) error
	// StartOnce starts what runs once in a cluster, on Cluster.Control, while the
	// nodes start.
	StartOnce func(ctx context.Context, c *Cluster) error
	// StartNode starts the agent of one node, after its kubelet, while other
	// nodes start. It need not wait until the agent is done: a node is waited for until
	// it is Ready.
	StartNode func(ctx context.Context, c *Cluster, n *Node) error
	// Verify checks a node that is Ready: an agent that falls back to something that the
	// name does not promise is an error.
	Verify func(ctx context.Context, c *Cluster, n *Node) error
}

// CNIs is every pod network that a lab's Kubernetes can have.
func CNIs() ([]CNI, error) {
	all, err := references()
	return append(append(all, flannels()...), ciliums()...), err
}

// FindCNI looks one up by name, or the first of its variants by the part of the name
// before the slash; the error lists the known names.
func FindCNI(name string) (CNI, error) {
	all, err := CNIs()
	if err != nil {
		return CNI{}, err
	}
	var known []string
	for _, c := range all {
		if c.Name == name || strings.HasPrefix(c.Name, name+"/") {
			return c, nil
		}
		known = append(known, c.Name)
	}
	return CNI{}, fmt.Errorf("a lab's Kubernetes has no CNI %q (it has %s)", name, strings.Join(known, ", "))
}
