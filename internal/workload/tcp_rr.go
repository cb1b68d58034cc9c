package workload

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// TCPRR is request and response over open TCP connections.
func TCPRR() Workload {
	return native{spec: Spec{
		Name:                  traffic.TCPRR,
		Summary:               "request and response over TCP: round trips per second and their latency",
		Primary:               "transactions_per_second",
		Factors:               []string{"message_bytes", "response_bytes", "streams", "rate_per_second", "burst", "background_streams", "pin_cpus", "cpus", "congestion_control"},
		SetsCongestionControl: true,
		DefaultCPUs:           result.CPUsSame,
		DefaultMessageBytes:   64,
		MostMessageBytes:      1 << 20,
	}}
}
