// Package unit names every metric that a record may hold, with its unit and
// which way is better. A name that is not in this list is refused.
package unit

import "slices"

// Better is the direction in which a metric is better.
type Better int

// Which way is better.
const (
	Neither Better = iota
	Higher
	Lower
)

// Saturated is the share of a core's time (cpu_busiest_core_ratio) from which it limits the
// traffic.
const Saturated = 0.95

// SpeedRange is how much faster than at its slowest a processor may be at its fastest, as a
// fixed loop shows it (cpu_loop_seconds), unmentioned.
const SpeedRange = 1.15

// Metric is one measured quantity. Its name ends with its base unit.
type Metric struct {
	Name   string
	Label  string // for people: "throughput"
	Unit   string // base unit: "bit/s", "s", "1/s", "", "B"
	Better Better
}

// Metrics lists every metric in the order in which reports show them.
func Metrics() []Metric {
	return slices.Concat(trafficMetrics(), connectionMetrics(), jobMetrics(), mpiMetrics(), podMetrics(), serviceMetrics(), detailMetrics())
}

// trafficMetrics are rates and times of traffic.
func trafficMetrics() []Metric {
	return []Metric{
		{"throughput_bits_per_second", "throughput", "bit/s", Higher},
		{"sent_throughput_bits_per_second", "sent", "bit/s", Neither},
		{"reverse_throughput_bits_per_second", "reverse throughput", "bit/s", Higher},
		{"background_throughput_bits_per_second", "background", "bit/s", Neither},
		{"packets_per_second", "packets", "1/s", Higher},
		{"sent_packets_per_second", "sent packets", "1/s", Neither},
		{"transactions_per_second", "transactions", "1/s", Higher},
		{"requests_per_second", "requests", "1/s", Higher},
		{"requests_failed", "requests failed", "", Lower},
		{"latency_mean_seconds", "latency mean", "s", Lower},
		{"latency_min_seconds", "latency min", "s", Lower},
		{"latency_p50_seconds", "latency p50", "s", Lower},
		{"latency_p90_seconds", "latency p90", "s", Lower},
		{"latency_p99_seconds", "latency p99", "s", Lower},
		{"latency_p999_seconds", "latency p99.9", "s", Lower},
		{"latency_max_seconds", "latency max", "s", Lower},
		{"latency_stddev_seconds", "latency standard deviation", "s", Lower},
		{"one_way_delay_mean_seconds", "one-way delay mean", "s", Lower},
		{"one_way_delay_min_seconds", "one-way delay min", "s", Lower},
		{"one_way_delay_max_seconds", "one-way delay max", "s", Lower},
		{"jitter_seconds", "jitter (RFC 3550)", "s", Lower},
	}
}

// connectionMetrics are those of connections that are made: how long the first packet of one
// waits for its answer.
func connectionMetrics() []Metric {
	return []Metric{
		{"first_packet_mean_seconds", "first packet answered, mean", "s", Lower},
		{"first_packet_min_seconds", "first packet answered, min", "s", Lower},
		{"first_packet_p50_seconds", "first packet answered, p50", "s", Lower},
		{"first_packet_p99_seconds", "first packet answered, p99", "s", Lower},
		{"first_packet_max_seconds", "first packet answered, max", "s", Lower},
	}
}

// jobMetrics are those of workloads with many ends. The time of an operation is that of
// its slowest rank.
func jobMetrics() []Metric {
	return []Metric{
		{"operation_time_mean_seconds", "operation time mean", "s", Lower},
		{"operation_time_min_seconds", "operation time min", "s", Lower},
		{"operation_time_p50_seconds", "operation time p50", "s", Lower},
		{"operation_time_p90_seconds", "operation time p90", "s", Lower},
		{"operation_time_p99_seconds", "operation time p99", "s", Lower},
		{"operation_time_max_seconds", "operation time max", "s", Lower},
		{"operation_time_stddev_seconds", "operation time standard deviation", "s", Lower},
		{"flow_completion_mean_seconds", "flow completion mean", "s", Lower},
		{"flow_completion_min_seconds", "flow completion min", "s", Lower},
		{"flow_completion_p50_seconds", "flow completion p50", "s", Lower},
		{"flow_completion_p90_seconds", "flow completion p90", "s", Lower},
		{"flow_completion_p99_seconds", "flow completion p99", "s", Lower},
		{"flow_completion_max_seconds", "flow completion max", "s", Lower},
		{"flow_completion_stddev_seconds", "flow completion standard deviation", "s", Lower},
		{"operations", "operations counted", "", Neither},
		{"rank_sent_bytes_per_operation", "sent by a rank per operation, at most", "B", Neither},
		{"ranks_per_cpu", "ranks per CPU, at most", "", Neither},
	}
}

// mpiMetrics are those of programs that run under MPI: NetPIPE's, those of collectives by OSU and IMB,
// then hpcc's.
func mpiMetrics() []Metric {
	return []Metric{
		{"message_time_seconds", "message time, one way", "s", Lower},
		{"messages", "messages of the fastest trial", "", Neither},
		{"collective_time_mean_seconds", "collective, mean of ranks", "s", Lower},
		{"collective_time_min_seconds", "collective, fastest rank", "s", Lower},
		{"collective_time_max_seconds", "collective, slowest rank", "s", Lower},
		{"hpl_flops_per_second", "HPL", "flop/s", Higher},
		{"hpl_seconds", "HPL time", "s", Lower},
		{"ptrans_bits_per_second", "PTRANS", "bit/s", Higher},
		{"random_access_updates_per_second", "RandomAccess updates", "1/s", Higher},
		{"fft_flops_per_second", "FFT", "flop/s", Higher},
		{"dgemm_flops_per_second", "DGEMM per rank", "flop/s", Higher},
		{"stream_triad_bits_per_second", "STREAM triad per rank", "bit/s", Higher},
		{"ping_pong_latency_mean_seconds", "ping-pong latency, mean of pairs", "s", Lower},
		{"ping_pong_latency_min_seconds", "ping-pong latency, best pair", "s", Lower},
		{"ping_pong_latency_max_seconds", "ping-pong latency, worst pair", "s", Lower},
		{"ping_pong_mean_bits_per_second", "ping-pong bandwidth, mean of pairs", "bit/s", Higher},
		{"ping_pong_min_bits_per_second", "ping-pong bandwidth, worst pair", "bit/s", Higher},
		{"ping_pong_max_bits_per_second", "ping-pong bandwidth, best pair", "bit/s", Higher},
		{"ring_latency_seconds", "ring latency", "s", Lower},
		{"ring_bits_per_second", "ring bandwidth per rank", "bit/s", Higher},
		{"random_ring_latency_seconds", "random ring latency", "s", Lower},
		{"random_ring_bits_per_second", "random ring bandwidth per rank", "bit/s", Higher},
		{"mpi_sent_bytes", "sent to other places, by MPI's count", "B", Neither},
		{"device_sent_bytes", "sent by the measured devices", "B", Neither},
	}
}

// podMetrics are those of pods that are added.
func podMetrics() []Metric {
	return []Metric{
		{"pod_ready_mean_seconds", "pod ready, mean", "s", Lower},
		{"pod_ready_max_seconds", "last pod ready", "s", Lower},
		{"pods_ready_per_second", "pods ready", "1/s", Higher},
		{"pod_added_mean_seconds", "CNI ADD, mean", "s", Lower},
		{"pod_allocated_mean_seconds", "until its address is reserved", "s", Lower},
		{"pod_device_mean_seconds", "until its device exists", "s", Lower},
		{"pod_address_mean_seconds", "then until its address", "s", Lower},
		{"pod_route_mean_seconds", "then until its routes", "s", Lower},
		{"pod_waiting_mean_seconds", "then until the plugins end", "s", Lower},
		{"pod_policy_mean_seconds", "then until the agent is through", "s", Lower},
		{"pod_started_mean_seconds", "until its first process runs", "s", Lower},
		{"pod_answer_mean_seconds", "then until it answers", "s", Lower},
		{"pod_removed_mean_seconds", "CNI DEL, mean", "s", Lower},
		{"pod_kernel_memory_bytes", "kernel memory per pod", "B", Lower},
		{"pod_process_memory_bytes", "memory of the network's processes per pod", "B", Lower},
	}
}

// serviceMetrics are those of a service whose endpoint is changed.
func serviceMetrics() []Metric {
	return []Metric{
		{"service_update_mean_seconds", "service changed, mean", "s", Lower},
		{"service_update_max_seconds", "service changed, max", "s", Lower},
		{"service_programmed_mean_seconds", "until its proxy is through, mean", "s", Lower},
		{"service_updates", "changes of the service", "", Neither},
	}
}

// detailMetrics are counts, and what tools report in addition to the traffic.
func detailMetrics() []Metric {
	return []Metric{
		{"packets_sent", "packets sent", "", Neither},
		{"packets_received", "packets received", "", Neither},
		{"packets_lost", "packets lost", "", Lower},
		{"loss_ratio", "loss", "", Lower},
		{"packets_reordered", "packets reordered", "", Lower},
		{"packets_duplicated", "packets duplicated", "", Lower},
		{"transactions", "transactions counted", "", Neither},
		{"transactions_lost", "transactions lost", "", Lower},
		{"achieved_rate_bits_per_second", "achieved rate", "bit/s", Neither},
		{"achieved_rate_per_second", "achieved rate", "1/s", Neither},
		{"retransmits", "retransmits", "", Lower},
		{"tcp_cwnd_packets", "TCP congestion window", "", Neither},
		{"tcp_rtt_seconds", "TCP RTT", "s", Neither},
		{"tcp_mss_bytes", "TCP MSS", "B", Neither},
		{"tcp_pacing_rate_bits_per_second", "TCP pacing rate", "bit/s", Neither},
		{"client_cpu_seconds", "CPU time of the client's threads", "s", Neither},
		{"server_cpu_seconds", "CPU time of the server's threads", "s", Neither},
		{"strangers_refused", "strangers refused", "", Neither},
		{"client_mtu_bytes", "client MTU", "B", Neither},
		{"server_mtu_bytes", "server MTU", "B", Neither},
		{"client_cpu_ratio", "client CPU (tool's own figure)", "", Neither},
		{"server_cpu_ratio", "server CPU (tool's own figure)", "", Neither},
		{"client_service_demand_seconds_per_byte", "client service demand", "s/B", Lower},
		{"server_service_demand_seconds_per_byte", "server service demand", "s/B", Lower},
		{"client_service_demand_seconds_per_transaction", "client service demand", "s", Lower},
		{"server_service_demand_seconds_per_transaction", "server service demand", "s", Lower},
	}
}

// FindMetric looks a metric up by name.
func FindMetric(name string) (Metric, bool) {
	for _, m := range Metrics() {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}
