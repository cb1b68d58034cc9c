package state

// Kubernetes describes the Kubernetes of a lab that is one.
type Kubernetes struct {
	Name      string `json:"name"` // also the context of the kubeconfig
	CNI       string `json:"cni"`
	KubeProxy string `json:"kube_proxy"`
	Link      string `json:"link"`
	MTU       int    `json:"mtu"` // of the link, bytes
	Nodes     int    `json:"nodes"`
	IPv6      bool   `json:"ipv6,omitempty"`
	// Kubeconfig is the file; Server the address in it, on this machine's
	// loopback.
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	// Algorithms means that its pods may set any congestion control that this kernel
	// has, though the machine does not allow it to everybody.
	Algorithms bool `json:"any_congestion_control,omitempty"`
	// Frozen means that its processes are stopped: see SetFrozen.
	Frozen bool `json:"frozen"`
	// Timings is how long each part of its start took, in order of their ends.
	Timings []Timing `json:"timings,omitempty"`
	// Programs are its processes, containers left out.
	Programs []Program `json:"programs,omitempty"`
}

// Timing is one part of a start. Parts run at the same time: the last to end
// shows how long it took in all.
type Timing struct {
	Part    string  `json:"part"`
	Seconds float64 `json:"seconds"` // its own
	EndedAt float64 `json:"ended_at_seconds"`
}

// Program is a process of a lab's Kubernetes.
type Program struct {
	Node string   `json:"node"` // "control-plane", "node1"
	Name string   `json:"name"`
	PID  int      `json:"pid"`
	Argv []string `json:"argv"`
}

// Names of what each Kubernetes of a lab has.
const (
	// ControlPlane is the node without pods.
	ControlPlane = "control-plane"
	// Holder is the program that keeps a node's mount namespace.
	Holder = "holder"
)

// KubernetesCgroup is the path, below the top of every hierarchy of cgroups, that all
// processes of the lab's Kubernetes are in or below.
func (s State) KubernetesCgroup() string { return s.ClusterPrefix(1) + "kubernetes" }
