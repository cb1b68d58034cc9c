package result

import (
	"fmt"
	"slices"
	"strings"
)

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

// The values of Cell.Encryption, and what a campaign says for the absent one.
const (
	// EncryptionNone is written for packets between nodes that nothing encrypts.
	EncryptionNone = "none"
	// EncryptionWireGuard is the kernel's WireGuard.
	EncryptionWireGuard = "wireguard"
	// EncryptionWireGuardGo is WireGuard in user space.
	EncryptionWireGuardGo = "wireguard-go"
	// EncryptionIPsec is the kernel's ESP.
	EncryptionIPsec = "ipsec"
)

// Encryptions are the values of Cell.Encryption as a campaign writes them.
func Encryptions() []string {
	return []string{EncryptionNone, EncryptionWireGuard, EncryptionWireGuardGo, EncryptionIPsec}
}

// The levels that others are compared with: the wire as it is, and nodes as they are.
const (
	UnshapedLink   = "unshaped"
	DefaultProfile = "default_settings"
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

// secondMark follows the name of a network that is a second time in one
// campaign, to be compared with itself. No name of a network has a # in it.
const secondMark = "#2"

// SecondName is the second name of a network: "flannel/vxlan#2".
func SecondName(network string) string { return network + secondMark }

// OneName is the name of the network itself, under either of its names.
func OneName(network string) string { return strings.TrimSuffix(network, secondMark) }

// Baseline is the cell that c's efficiency is computed against: the same
// traffic on the network host of the same cluster, whose only path is
// host-to-host and which has neither services nor policies nor encryption.
func (c Cell) Baseline() Cell {
	c.Network, c.Path = HostNetwork, PathHostToHost
	c.Services, c.ServiceProxy, c.Policies, c.Encryption = 0, "", 0, ""
	return c
}

// IsPair reports whether c is of one of several pairs of nodes.
func (c Cell) IsPair() bool { return c.ClientNode != "" || c.ServerNode != "" }

// Pair names the nodes of c as a pair, "node1 to node2"; "" where it is of none.
func (c Cell) Pair() string {
	if !c.IsPair() {
		return ""
	}
	return c.ClientNode + " to " + c.ServerNode
}

// OfAnyPair is c without its nodes: what all cells of one mesh have in common.
func (c Cell) OfAnyPair() Cell {
	c.ClientNode, c.ServerNode = "", ""
	return c
}

// ToService reports whether the cell's path leads to a service.
func (c Cell) ToService() bool { return c.Path == PathPodToClusterIP || c.Path == PathPodToNodePort }

// LadderPrefix begins the names of networks that nobody runs: the lab has them to measure
// what a step between two networks costs.
const LadderPrefix = "ladder/"

// IsLadderOnly reports whether a network exists only as a step of ladders.
func IsLadderOnly(network string) bool { return strings.HasPrefix(network, LadderPrefix) }

// IsBaseline reports whether c is a baseline cell itself.
func (c Cell) IsBaseline() bool { return c.Network == HostNetwork }

// Datagrams reports whether the cell's traffic is UDP, which has no congestion
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
// MTU, services, policies, encryption, placement, then workload and its factors, then network and
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
// nftables, 10 policies, encryption by wireguard"; "" where that is no factor.
func (c Cell) Rules() string {
	var parts []string
	if c.Services > 0 {
		parts = append(parts, fmt.Sprintf("%s by %s", number(c.Services, "service", "services"), c.ServiceProxy))
	}
	if c.Policies > 0 {
		parts = append(parts, number(c.Policies, "policy", "policies"))
	}
	if c.Encryption != "" {
		parts = append(parts, "encryption by "+c.Encryption)
	}
	return strings.Join(parts, ", ")
}

func number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
