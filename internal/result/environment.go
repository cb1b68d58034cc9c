package result

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Environment is environment.json: what stood when the campaign ran. It is
// written before the first sample, and read again at the end; Changed lists
// what was then different.
type Environment struct {
	Schema   int       `json:"schema"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"`
	Version  string    `json:"version"` // of cnibench
	Testbed  string    `json:"testbed"`
	Host     Host      `json:"host"`
	// Tools maps a tool or CNI plugin to the version that it printed.
	Tools map[string]string `json:"tools,omitempty"`
	// Places maps a place's name to what its agent reported.
	Places map[string]PlaceFacts `json:"places,omitempty"`
	// Networks maps a network's name to what is known of it.
	Networks map[string]NetworkFacts `json:"networks,omitempty"`
	// Profiles maps a profile to what became of those of its settings that are a
	// whole machine's, as "kernel_optimizations on client a" where there is more
	// than one machine. It is known at the end. Those of one namespace are beside
	// its place.
	Profiles map[string][]Setting `json:"profiles,omitempty"`
	// ServiceProxies maps what carries services out to what is known of it.
	ServiceProxies map[string]NetworkFacts `json:"service_proxies,omitempty"`
	// Clusters maps the campaign's name of a Kubernetes to what is known of it.
	Clusters map[string]ClusterFacts `json:"clusters,omitempty"`
	// OneAfterAnother are the clusters whose samples are not in the same blocks: all of
	// the first were measured before the second, as commands switched between them.
	OneAfterAnother []string `json:"one_after_another,omitempty"`
	// Changed names each setting that differed at the end: "sysctl net.core.rmem_max: 212992 → 4194304".
	Changed []string `json:"changed,omitempty"`
	// Absent says what the probes could not measure here, and why: "probe
	// counters: …". No sample has a value of it.
	Absent []string `json:"absent,omitempty"`
}

// Host is the machine under it all.
type Host struct {
	Kernel      string            `json:"kernel"`
	OS          string            `json:"os,omitempty"`
	CPUModel    string            `json:"cpu_model,omitempty"`
	CPUs        int               `json:"cpus,omitempty"`
	MemoryBytes int64             `json:"memory_bytes,omitempty"`
	Sysctls     map[string]string `json:"sysctls,omitempty"`
}

// PlaceFacts is what the agent at a place reported.
type PlaceFacts struct {
	Node     string            `json:"node"`
	Kernel   string            `json:"kernel,omitempty"`
	MTUs     map[string]int    `json:"mtus,omitempty"`
	Sysctls  map[string]string `json:"sysctls,omitempty"`
	Offloads map[string]string `json:"offloads,omitempty"`
	// Drivers maps a device to what drives it, "veth"; Routes are its first IPv4
	// routes, "10.244.1.0/24 dev eth0". They identify a cluster's network.
	Drivers map[string]string `json:"drivers,omitempty"`
	Routes  []string          `json:"routes,omitempty"`
	// Profile is the set of node settings that the place was given; absent:
	// settings as they were found.
	Profile string `json:"profile,omitempty"`
	// Settings is what became of each setting that the profile asks for here.
	Settings []Setting `json:"settings,omitempty"`
	// Limits are those that a cluster gave the place's pod, which asked for none:
	// "cpu": "500m". Absent: none.
	Limits map[string]string `json:"limits,omitempty"`
	// PodStart is how long the place took to come to be; absent where it is no pod of
	// a Kubernetes.
	PodStart *PodStart `json:"pod_start,omitempty"`
}

// PodStart is how a pod came to run, in seconds after the API server took it, by the
// timestamps that scheduler, kubelet and runtime gave. Kubernetes keeps whole seconds
// of them, so each figure is good to one: 0 is less than a second. What was not reported
// is absent.
type PodStart struct {
	// ScheduledSeconds is when it had its node (condition PodScheduled).
	ScheduledSeconds *float64 `json:"scheduled_seconds,omitempty"`
	// TakenSeconds is when the kubelet saw it (status.startTime).
	TakenSeconds *float64 `json:"taken_seconds,omitempty"`
	// NetworkSeconds is when its sandbox stood, with its network: when the CNI ADD was
	// through (condition PodReadyToStartContainers).
	NetworkSeconds *float64 `json:"network_seconds,omitempty"`
	// StartedSeconds is when the runtime had started its container.
	StartedSeconds *float64 `json:"started_seconds,omitempty"`
}

// Setting is what became of one setting of a profile.
type Setting struct {
	Name  string `json:"name"` // "net.ipv4.tcp_sack", "offload gro", "ring rx", "tuned"
	Asked string `json:"asked"`
	// Before and Value are what was read before and after the change; absent:
	// it cannot be read.
	Before string `json:"before,omitempty"`
	Value  string `json:"value,omitempty"`
	// Reason says why the setting did not take; absent: it did.
	Reason string `json:"reason,omitempty"`
}

// ClusterFacts describes a Kubernetes, from its own answers.
type ClusterFacts struct {
	Context    string `json:"context"`    // in the kubeconfig
	Kubernetes string `json:"kubernetes"` // version of the API server
	// Namespace is the one that was there, in which the run was; absent: its own.
	Namespace string `json:"namespace,omitempty"`
	// Network is the pod network as it was detected, Mode how it works:
	// "encapsulation", "kube_proxy", … Undetermined names what could not be detected.
	Network        string            `json:"network,omitempty"`
	NetworkVersion string            `json:"network_version,omitempty"`
	Mode           map[string]string `json:"mode,omitempty"`
	Undetermined   []string          `json:"undetermined,omitempty"`
	// Nodes are those of client and server.
	Nodes map[string]NodeFacts `json:"nodes,omitempty"`
}

// NodeFacts is what a Kubernetes says of a node.
type NodeFacts struct {
	OS           string `json:"os,omitempty"`
	Kernel       string `json:"kernel,omitempty"`
	Runtime      string `json:"runtime,omitempty"`
	Kubelet      string `json:"kubelet,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	CPUs         int    `json:"cpus,omitempty"`
	MemoryBytes  int64  `json:"memory_bytes,omitempty"`
	Zone         string `json:"zone,omitempty"`
}

// What carries a network's packets: NetworkFacts.Kind.
const (
	// KindReal is the code that users run: the kernel and the network's own programs.
	KindReal = "real"
	// KindModel is a datapath that this program rebuilt from parts of the kernel.
	KindModel = "model"
	// KindOwnPlugin is the same, with pods attached by a CNI plugin of this program.
	KindOwnPlugin = "own plugin"
)

// NetworkFacts describes a network as it is here.
type NetworkFacts struct {
	// Kind is KindReal, KindModel or KindOwnPlugin; absent in records of versions
	// before it.
	Kind      string `json:"kind,omitempty"`
	Model     string `json:"model,omitempty"` // what it was modelled on; absent: real
	LeavesOut string `json:"leaves_out,omitempty"`
	// Distance is absent where the real network was not counted beside the model, or takes
	// as many instructions within 5 %.
	Distance      *Distance `json:"distance,omitempty"`
	Encapsulation string    `json:"encapsulation,omitempty"`
	// Datapath is what carries its packets, with a version, where that is not
	// the same on every machine: "Open vSwitch 3.1.0, in the kernel".
	Datapath string `json:"datapath,omitempty"`
}

// Rebuilt reports whether this program rebuilt the network's datapath. Records
// without a kind have a model then.
func (f NetworkFacts) Rebuilt() bool {
	if f.Kind == "" {
		return f.Model != ""
	}
	return f.Kind != KindReal
}

// ModelWithDistance is what the network was modelled on, and how far the model is from it;
// "" for a real one.
func (f NetworkFacts) ModelWithDistance() string {
	if f.Model == "" || f.Distance == nil {
		return f.Model
	}
	return f.Model + "; " + f.Distance.String()
}

// Distance is by how much a model is cheaper than the real network: the instructions of a
// datagram in the real network divided by those in the model, as docs/real.md counts them.
// 0 is not counted.
type Distance struct {
	BetweenNodesRatio float64 `json:"instructions_between_nodes_ratio,omitempty"`
	InsideNodeRatio   float64 `json:"instructions_inside_node_ratio,omitempty"`
}

// String says it in words: "instructions for a datagram in the real one: 24 % more between
// nodes, 12 % more inside a node (docs/real.md)".
func (d Distance) String() string {
	return "instructions for a datagram in the real one: " + d.Short() + " (docs/real.md)"
}

// Short are the figures alone: "24 % more between nodes, 12 % more inside a node".
func (d Distance) Short() string {
	var parts []string
	for _, side := range []struct {
		ratio float64
		where string
	}{{d.BetweenNodesRatio, "between nodes"}, {d.InsideNodeRatio, "inside a node"}} {
		if percent := math.Round(100 * (side.ratio - 1)); side.ratio > 0 && percent < 0 {
			parts = append(parts, fmt.Sprintf("%.0f %% fewer %s", -percent, side.where))
		} else if side.ratio > 0 {
			parts = append(parts, fmt.Sprintf("%.0f %% more %s", percent, side.where))
		}
	}
	return strings.Join(parts, ", ")
}

// InUserSpace reports whether a program carried the network's packets although the kernel
// can, as Open vSwitch does where the kernel has no openvswitch.
func (f NetworkFacts) InUserSpace() bool { return strings.Contains(f.Datapath, "in user space") }
