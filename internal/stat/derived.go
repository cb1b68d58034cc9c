package stat

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// The derived metrics: what traffic costs in CPU time, both ends together,
// user, system, irq and softirq.
const (
	CPUPerByte        = "cpu_seconds_per_byte"
	CPUPerTransaction = "cpu_seconds_per_transaction"
)

// Derived lists the metrics that are computed from a sample's metrics and
// probes. They are in CellSummary.Absolute beside the measured ones.
func Derived() []unit.Metric {
	return []unit.Metric{
		{Name: CPUPerByte, Label: "CPU per byte", Unit: "s/B", Better: unit.Lower},
		{Name: CPUPerTransaction, Label: "CPU per transaction", Unit: "s", Better: unit.Lower},
	}
}

// derived computes one of them. On one machine both ends read the same counters,
// so that their mean is taken and not their sum.
func derived(s *result.Sample, metric string, oneMachine bool) (float64, bool) {
	switch metric {
	case CPUPerByte:
		return cpuPer(s, "throughput_bits_per_second", 1.0/8, oneMachine)
	case CPUPerTransaction:
		return cpuPer(s, "transactions_per_second", 1, oneMachine)
	}
	return 0, false
}

// cpuPer divides the CPU time per second by rate × scale.
func cpuPer(s *result.Sample, rate string, scale float64, oneMachine bool) (float64, bool) {
	r, ok := s.Metrics[rate]
	if !ok || r <= 0 || s.MeasuredSeconds == nil || *s.MeasuredSeconds <= 0 {
		return 0, false
	}
	client, okClient := busyCores(s.Probes["client_node"], *s.MeasuredSeconds)
	server, okServer := busyCores(s.Probes["server_node"], *s.MeasuredSeconds)
	work := r * scale
	switch {
	case okClient && okServer && oneMachine:
		return (client + server) / 2 / work, true
	case okClient && oneMachine:
		return client / work, true
	case okServer && oneMachine:
		return server / work, true
	case okClient && okServer:
		return (client + server) / work, true
	}
	return 0, false // an end that was not measured makes the sum unknown, not smaller
}

// busyCores is the CPU time that a node spent per second of the probes' own
// window (seconds where they do not tell it), softirq included: most of what a
// network costs is there.
func busyCores(probes map[string]float64, seconds float64) (float64, bool) {
	if window, ok := probes["window_seconds"]; ok {
		seconds = window
	}
	if seconds <= 0 {
		return 0, false
	}
	var sum float64
	for _, mode := range []string{"cpu_user_seconds", "cpu_system_seconds", "cpu_irq_seconds", "cpu_softirq_seconds"} {
		v, ok := probes[mode]
		if !ok {
			return 0, false
		}
		sum += v
	}
	return sum / seconds, true
}

// probeMax is the larger of both ends' values of a probe.
func probeMax(s *result.Sample, name string) (float64, bool) {
	var most float64
	var found bool
	for _, end := range s.Probes {
		if v, ok := end[name]; ok && (!found || v > most) {
			most, found = v, true
		}
	}
	return most, found
}
