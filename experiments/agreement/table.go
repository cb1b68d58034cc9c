package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

const (
	confidence = 0.95
	// margin is what counts as agreement.
	margin = 0.03
)

// values are those of one quantity, by cell and block.
type values map[result.Cell]map[int]float64

// of collects a quantity; a sample that has none is left out.
func of(samples []result.Sample, quantity func(result.Sample) (float64, bool)) values {
	all := values{}
	for _, s := range samples {
		if v, ok := quantity(s); ok && s.Status == result.StatusOK && v > 0 {
			if all[s.Cell] == nil {
				all[s.Cell] = map[int]float64{}
			}
			all[s.Cell][s.Block] = v
		}
	}
	return all
}

// ratio is over by under, in the blocks that have all of them.
func (v values) ratio(over, under []result.Cell) estimate.Moments {
	var logs []estimate.Point
	for _, block := range slices.Sorted(maps.Keys(v[over[0]])) { // sums are the same in every run
		sum, whole := 0.0, true
		for _, cells := range []struct {
			of   []result.Cell
			sign float64
		}{{over, 1}, {under, -1}} {
			for _, c := range cells.of {
				x, ok := v[c][block]
				whole = whole && ok
				sum += cells.sign * math.Log(x)
			}
		}
		if whole {
			logs = append(logs, estimate.Point{Block: block, Value: sum})
		}
	}
	return estimate.MomentsOf(logs)
}

// rate is the traffic that got through per second.
func rate(s result.Sample) (float64, bool) {
	for _, name := range []string{"transactions_per_second", "throughput_bits_per_second"} {
		if v, ok := s.Metrics[name]; ok {
			return v, true
		}
	}
	return 0, false
}

// work is the CPU time of both ends for the same traffic, of the kernel's threads that
// carried their packets too; what else runs on the machine is not in it.
func work(s result.Sample) (float64, bool) {
	r, ok := rate(s)
	client, clientOK := s.Metrics["client_cpu_seconds"]
	server, serverOK := s.Metrics["server_cpu_seconds"]
	if !ok || !clientOK || !serverOK || s.MeasuredSeconds == nil {
		return 0, false
	}
	return (client + server) / *s.MeasuredSeconds / r, true
}

// writeTables writes, of the traffic that got through and of the CPU time that it took,
// each pair's pods against their hosts and the ratio of both: Kubernetes by the lab.
// The same ratio of hosts and of pods alone shows whose path differs.
func writeTables(w io.Writer, pairs []pair, samples []result.Sample) {
	for _, q := range []struct {
		title    string
		quantity func(result.Sample) (float64, bool)
	}{{"Traffic that got through", rate}, {"CPU time of both ends for the same traffic", work}} {
		v := of(samples, q.quantity)
		fmt.Fprintf(w, "\n%s:\n\n", q.title)
		fmt.Fprintln(w, "| lab's network | cluster | path | traffic | pods ÷ hosts in the lab | in Kubernetes | Kubernetes ÷ lab | verdict | hosts: Kubernetes ÷ lab | pods: Kubernetes ÷ lab |")
		fmt.Fprintln(w, "| --- | --- | --- | --- | ---: | ---: | ---: | --- | ---: | ---: |")
		for _, p := range pairs {
			base, kubeBase := p.lab.Baseline(), p.kube.Baseline()
			one := func(over, under result.Cell) string { return text(v.ratio([]result.Cell{over}, []result.Cell{under})) }
			both := v.ratio([]result.Cell{p.kube, base}, []result.Cell{p.lab, kubeBase})
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", p.lab.Network, p.kube.Cluster, p.kube.Path, p.kube.Traffic(),
				one(p.lab, base), one(p.kube, kubeBase), text(both), verdict(both), one(kubeBase, base), one(p.kube, p.lab))
		}
	}
}

// text is a geometric mean with its interval.
func text(m estimate.Moments) string {
	low, high, ok := m.Interval(confidence)
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", math.Exp(m.Mean), math.Exp(low), math.Exp(high))
}

// verdict says whether a ratio is one within the margin.
func verdict(m estimate.Moments) string {
	low, high, ok := m.Interval(confidence)
	least, most := math.Log(1-margin), math.Log(1+margin)
	switch {
	case !ok:
		return "not measured"
	case low >= least && high <= most:
		return "agree"
	case high < least || low > most:
		return "differ"
	case low > 0 || high < 0:
		return "undecided, not the same"
	}
	return "undecided"
}
