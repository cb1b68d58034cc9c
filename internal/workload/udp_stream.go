package workload

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// UDPStream is datagrams one way, paced or flat out, with loss, reordering,
// duplicates and jitter.
func UDPStream() Workload {
	return native{spec: Spec{
		Name:                traffic.UDPStream,
		Summary:             "datagrams over UDP: what arrives per second, loss, jitter",
		Primary:             "throughput_bits_per_second",
		Factors:             []string{"message_bytes", "streams", "direction", "rate_bits_per_second", "udp_gso", "pin_cpus", "cpus"},
		DefaultCPUs:         result.CPUsSame,
		DefaultMessageBytes: 1472,
	}}
}
