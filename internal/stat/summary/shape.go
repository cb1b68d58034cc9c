package summary

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/histogram"
	"github.com/cnibench/cnibench/internal/unit"
)

// Shape is what a cell looks like beyond its estimates: what charts are drawn
// from. What was not recorded is absent.
type Shape struct {
	// Blocks is the primary metric in each block, in the order of the blocks.
	Blocks []BlockValue `json:"blocks,omitempty"`
	// Window is the throughput inside the measured window; nil where no sample
	// has a series.
	Window *Window `json:"window,omitempty"`
	// Curve is the round trips: percentiles of the merged histograms, as far as their counts
	// can give them.
	Curve []Quantile `json:"curve,omitempty"`
	// CPUCores maps a mode of CPU time (user, system, irq, softirq) to how many
	// cores were in it, both ends together, less what they do while idle: the
	// median over blocks.
	CPUCores map[string]estimate.Estimate `json:"cpu_cores,omitempty"`
	// PluginSeconds maps a CNI verb to each plugin of the network's list and how
	// long it ran for a pod: the median over blocks of the mean over pods.
	PluginSeconds map[string]map[string]estimate.Estimate `json:"plugin_seconds,omitempty"`
}

// BlockValue is a value in a block.
type BlockValue struct {
	Block int     `json:"block"`
	Value float64 `json:"value"`
}

// Window is the throughput in each interval of the measured window: its median
// and its quartiles over blocks, in bit/s. An interval counts where at least
// half of the blocks have it.
type Window struct {
	IntervalSeconds     float64   `json:"interval_seconds"`
	Blocks              int       `json:"blocks"`
	MedianBitsPerSecond []float64 `json:"median_bits_per_second"`
	LowBitsPerSecond    []float64 `json:"low_bits_per_second"`
	HighBitsPerSecond   []float64 `json:"high_bits_per_second"`
}

// Quantile is a percentile of round trips.
type Quantile struct {
	Share   float64 `json:"share"` // 0.99 is the 99th percentile
	Seconds float64 `json:"seconds"`
}

// shape gathers what charts of a cell are drawn from.
func shape(c *dataset.Dataset, d *dataset.CellData, l latency) Shape {
	s := Shape{Curve: l.curve, Window: window(d), CPUCores: cpuCores(c, d), PluginSeconds: pluginSeconds(c, d)}
	for _, p := range d.Series(d.Primary) {
		s.Blocks = append(s.Blocks, BlockValue{p.Block, p.Value})
	}
	return s
}

// curveShares are the shares at which a curve has points: at first in tenths, then
// each factor of ten closer to 1 in steps that are even on a logarithmic scale.
func curveShares() []float64 {
	out := []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}
	for _, nines := range []float64{0.1, 0.01, 0.001, 0.0001, 0.00001} {
		for _, part := range []float64{1, 0.56, 0.32, 0.18} {
			out = append(out, 1-nines*part)
		}
	}
	return out
}

// curve is the merged histogram as percentiles, up to the last one that has
// enough values beyond it.
func curve(m histogram.Merged) []Quantile {
	count := m.Count()
	if count == 0 {
		return nil
	}
	weights := slices.Repeat([]float64{1}, len(m.Blocks()))
	var out []Quantile
	hint := 0
	for _, share := range curveShares() {
		if count*(1-share) < fewestBeyond {
			break
		}
		var v float64
		v, hint = m.Percentile(share, weights, hint)
		out = append(out, Quantile{share, v})
	}
	return out
}

// cpuCores is the CPU time by mode, over time.
func cpuCores(c *dataset.Dataset, d *dataset.CellData) map[string]estimate.Estimate {
	out := map[string]estimate.Estimate{}
	for _, mode := range dataset.BusyModes() {
		var xs []float64
		for _, s := range d.OK {
			if v, ok := d.Meter.Machines(s, []string{mode}); ok {
				xs = append(xs, v)
			}
		}
		if len(xs) > 0 {
			out[mode[len("cpu_"):len(mode)-len("_seconds")]] = c.Tables.Median(xs)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// pluginSeconds is how long plugins ran; nil where that was not recorded.
func pluginSeconds(c *dataset.Dataset, d *dataset.CellData) map[string]map[string]estimate.Estimate {
	var out map[string]map[string]estimate.Estimate
	for verb, plugins := range d.Plugins {
		for name, column := range plugins {
			var xs []float64
			for _, s := range d.OK {
				if v, ok := column.At(s.At); ok {
					xs = append(xs, v)
				}
			}
			if len(xs) == 0 {
				continue
			}
			if out == nil {
				out = map[string]map[string]estimate.Estimate{}
			}
			if out[verb] == nil {
				out[verb] = map[string]estimate.Estimate{}
			}
			out[verb][name] = c.Tables.Median(xs)
		}
	}
	return out
}

// window puts the series of all blocks over each other. Series of another
// interval than the first one's are left out.
func window(d *dataset.CellData) *Window {
	w := Window{}
	var at [][]float64
	for _, s := range d.OK {
		interval, values := s.Window()
		switch {
		case values == nil, w.Blocks > 0 && interval != w.IntervalSeconds:
			continue
		case w.Blocks == 0:
			w.IntervalSeconds = interval
		}
		w.Blocks++
		for i, v := range values {
			if i == len(at) {
				at = append(at, nil)
			}
			if !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) {
				at[i] = append(at[i], float64(v))
			}
		}
	}
	for _, xs := range at {
		if 2*len(xs) < w.Blocks || len(xs) == 0 {
			break
		}
		slices.Sort(xs)
		w.MedianBitsPerSecond = append(w.MedianBitsPerSecond, quartile(xs, 2))
		w.LowBitsPerSecond = append(w.LowBitsPerSecond, quartile(xs, 1))
		w.HighBitsPerSecond = append(w.HighBitsPerSecond, quartile(xs, 3))
	}
	if len(w.MedianBitsPerSecond) == 0 {
		return nil
	}
	return &w
}

// quartile q (1, 2 or 3) of sorted values, between neighbours in proportion
// (Hyndman and Fan's definition 7).
func quartile(sorted []float64, q int) float64 {
	at := float64(q) / 4 * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// nodes are the values of unit.NodeMetrics of a cell, of one node: the mean of
// both ends', and over blocks the median. Ends that share a node have the same. A
// sample in which one end's was not read has none: one node's value is no mean.
func nodes(c *dataset.Dataset, d *dataset.CellData) map[string]estimate.Estimate {
	var out map[string]estimate.Estimate
	for _, m := range unit.NodeMetrics() {
		if d.Probes[result.ClientNode][m.Name] == nil || d.Probes[result.ServerNode][m.Name] == nil {
			continue
		}
		var all []float64
		for _, s := range d.OK {
			client, okClient := s.Probe(result.ClientNode, m.Name)
			server, okServer := s.Probe(result.ServerNode, m.Name)
			if okClient && okServer {
				all = append(all, (client+server)/2)
			}
		}
		if len(all) == 0 {
			continue
		}
		if out == nil {
			out = map[string]estimate.Estimate{}
		}
		out[m.Name] = c.Tables.Median(all)
	}
	return out
}
