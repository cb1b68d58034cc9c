package result

import (
	"fmt"
	"slices"
	"strings"
)

// Cell is one value of each factor: what one sample measures. It is
// comparable, so it serves as a map key; a factor that does not apply to the
// workload is its zero value and is absent in JSON.
type Cell struct {
	// Network is the network's name, "flannel/vxlan"; HostNetwork is the baseline.
	Network string `json:"network"`
	// Cluster is the campaign's name of the Kubernetes cluster that was measured;
	// absent where the testbed is none.
	Cluster string `json:"cluster,omitempty"`
	// ClientNode and ServerNode name the nodes of both ends where pairs of nodes
	// are measured; absent otherwise.
	ClientNode string `json:"client_node,omitempty"`
	ServerNode string `json:"server_node,omitempty"`
	// Path is from where to where: one of the Path constants.
	Path string `json:"path"`
	// Placement is one of the Placement constants.
	Placement string `json:"placement"`
	// Link names the wire between nodes: "unshaped", "1-gigabit", …
	Link string `json:"link"`
	// Profile names the set of node settings: "default_settings", …
	Profile string `json:"profile"`
	// MTU is the link's MTU in bytes as asked for; a pod's own MTU, which an
	// encapsulation makes smaller, is recorded beside the metrics.
	MTU int `json:"mtu"`
	// Family is "ipv4" or "ipv6"; absent means ipv4.
	Family string `json:"family,omitempty"`
	// Services is how many services are programmed on each node, one of which the
	// traffic goes to; absent on paths that lead to none.
	Services int `json:"services,omitempty"`
	// ServiceProxy is what carries the services out: "iptables", "nftables",
	// "ipvs", "ebpf"; absent on paths that lead to none.
	ServiceProxy string `json:"service_proxy,omitempty"`
	// Policies is how many policies the traffic is held against in vain before the
	// one that allows it; absent means none, and networks that enforce no policy.
	Policies int `json:"policies,omitempty"`
	// Workload is the traffic's name: "tcp_stream", "iperf3", …
	Workload string `json:"workload"`
	// Test is the workload's own variant, in the tool's words: netperf's
	// "TCP_RR", sockperf's "ping-pong", redis-benchmark's "get".
	Test string `json:"test,omitempty"`
	// Protocol is "tcp" or "udp" for workloads that offer both.
	Protocol string `json:"protocol,omitempty"`
	// MessageBytes is the size of a message, or of a request.
	MessageBytes int `json:"message_bytes,omitempty"`
	// ResponseBytes is the size of a response where it differs from the request.
	ResponseBytes int `json:"response_bytes,omitempty"`
	// Streams is the number of parallel connections or flows.
	Streams int `json:"streams,omitempty"`
	// Direction is "reverse" or "bidirectional"; absent means client to server.
	Direction string `json:"direction,omitempty"`
	// RateBitsPerSecond is the rate asked of a paced stream, all streams
	// together; absent means flat out.
	RateBitsPerSecond float64 `json:"rate_bits_per_second,omitempty"`
	// RatePerSecond is the rate of transactions asked of an open loop, all
	// streams together; absent means closed loop.
	RatePerSecond float64 `json:"rate_per_second,omitempty"`
	// Burst is how many transactions are under way at once on one stream;
	// absent means one.
	Burst int `json:"burst,omitempty"`
	// UDPGSO tells that UDP segmentation offload is used. It changes what is on
	// the way through the stack, so it is a factor.
	UDPGSO bool `json:"udp_gso,omitempty"`
	// ZeroCopy tells that MSG_ZEROCOPY is used.
	ZeroCopy bool `json:"zero_copy,omitempty"`
	// Pods is how many pods pod_setup adds at once; absent for other workloads.
	Pods int `json:"pods,omitempty"`
	// BackgroundStreams is the number of TCP connections of 10 Mbit/s each beside
	// the measured ones; absent means none.
	BackgroundStreams int `json:"background_streams,omitempty"`
	// PinCPUs tells that each end is pinned to CPUs of its own.
	PinCPUs bool `json:"pin_cpus,omitempty"`
	// CongestionControl is the TCP algorithm that both ends use; absent means as
	// the system has it.
	CongestionControl string `json:"congestion_control,omitempty"`
	// CPUs is where the two ends run: CPUsSame or CPUsApart; absent means where the
	// scheduler puts them.
	CPUs string `json:"cpus,omitempty"`
}

// The values of Cell.CPUs, and what a campaign says for the absent ones.
const (
	// CPUsSame has both ends on one CPU.
	CPUsSame = "same"
	// CPUsApart has each end on one CPU of its own.
	CPUsApart = "apart"
	// CPUsFree is written for the scheduler's choice.
	CPUsFree = "free"
	// AsIs is written for the congestion control that the system has.
	AsIs = "as-is"
)

// Baseline network, paths and placements (design.md, Words).
const (
	HostNetwork = "host"

	PathPodToPod   = "pod-to-pod"
	PathHostToHost = "host-to-host"
	PathHostToPod  = "host-to-pod"
	PathPodToHost  = "pod-to-host"
	// PathPodToClusterIP leads to a service's own address, PathPodToNodePort to
	// its port at the address of the server's node.
	PathPodToClusterIP = "pod-to-cluster-ip"
	PathPodToNodePort  = "pod-to-node-port"
	// PathPodToHeadless leads to the address that a service without one of its own
	// publishes: the server's pod.
	PathPodToHeadless = "pod-to-headless"

	IntraHost = "intra-host"
	InterHost = "inter-host"
)

// twinMark follows the name of a network that stands a second time in one
// campaign, to be held against itself. No name of a network has a # in it.
const twinMark = "#2"

// Twin is the second name of a network: "flannel/vxlan#2".
func Twin(network string) string { return network + twinMark }

// OneName is the name of the network itself, under either of its names.
func OneName(network string) string { return strings.TrimSuffix(network, twinMark) }

// Baseline is the cell that c's efficiency is computed against: the same
// traffic on the network host of the same cluster, whose only path is
// host-to-host and which has neither services nor policies.
func (c Cell) Baseline() Cell {
	c.Network, c.Path = HostNetwork, PathHostToHost
	c.Services, c.ServiceProxy, c.Policies = 0, "", 0
	return c
}

// IsPair tells whether c is of one of several pairs of nodes.
func (c Cell) IsPair() bool { return c.ClientNode != "" || c.ServerNode != "" }

// OfAnyPair is c without its nodes: what all cells of one mesh have in common.
func (c Cell) OfAnyPair() Cell {
	c.ClientNode, c.ServerNode = "", ""
	return c
}

// ToService tells whether the cell's path leads to a service.
func (c Cell) ToService() bool { return c.Path == PathPodToClusterIP || c.Path == PathPodToNodePort }

// RungPrefix begins the names of networks that nobody runs: they are the lab's, to
// tell what a step between two networks costs.
const RungPrefix = "ladder/"

// IsRung tells such a network.
func IsRung(network string) bool { return strings.HasPrefix(network, RungPrefix) }

// IsBaseline tells whether c is a baseline cell itself.
func (c Cell) IsBaseline() bool { return c.Network == HostNetwork }

// Datagrams tells whether the cell's traffic is UDP, which has no congestion
// control: udp_rr, netperf's UDP_STREAM, a protocol of udp.
func (c Cell) Datagrams() bool {
	for _, name := range []string{c.Workload, c.Test, c.Protocol} {
		if strings.HasPrefix(strings.ToLower(name), "udp") {
			return true
		}
	}
	return false
}

// Compare orders cells by their factors in the order of the table: by link, profile,
// MTU, services, policies, placement, then workload and its factors, then network and
// path, then nodes.
func (c Cell) Compare(d Cell) int {
	if c == d {
		return 0
	}
	return compareCells(c, d)
}

func compareCells(c, d Cell) int {
	for f := range factorTable {
		if n := f.compare(&c, &d); n != 0 {
			return n
		}
	}
	return 0
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Traffic says the workload's part of the cell in words, for tables:
// "tcp_stream 1472 B", "iperf3 udp 64 B × 4".
func (c Cell) Traffic() string {
	var parts []string
	for f := range factorTable {
		if at := f.Order.Words; at > 0 {
			parts = append(parts, make([]string, max(0, at-len(parts)))...)
			parts[at-1] = f.words(c)
		}
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	if s := c.Rules(); s != "" {
		parts = append(parts, "with "+s)
	}
	return strings.Join(parts, " ")
}

// Rules says in words what nodes are programmed with: "1000 services by
// nftables, 10 policies"; "" where that is no factor.
func (c Cell) Rules() string {
	var parts []string
	if c.Services > 0 {
		parts = append(parts, fmt.Sprintf("%s by %s", number(c.Services, "service", "services"), c.ServiceProxy))
	}
	if c.Policies > 0 {
		parts = append(parts, number(c.Policies, "policy", "policies"))
	}
	return strings.Join(parts, ", ")
}

func number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
