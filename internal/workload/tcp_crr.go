package workload

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// TCPCRR is a TCP connection for each request and response.
func TCPCRR() Workload {
	return native{spec: Spec{
		Name:                  traffic.TCPCRR,
		Summary:               "connect, one request and response over TCP, close: connections per second",
		Primary:               "transactions_per_second",
		Factors:               []string{"message_bytes", "response_bytes", "streams", "pin_cpus", "cpus", "congestion_control"},
		SetsCongestionControl: true,
		DefaultCPUs:           result.CPUsSame,
		DefaultMessageBytes:   64,
	}}
}
