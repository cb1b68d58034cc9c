// Package serviceproxy has the ways to carry services out that work on most networks:
// kube-proxy's modes, eBPF at the socket, and XDP in the driver.
package serviceproxy

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/network"
)

// outside matches, in a rule of a program, what kube-proxy masquerades on its
// way to a service's address: sources outside --cluster-cidr, or with
// --masquerade-all every one. match has a %s for the range.
func outside(self network.Node, match string) string {
	if self.MasqueradeAll {
		return ""
	}
	return fmt.Sprintf(match, network.Pods())
}

// kubeProxyLeavesOut is what all of kube-proxy's modes do without here.
const kubeProxyLeavesOut = "kube-proxy itself (one full sync, then what it writes when one service changes, without its wait of up to a second), session affinity, load balancers, external IPs, " +
	"local traffic policies, services without endpoints, IPv6"

// kubeMark is kube-proxy's mark of packets whose source is to be replaced
// (--iptables-masquerade-bit=14).
const kubeMark = "0x4000"
