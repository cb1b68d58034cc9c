// Package host has the networks whose pods are in the network namespace of their node.
package host

import (
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// Network is the bare network: the baseline.
func Network() network.Network {
	return network.Network{
		Kind:        result.KindReal,
		Name:        "host",
		Summary:     "no pod network: programs run on the nodes themselves; the baseline",
		HostNetwork: true,
		IPv6:        true,
	}
}
