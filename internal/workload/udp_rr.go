package workload

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// UDPRR is request and response over UDP; lost requests are counted and given
// up after 200 ms.
func UDPRR() Workload {
	return native{spec: Spec{
		Name:                traffic.UDPRR,
		Summary:             "request and response over UDP: round trips per second and their latency",
		Primary:             "transactions_per_second",
		Factors:             []string{"message_bytes", "response_bytes", "streams", "rate_per_second", "burst", "pin_cpus", "cpus"},
		DefaultCPUs:         result.CPUsSame,
		DefaultMessageBytes: 64,
	}}
}
