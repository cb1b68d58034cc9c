package cluster

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// end is one end of cells. Each has a pod of its own (agentPod).
type end struct {
	// host means that the pod is in its node's own network, the baseline.
	host bool
	role string // "client", "server", "both"
	node int    // 1, 2, …: an index of cluster.nodes, from 1
	// policies is how many policies that allow nothing select the pod, in addition
	// to one that allows the client; 0: none selects it.
	policies int
}

const (
	client = "client"
	server = "server"
	// both is the one pod of a node where many pairs of nodes are measured.
	both = "both"
)

// name is that of its first pod.
func (e end) name() string {
	kind := "pod"
	if e.host {
		kind = "host"
	}
	name := fmt.Sprintf("%s-%s-%d", kind, e.role, e.node)
	if e.policies > 0 {
		name += fmt.Sprintf("-policies-%d", e.policies)
	}
	return name
}

// endsOf are client and server of a cell.
func (c *cluster) endsOf(cell result.Cell) (from, to end) {
	if cell.IsPair() {
		from, to = end{role: both, node: c.numberOf(cell.ClientNode)}, end{role: both, node: c.numberOf(cell.ServerNode)}
		from.host, to.host = strings.HasPrefix(cell.Path, "host-to-"), strings.HasSuffix(cell.Path, "-to-host")
		return from, to
	}
	from = end{role: client, node: 1, host: strings.HasPrefix(cell.Path, "host-to-")}
	to = end{role: server, node: 1, host: strings.HasSuffix(cell.Path, "-to-host"), policies: cell.Policies}
	if cell.Placement == result.InterHost {
		to.node = 2
	}
	return from, to
}

// numberOf is a node's number; one that is not measured has none, which is beyond
// the last.
func (c *cluster) numberOf(node string) int {
	for i, n := range c.nodes {
		if n.Name == node {
			return i + 1
		}
	}
	return len(c.nodes) + 1
}

// route is how a client reaches a server: straight, or by a service.
type route struct {
	to     end
	path   string
	family string // "ipv4", "ipv6"
}

func familyOf(cell result.Cell) string {
	if cell.Family == "" {
		return "ipv4"
	}
	return cell.Family
}

// byService reports whether a path uses a Service object.
func byService(path string) bool {
	return path == result.PathPodToClusterIP || path == result.PathPodToNodePort || path == result.PathPodToHeadless
}

// name is that of its service.
func (r route) name() string {
	return fmt.Sprintf("%s-%s-%s", strings.TrimPrefix(r.path, "pod-to-"), r.to.name(), r.family)
}
