package workload

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// LatencyUnderLoad is round trips of 64 bytes (or response_bytes) next to TCP
// streams that load the same path.
func LatencyUnderLoad() Workload {
	return native{spec: Spec{
		Name:                  traffic.LatencyUnderLoad,
		Summary:               "round trips while TCP streams use the same path: latency under load",
		Primary:               "latency_p99_seconds",
		Factors:               []string{"message_bytes", "response_bytes", "streams", "direction", "rate_bits_per_second", "rate_per_second", "zero_copy", "pin_cpus", "cpus", "congestion_control"},
		SetsCongestionControl: true,
		DefaultCPUs:           result.CPUsApart,
		DefaultMessageBytes:   65536,
	}}
}
