package stat

import (
	"fmt"
	"math"
)

// Doubts about what the machine and the traffic did during the samples.

func (c *dataset) warnCPU(a Analysis) Warning {
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
		Message: fmt.Sprintf("a core was at least %.0f %% busy in %s: the CPU was the limit, not the network", 100*saturated, counted(len(f.cells), "cell")),
		Cure:    "compare the CPU cost, or use a slower link, fewer streams or pinned ends, so that a core stays free"}
}

// stealShare is the share of one core that the hypervisor may take unmentioned.
const stealShare = 0.01

func (c *dataset) warnSteal(a Analysis) Warning {
	var f finding
	for _, d := range c.cells {
		var stolen, measured float64
		for _, s := range d.ok {
			most, known := 0.0, false
			for _, end := range ends() {
				if v, ok := perSecond(s, end, "cpu_steal_seconds"); ok {
					most, known = max(most, v), true
				}
			}
			if known {
				stolen, measured = stolen+most, measured+1
			}
		}
		if measured > 0 && stolen/measured > stealShare {
			f.add(d.cell, stolen/measured, stolen/measured)
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

func (c *dataset) warnNotIdle(Analysis) Warning {
	var f finding
	for _, d := range c.cells {
		most := 0.0
		for _, s := range d.ok {
			for _, end := range ends() {
				if v, ok := c.idle.busyCores(machineOf(s, end)); ok {
					most = max(most, v)
				}
			}
		}
		if most > idleCores {
			f.add(d.cell, most, most)
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: NotIdle, Cells: f.cells,
		Message: fmt.Sprintf("other programs used %.2f of a core on average between samples; that average is subtracted from CPU time, instructions and cycles, and the rest of their load is in these figures", f.value),
		Cure:    "stop other programs, or compare the own CPU time (own_cpu_seconds_per_…), which counts only the processes of the two ends"}
}

// sentShare is how far sent less lost may lie from received: what a window's
// edges cut off.
const sentShare = 0.02

func (c *dataset) warnSender(a Analysis) Warning {
	var f finding
	for _, d := range c.cells {
		var shares []float64
		for _, s := range d.ok {
			if v, ok := unexplained(s); ok {
				shares = append(shares, v)
			}
		}
		if len(shares) > 0 && math.Abs(medianOf(shares)) > sentShare {
			f.add(d.cell, math.Abs(medianOf(shares)), medianOf(shares))
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
func unexplained(s record) (float64, bool) {
	sent, ok := measured(s, "sent_throughput_bits_per_second")
	received, okReceived := measured(s, "throughput_bits_per_second")
	if !ok || !okReceived || sent <= 0 {
		return 0, false
	}
	loss, ok := measured(s, "loss_ratio")
	if !ok && transport(s.cell) != "tcp" {
		return 0, false
	}
	return (sent*(1-loss) - received) / sent, true
}

// tellLoss is the median share of lost packets that is mentioned.
const tellLoss = 0.01

func (c *dataset) warnLoss(a Analysis) Warning {
	var f finding
	for _, s := range a.Cells {
		if s.Loss != nil && s.Loss.Value >= tellLoss {
			f.add(s.Cell, s.Loss.Value, s.Loss.Value)
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: Loss, Cells: f.cells,
		Message: fmt.Sprintf("packets were lost in %s, most in %s: %.1f %%; a network that drops packets can look faster than its baseline", counted(len(f.cells), "cell"), named(f.worst), 100*f.value),
		Cure:    "pace the stream (rate_bits_per_second) below the rate that arrives, and compare at equal loss"}
}
