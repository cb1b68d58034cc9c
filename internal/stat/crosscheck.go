package stat

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/result"
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
	Ratio *Estimate `json:"ratio,omitempty"`
	// NoRatio says why Ratio is nil.
	NoRatio string `json:"no_ratio,omitempty"`
	// Differs says in what the two are not the same.
	Differs string `json:"differs"`
}

// crossChecks pairs each native cell with the cells of published tools that
// have the same factors.
func (c *dataset) crossChecks() []CrossCheck {
	var out []CrossCheck
	for _, d := range c.cells {
		for _, k := range Correspondences() {
			if e := c.classic(k, d.cell); e != nil {
				out = append(out, c.crossCheck(k, d, e))
			}
		}
	}
	return out
}

// classic is the published tool's data for a native cell; nil where the
// campaign has no such cell. An open loop has none: the tools count latency
// from the moment of sending, the native engine from the intended one.
func (c *dataset) classic(k Correspondence, native result.Cell) *cellData {
	if native.Workload != k.Native || native.RatePerSecond > 0 {
		return nil
	}
	cell := native
	cell.Workload, cell.Test, cell.Protocol = k.Tool, k.Test, k.Protocol
	if d := c.byCell[cell]; d != nil || cell.Streams != 1 {
		return d
	}
	cell.Streams = 0 // of a tool that knows one stream only
	return c.byCell[cell]
}

func (c *dataset) crossCheck(k Correspondence, native, classic *cellData) CrossCheck {
	x := CrossCheck{Native: native.cell, Classic: classic.cell, Metric: k.Metric, Differs: k.Differs}
	for _, d := range []*cellData{native, classic} {
		if x.NoRatio = notMeasured(d); x.NoRatio != "" {
			x.NoRatio = d.cell.Workload + ": " + x.NoRatio
			return x
		}
	}
	ratios := logRatios(native.series(k.Metric), classic.series(k.Metric), unit.Neither)
	if len(ratios) == 0 {
		x.NoRatio = "no block has " + k.Metric + " of both"
		return x
	}
	e := c.tables.geometricMean(ratios)
	x.Ratio = &e
	return x
}

// RoundTripCheck compares a closed loop with Little's law: transactions per
// second × their mean time is how many are under way at once.
type RoundTripCheck struct {
	Cell result.Cell `json:"cell"`
	// Product is rate × mean round trip ÷ the number under way; its truth is 1.
	Product Estimate `json:"product"`
	// OK reports that it is within RoundTripTolerance of 1.
	OK bool `json:"ok"`
}

// RoundTripTolerance is how far rate × round trip may lie from the number of
// transactions under way, relative.
const RoundTripTolerance = 0.05

// roundTripChecks has every cell that counts and times transactions in a closed
// loop; an open one is not held back by its answers.
func (c *dataset) roundTripChecks() []RoundTripCheck {
	var out []RoundTripCheck
	for _, d := range c.cells {
		if d.cell.RatePerSecond > 0 {
			continue
		}
		var products []point
		for _, s := range d.ok {
			if v, ok := roundTripProduct(s); ok {
				products = append(products, point{s.block(), math.Log(v)})
			}
		}
		if len(products) == 0 {
			continue
		}
		e := c.tables.geometricMean(products)
		out = append(out, RoundTripCheck{Cell: d.cell, Product: e, OK: math.Abs(e.Value-1) <= RoundTripTolerance})
	}
	return out
}

// roundTripProduct is that of one sample. One that lost transactions has none:
// those were under way and have no round trip.
func roundTripProduct(s record) (float64, bool) {
	rate, ok := measured(s, "transactions_per_second")
	mean, okMean := measured(s, "latency_mean_seconds")
	lost, _ := measured(s, "transactions_lost") // absent means none
	if !ok || !okMean || rate <= 0 || mean <= 0 || lost > 0 {
		return 0, false
	}
	underWay := max(s.cell.Streams, 1) * max(s.cell.Burst, 1)
	if s.cell.Workload == "latency_under_load" {
		underWay = 1 // its streams are the load
	}
	return rate * mean / float64(underWay), true
}

func (c *dataset) warnRoundTrips(a Analysis) Warning {
	var f finding
	for _, r := range a.RoundTrips {
		if !r.OK {
			f.add(r.Cell, math.Abs(r.Product.Value-1), r.Product.Value)
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: RoundTripRate, Cells: f.cells,
		Message: fmt.Sprintf("rate × mean round trip is not the number under way in %s, worst in %s: %.2f of it", counted(len(f.cells), "cell"), named(f.worst), f.value),
		Cure:    "near 0.5 the tool reports one-way times, below 1 the client waits between transactions, above 1 the two were not measured together: look at the raw output"}
}
