package warning

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// Doubts about what the machine and the traffic did during the samples.

func warnCPU(c *dataset.Dataset, a Answers) Warning {
	var f finding
	for _, s := range a.Cells {
		if s.CPUBound && s.Cell.CPUs == "" { // placed ends fill their CPU by design
			f.add(s.Cell, 0, 0)
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: CPUSaturated, Cells: f.cells,
		Message: fmt.Sprintf("a core was at least %.0f %% busy in %s: the CPU was the limit, not the network", 100*unit.Saturated, counted(len(f.cells), "cell")),
		Cure:    "compare the CPU cost, or use a slower link, fewer streams or pinned ends, so that a core stays free"}
}

// stealShare is the share of one core that the hypervisor may take unmentioned.
const stealShare = 0.01

func warnSteal(c *dataset.Dataset, a Answers) Warning {
	var f finding
	for _, d := range c.Cells {
		var stolen, measured float64
		for _, s := range d.OK {
			most, known := 0.0, false
			for _, end := range dataset.Ends() {
				if v, ok := dataset.PerSecond(s, end, "cpu_steal_seconds"); ok {
					most, known = max(most, v), true
				}
			}
			if known {
				stolen, measured = stolen+most, measured+1
			}
		}
		if measured > 0 && stolen/measured > stealShare {
			f.add(d.Cell, stolen/measured, stolen/measured)
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: Steal, Cells: f.cells,
		Message: fmt.Sprintf("the hypervisor took CPU time in %s, most in %s: %.1f %% of a core", counted(len(f.cells), "cell"), named(f.worst), 100*f.value),
		Cure:    "use a dedicated machine or dedicated CPUs; more blocks reduce the effect"}
}

// idleCores is how much of a core a machine may use unmentioned while nothing
// is measured.
const idleCores = 0.05

func warnNotIdle(c *dataset.Dataset, a Answers) Warning {
	var f finding
	for _, d := range c.Cells {
		most := 0.0
		for _, s := range d.OK {
			for _, end := range dataset.Ends() {
				if v, ok := c.Idle.BusyCores(dataset.MachineOf(s, end)); ok {
					most = max(most, v)
				}
			}
		}
		if most > idleCores {
			f.add(d.Cell, most, most)
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: NotIdle, Cells: f.cells,
		Message: fmt.Sprintf("other programs used %.2f of a core on average between samples; that average is subtracted from CPU time, instructions and cycles, and the rest of their load is in these figures", f.value),
		Cure:    "stop other programs, or compare the own CPU time (own_cpu_seconds_per_…), which counts only the processes of the two ends"}
}

func warnSpeed(c *dataset.Dataset, a Answers) Warning {
	var f finding
	var from, to float64
	for _, d := range c.Cells {
		most := 0.0
		for _, s := range d.OK {
			for _, end := range dataset.Ends() {
				slowest, fastest, ok := c.Speeds.Range(dataset.MachineOf(s, end))
				if ok && fastest/slowest > most {
					most = fastest / slowest
					if most > max(unit.SpeedRange, f.by) {
						from, to = slowest, fastest
					}
				}
			}
		}
		if most > unit.SpeedRange {
			f.add(d.Cell, most, most)
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: SpeedVaries, Cells: f.cells,
		Message: fmt.Sprintf("the processor ran at %.0f to %.0f %% of its usual speed, by a loop that is timed while nothing is measured; other virtual machines use its cores, or its clock changes. Efficiencies are compared inside a block and stay right, with wider intervals; do not compare absolute figures with another run's", 100*from, 100*to),
		Cure:    "measure when the machine is quiet, or on dedicated cores with a fixed clock; prefer native workloads, whose slices take turns within milliseconds, to tools with windows of a second"}
}

func warnRoundTrips(c *dataset.Dataset, a Answers) Warning {
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

// sentShare is how far sent less lost may lie from received: what a window's
// edges cut off.
const sentShare = 0.02

func warnSender(c *dataset.Dataset, a Answers) Warning {
	var f finding
	for _, d := range c.Cells {
		var shares []float64
		for _, s := range d.OK {
			if v, ok := unexplained(s); ok {
				shares = append(shares, v)
			}
		}
		if len(shares) > 0 && math.Abs(estimate.MedianOf(shares)) > sentShare {
			f.add(d.Cell, math.Abs(estimate.MedianOf(shares)), estimate.MedianOf(shares))
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: SenderReceiver, Cells: f.cells,
		Message: fmt.Sprintf("sender and receiver disagree by more than the loss in %s, most in %s: %+.1f %% of what was sent is missing", counted(len(f.cells), "cell"), named(f.worst), 100*f.value),
		Cure:    "throughput is the receiver's count; raise sampling.seconds, so that buffers matter less, and read the raw output of both ends"}
}

// unexplained is the share of what was sent that was neither received nor lost.
func unexplained(s dataset.Record) (float64, bool) {
	sent, ok := dataset.Measured(s, "sent_throughput_bits_per_second")
	received, okReceived := dataset.Measured(s, "throughput_bits_per_second")
	if !ok || !okReceived || sent <= 0 {
		return 0, false
	}
	loss, ok := dataset.Measured(s, "loss_ratio")
	if !ok && dataset.Transport(s.Cell) != "tcp" {
		return 0, false
	}
	return (sent*(1-loss) - received) / sent, true
}

// tellLoss is the median share of lost packets that is mentioned.
const tellLoss = 0.01

func warnLoss(c *dataset.Dataset, a Answers) Warning {
	var f, fragments finding
	for _, s := range a.Cells {
		if s.Loss != nil && s.Loss.Value >= tellLoss {
			f.add(s.Cell, s.Loss.Value, s.Loss.Value)
			if inFragments(c.ByCell[s.Cell]) {
				fragments.add(s.Cell, s.Loss.Value, s.Loss.Value)
			}
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	w := Warning{Code: Loss, Cells: f.cells,
		Message: fmt.Sprintf("packets were lost in %s, most in %s: %.1f %%; a network that drops packets can look faster than its baseline", counted(len(f.cells), "cell"), named(f.worst), 100*f.value),
		Cure:    "pace the stream (rate_bits_per_second) below the rate that arrives, and compare at equal loss"}
	if n := len(fragments.cells); n > 0 {
		w.Message += fmt.Sprintf("; %s sent datagrams in fragments, and those of incomplete ones fill the memory for fragments (net.ipv4.ipfrag_high_thresh) of the receiving pod or node for half a minute, so that later samples to it may lose theirs too", counted(n, "cell"))
		w.Cure += ", or send datagrams that fit into the pods' MTU"
	}
	return w
}

// inFragments reports whether a cell's datagrams are longer than the MTU of its client.
func inFragments(d *dataset.CellData) bool {
	headers := 20.0 + 8 // IPv4 and UDP
	if d.Cell.Family == "ipv6" {
		headers = 40 + 8
	}
	mtu, known := actualMTU(d)
	return known && d.Cell.Datagrams() && float64(d.Cell.MessageBytes) > mtu-headers
}
