package workload

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// TCPStream is bulk data over TCP connections.
func TCPStream() Workload {
	return native{spec: Spec{
		Name:                  traffic.TCPStream,
		Summary:               "bulk data over TCP: what arrives per second",
		Primary:               "throughput_bits_per_second",
		Factors:               []string{"message_bytes", "streams", "direction", "rate_bits_per_second", "zero_copy", "background_streams", "pin_cpus", "cpus", "congestion_control"},
		SetsCongestionControl: true,
		DefaultCPUs:           result.CPUsSame,
		DefaultMessageBytes:   65536,
	}}
}
