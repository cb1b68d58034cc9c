package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stopping"
)

const (
	target     = 0.02
	confidence = 0.95
	minBlocks  = 5
)

// outcome is one way to measure an efficiency, from one beginning.
type outcome struct {
	reached    bool    // inside the target half-width
	halfwidth  float64 // relative
	seconds    float64 // measured of each cell, warm-ups included
	efficiency float64
	covers     bool // the interval holds the truth
}

// blocks measures in blocks from the given one on, until the stopping rule is
// content or the recording ends.
func (r recording) blocks(base, network cell, from int, target, truth float64) outcome {
	var samples []result.Sample
	opt := dataset.Options{Confidence: confidence, TargetRelativeHalfwidth: target, MinBlocks: minBlocks}
	last := r.cells[base][len(r.cells[base])-1].block
	n := 0
	for b := from; b <= last; b++ {
		n++
		samples = append(append(samples, r.sample(base, b)...), r.sample(network, b)...)
		if n < minBlocks {
			continue
		}
		if p := stopping.Look(samples, opt)[asCell(network)]; p.Done {
			break
		}
	}
	s, ok := stat.Analyse(samples, opt).Cell(asCell(network))
	o := outcome{seconds: float64(n) * (r.sampleSeconds + r.warmupSeconds), efficiency: math.NaN()}
	if ok && s.Efficiency != nil {
		low, high, known := s.Efficiency.Interval()
		o.reached, o.efficiency = s.Progress.Done, s.Efficiency.Value
		o.halfwidth, _ = s.Efficiency.RelativeHalfwidth()
		o.covers = known && low <= truth && truth <= high
	}
	return o
}

// sample is what a cell gave in a block, if anything.
func (r recording) sample(c cell, block int) []result.Sample {
	i, ok := slices.BinarySearchFunc(r.cells[c], block, func(v value, b int) int { return v.block - b })
	if !ok {
		return nil
	}
	window := r.sampleSeconds
	return []result.Sample{{Schema: result.Schema, ID: fmt.Sprint(block, c), Block: block, Attempt: 1, Status: result.StatusOK, Cell: asCell(c),
		MeasuredSeconds: &window, Metrics: map[string]float64{primary(c.workload): r.cells[c][i].value}}}
}

func asCell(c cell) result.Cell {
	k := result.Cell{Network: c.network, Path: result.PathPodToPod, Placement: result.InterHost, Workload: c.workload}
	if c.network == result.HostNetwork {
		k = k.Baseline()
	}
	return k
}

// protocol is a fixed number of repetitions, one network after the other.
type protocol struct {
	repetitions int
	seconds     float64 // of each
}

func (p protocol) String() string { return fmt.Sprintf("%d × %g s", p.repetitions, p.seconds) }

func (p protocol) length() float64 { return float64(p.repetitions) * p.seconds }

// grouped measures the baseline from a moment on, and then the network; place
// is how many networks come before it. A repetition is the mean of what the
// cell gave in the repetition's own time.
func (r recording) grouped(p protocol, base, network cell, from float64, place int, truth float64) (outcome, bool) {
	x, okX := r.repetitions(p, base, from)
	y, okY := r.repetitions(p, network, from+float64(place)*p.length())
	if !okX || !okY {
		return outcome{}, false
	}
	// The logarithms of both groups, and Student's t on their difference.
	n := float64(p.repetitions)
	sx, sy := stats.Sample{Xs: x}, stats.Sample{Xs: y}
	difference := sy.Mean() - sx.Mean()
	t := stats.InvCDF(stats.TDist{V: 2*n - 2})(1 - (1-confidence)/2)
	h := t * math.Sqrt((sx.Variance()+sy.Variance())/n)
	return outcome{
		reached: math.Sinh(h) <= target, halfwidth: math.Sinh(h), seconds: p.length(), efficiency: math.Exp(difference),
		covers: math.Abs(difference-math.Log(truth)) <= h,
	}, true
}

func (r recording) repetitions(p protocol, c cell, from float64) ([]float64, bool) {
	var logs []float64
	for i := range p.repetitions {
		begin := from + float64(i)*p.seconds
		var sum, n float64
		for _, v := range r.cells[c] {
			if v.seconds >= begin && v.seconds+r.sampleSeconds <= begin+p.seconds {
				sum, n = sum+v.value, n+1
			}
		}
		if n == 0 || begin+p.seconds > r.length {
			return nil, false
		}
		logs = append(logs, math.Log(sum/n))
	}
	return logs, true
}

// table prints what each way needs and finds: first both at the target, then
// blocks at the precision that the fixed protocol came to.
func table(w io.Writer, r recording) {
	fmt.Fprintf(w, "One run of %.0f s, samples of %g s after %g s of warm-up. Medians over all beginnings; errors are against the whole run.\n\n",
		r.length, r.sampleSeconds, r.warmupSeconds)
	fmt.Fprintln(w, "| cell | efficiency | way | beginnings | inside target | seconds per cell | half-width | error | interval holds it |")
	fmt.Fprintln(w, "|---|---:|---|---:|---:|---:|---:|---:|---:|")
	for _, workload := range []string{"tcp_stream", "tcp_rr"} {
		base := cell{result.HostNetwork, workload}
		for place, name := range []string{"bridge", "flannel/vxlan"} {
			network := cell{name, workload}
			truth := r.truth(base, network)
			line(w, network, truth, fmt.Sprintf("blocks to ± %g %%", 100*target), r.fromEverywhere(base, network, target, truth))
			for _, p := range []protocol{{5, 10}, {3, 60}} {
				fixed := r.groupedFromEverywhere(p, base, network, place+1, truth)
				line(w, network, truth, p.String()+", grouped", fixed)
				if h := median(fixed, func(o outcome) float64 { return o.halfwidth }); h > 0 {
					line(w, network, truth, fmt.Sprintf("blocks to ± %.2g %%", 100*h), r.fromEverywhere(base, network, h, truth))
				}
			}
		}
	}
}

func (r recording) fromEverywhere(base, network cell, target, truth float64) []outcome {
	var all []outcome
	last := r.cells[base][len(r.cells[base])-1].block
	for from := 1; from <= last/2; from += max(1, last/60) {
		all = append(all, r.blocks(base, network, from, target, truth))
	}
	return all
}

func (r recording) groupedFromEverywhere(p protocol, base, network cell, place int, truth float64) []outcome {
	var all []outcome
	for from := 0.0; ; from += 5 {
		o, ok := r.grouped(p, base, network, from, place, truth)
		if !ok {
			return all
		}
		all = append(all, o)
	}
}

// truth is the efficiency over the whole recording.
func (r recording) truth(base, network cell) float64 {
	var sum, n float64
	for _, v := range r.cells[base] {
		for _, s := range r.sample(network, v.block) {
			sum, n = sum+math.Log(s.Metrics[primary(network.workload)]/v.value), n+1
		}
	}
	return math.Exp(sum / n)
}

func line(w io.Writer, c cell, truth float64, way string, all []outcome) {
	n := len(all)
	if n == 0 {
		fmt.Fprintf(w, "| %s %s | %.1f %% | %s | 0: the recording is too short | | | | | |\n", c.network, c.workload, 100*truth, way)
		return
	}
	var reached, covers int
	for _, o := range all {
		if o.reached {
			reached++
		}
		if o.covers {
			covers++
		}
	}
	fmt.Fprintf(w, "| %s %s | %.1f %% | %s | %d | %.0f %% | %.3g | ± %.2g %% | %.2g %% | %.0f %% |\n", c.network, c.workload, 100*truth, way, n,
		100*float64(reached)/float64(n), median(all, func(o outcome) float64 { return o.seconds }),
		100*median(all, func(o outcome) float64 { return o.halfwidth }),
		100*median(all, func(o outcome) float64 { return math.Abs(o.efficiency/truth - 1) }), 100*float64(covers)/float64(n))
}

// median is that of a figure of all outcomes; 0 of none.
func median(all []outcome, of func(outcome) float64) float64 {
	var xs []float64
	for _, o := range all {
		xs = append(xs, of(o))
	}
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	return xs[len(xs)/2]
}
