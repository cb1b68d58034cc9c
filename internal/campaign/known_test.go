package campaign

import "github.com/cnibench/cnibench/internal/workload"

// testKnown is what the tests know, so that they do not change with the lists
// of networks and workloads.
func testKnown() Known {
	rr := []string{"message_bytes", "response_bytes", "streams", "rate_per_second", "burst", "pin_cpus"}
	return Known{
		Networks:  []string{"host", "bridge", "flannel/vxlan", "flannel/host-gw", "calico/direct", "macvlan"},
		Links:     []string{"unshaped", "1-gigabit", "10-gigabit"},
		Profiles:  []string{"default_settings", "kernel_optimizations"},
		Testbeds:  []string{"lab", "hosts", "kubernetes"},
		Ladders:   []Ladder{{"flannel/vxlan", []string{"host", "calico/direct", "flannel/host-gw", "flannel/vxlan"}}},
		Probes:    []string{"cpu", "process", "counters", "stacks", "netfilter", "memory"},
		Enforcing: []string{"calico/direct"}, ServiceProxies: []string{"iptables", "nftables", "ebpf"},
		Workloads: []workload.Spec{
			{Name: "tcp_stream", DefaultMessageBytes: 65536,
				Factors: []string{"message_bytes", "streams", "direction", "rate_bits_per_second", "zero_copy", "pin_cpus", "cpus", "congestion_control"}, DefaultCPUs: "same", SetsCongestionControl: true},
			{Name: "udp_stream", DefaultMessageBytes: 1472,
				Factors: []string{"message_bytes", "streams", "direction", "rate_bits_per_second", "udp_gso", "pin_cpus"}},
			{Name: "tcp_rr", DefaultMessageBytes: 1, Factors: rr},
			{Name: "udp_rr", DefaultMessageBytes: 1, Factors: rr},
			{Name: "iperf3", DefaultMessageBytes: 1460, Protocols: []string{"tcp", "udp"},
				Factors: []string{"message_bytes", "streams", "direction", "rate_bits_per_second"}},
			{Name: "netperf", Tests: []string{"TCP_STREAM", "TCP_RR", "UDP_STREAM"}, Factors: []string{"message_bytes", "response_bytes"}},
			{Name: "plain"},
			{Name: "all_gather", DefaultMessageBytes: 4096, Factors: []string{"message_bytes", "ranks", "ranks_per_node", "algorithm"}, ManyEnds: true, Algorithms: []string{"ring", "recursive_doubling"}},
			{Name: "incast", DefaultMessageBytes: 65536, Factors: []string{"message_bytes", "ranks", "ranks_per_node"}, ManyEnds: true},
		},
	}
}
