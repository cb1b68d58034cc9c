package stat

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// Correspondence is a native workload and the test of a published tool that
// measures the same thing.
type Correspondence struct {
	Native string
	// Tool, Test and Protocol are the published tool's workload, test and
	// protocol, as in result.Cell.
	Tool, Test, Protocol string
	// Metric is what is compared.
	Metric string
	// Differs says in what the two are still not the same.
	Differs string
}

// Correspondences lists all metrics that are compared. Not in it:
// sockperf's under-load test, whose load is the messages that it times, and
// http's "close", which times a web server and many connections at once.
func Correspondences() []Correspondence {
	const (
		bits, packets, mean, rate = "throughput_bits_per_second", "packets_per_second", "latency_mean_seconds", "transactions_per_second"

		iperf3TCP   = "iperf3 takes whole seconds, for its warm-up too."
		netperfTCP  = "netperf has no warm-up, so that the start of the connection is in its figure."
		sockperfTCP = "What sockperf prints is what it sent; compared is what its server received. It has no warm-up."
		oneByOne    = " It makes a system call for each datagram, the native engine one for up to 64."
		netperfUDP  = "What netperf prints first is what it sent; compared is what its server received. It has no warm-up." + oneByOne
		netperfRR   = "netperf has no warm-up, and times transactions in whole microseconds."
		netperfCRR  = "netperf has no warm-up; the native engine sends its run's token with the request."
		sockperfRR  = "What sockperf prints is half a round trip; compared is the whole. Of its whole seconds it leaves out the first 0.4 s and the last 0.05 s."
	)
	return []Correspondence{
		{"tcp_stream", "iperf3", "", "tcp", bits, iperf3TCP},
		{"tcp_stream", "netperf", "TCP_STREAM", "", bits, netperfTCP},
		{"tcp_stream", "sockperf", "throughput", "tcp", bits, sockperfTCP},
		{"udp_stream", "iperf3", "", "udp", packets, iperf3TCP + oneByOne},
		{"udp_stream", "netperf", "UDP_STREAM", "", packets, netperfUDP},
		{"udp_stream", "sockperf", "throughput", "udp", packets, sockperfTCP + oneByOne},
		{"tcp_rr", "netperf", "TCP_RR", "", mean, netperfRR},
		{"tcp_rr", "sockperf", "ping-pong", "tcp", mean, sockperfRR},
		{"udp_rr", "netperf", "UDP_RR", "", mean, netperfRR},
		{"udp_rr", "sockperf", "ping-pong", "udp", mean, sockperfRR},
		{"tcp_crr", "netperf", "TCP_CRR", "", rate, netperfCRR},
	}
}

// CrossCheck compares the native engine with a published tool in one cell.
type CrossCheck struct {
	Native  result.Cell `json:"native"`
	Classic result.Cell `json:"classic"`
	// Metric is what is compared.
	Metric string `json:"metric"`
	// Ratio is native / classic over the blocks that have both, as it is: less
	// than 1 is less, also where less is better. Nil for NoRatio.
	Ratio *estimate.Estimate `json:"ratio,omitempty"`
	// NoRatio says why Ratio is nil.
	NoRatio string `json:"no_ratio,omitempty"`
	// Differs says in what the two are not the same.
	Differs string `json:"differs"`
}

// crossChecks pairs each native cell with the cells of published tools that
// have the same factors.
func crossChecks(c *dataset.Dataset) []CrossCheck {
	var out []CrossCheck
	for _, d := range c.Cells {
		for _, k := range Correspondences() {
			if e := classic(c, k, d.Cell); e != nil {
				out = append(out, crossCheck(c, k, d, e))
			}
		}
	}
	return out
}

// classic is the published tool's data for a native cell; nil where the
// campaign has no such cell. An open loop has none: the tools count latency
// from the moment of sending, the native engine from the intended one.
func classic(c *dataset.Dataset, k Correspondence, native result.Cell) *dataset.CellData {
	if native.Workload != k.Native || native.RatePerSecond > 0 {
		return nil
	}
	cell := native
	cell.Workload, cell.Test, cell.Protocol = k.Tool, k.Test, k.Protocol
	if d := c.ByCell[cell]; d != nil || cell.Streams != 1 {
		return d
	}
	cell.Streams = 0 // of a tool that knows one stream only
	return c.ByCell[cell]
}

func crossCheck(c *dataset.Dataset, k Correspondence, native, classic *dataset.CellData) CrossCheck {
	x := CrossCheck{Native: native.Cell, Classic: classic.Cell, Metric: k.Metric, Differs: k.Differs}
	for _, d := range []*dataset.CellData{native, classic} {
		if x.NoRatio = dataset.NotMeasured(d); x.NoRatio != "" {
			x.NoRatio = d.Cell.Workload + ": " + x.NoRatio
			return x
		}
	}
	ratios := estimate.LogRatios(native.Series(k.Metric), classic.Series(k.Metric), unit.Neither)
	if len(ratios) == 0 {
		x.NoRatio = "no block has " + k.Metric + " of both"
		return x
	}
	e := c.Tables.GeometricMean(ratios)
	x.Ratio = &e
	return x
}
