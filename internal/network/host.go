package network

import "github.com/cnibench/cnibench/internal/result"

// host is the bare network: the baseline.
func host() Network {
	return Network{
		Kind:        result.KindReal,
		Name:        "host",
		Summary:     "no pod network: programs run on the nodes themselves; the baseline",
		HostNetwork: true,
		IPv6:        true,
	}
}
