package state

// Spec is one cluster of a lab: nodes on a switch of their own, one network on
// them.
type Spec struct {
	Network string `json:"network"`
	Link    string `json:"link"`
	Profile string `json:"profile"`
	MTU     int    `json:"mtu"` // of the link, bytes
	// Services is how many services ServiceProxy programs on each node; 0: none,
	// by none.
	Services     int    `json:"services,omitempty"`
	ServiceProxy string `json:"service_proxy,omitempty"`
	// Policies is how many policies that allow nothing come before the network's
	// own.
	Policies int `json:"policies,omitempty"`
	// Encryption is what encrypts the packets between nodes; "": nothing does.
	Encryption string `json:"encryption,omitempty"`
	// IPv6 is in addition to IPv4 on nodes and pods.
	IPv6 bool `json:"ipv6,omitempty"`
	// Algorithms are the congestion controls of traffic that cannot set them itself.
	Algorithms []string `json:"algorithms,omitempty"`
	// Pods is the number of pods on each node; its length that of nodes.
	Pods []int `json:"pods"`
}
