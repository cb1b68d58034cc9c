package network

// host is the bare network: the baseline.
func host() Network {
	return Network{
		Name:        "host",
		Summary:     "no pod network: programs run on the nodes themselves; the baseline",
		HostNetwork: true,
		IPv6:        true,
	}
}
