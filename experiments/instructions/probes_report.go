package main

import (
	_ "embed"
	"fmt"
	"io"

	"github.com/cnibench/cnibench/internal/probe"
)

// The goals: what all probes but the sampling may cost of throughput, and what the
// sampling may.
const (
	mostCost         = 0.01
	mostSamplingCost = 0.03
)

// fullProbePlan is that of docs/probes.md.
func fullProbePlan() plan {
	return plan{Probes: &probePlan{Network: "flannel/vxlan", Blocks: 4, Packets: 9600, Sets: probeSets(), Rules: 10_000}}
}

// of are the windows of a set.
func (c counted) of(set string) []probed {
	var all []probed
	for _, p := range c.probed {
		if p.Set == set {
			all = append(all, p)
		}
	}
	return all
}

// probeCost is what a set of probes takes.
type probeCost struct {
	// Lost is the share of throughput that goes, against none in the same block;
	// First is what of it the first edges take, During the rest, which goes for as
	// long as the window is.
	Lost, First, During value
	// PerSample is the instructions that go for one sampled stack; no interval where
	// there were none.
	PerSample value
	// Second is the share of throughput that goes in a window of a second.
	Second value
}

// cost compares a set with another in the same blocks.
func (c counted) cost(set, base string) (probeCost, error) {
	none, with := c.of(base), c.of(set)
	if len(with) < 2 || len(none) != len(with) {
		return probeCost{}, fmt.Errorf("%s: %d windows, and %d of %s", set, len(with), len(none), base)
	}
	var lost, first, during, sample, second []float64
	for i, w := range with {
		edges, all := float64(w.first()-none[i].first()), float64(w.Nanoseconds-none[i].Nanoseconds)
		lost = append(lost, 1-w.throughput()/none[i].throughput())
		first = append(first, edges/float64(w.Nanoseconds))
		share := (all - edges) / (float64(w.Nanoseconds) - edges)
		during = append(during, share)
		second = append(second, edges/1e9+share*(1-edges/1e9))
		if w.StackSamples > 0 {
			sample = append(sample, (all-edges)/float64(w.StackSamples))
		}
	}
	p := probeCost{Lost: meanOf(lost), First: meanOf(first), During: meanOf(during), Second: meanOf(second)}
	if len(sample) > 1 {
		p.PerSample = meanOf(sample)
	}
	return p, nil
}

// edges are what a probe's first and second edge take, among all.
func (c counted) edges(name string) (first, second value) {
	var a, b []float64
	for _, w := range c.of(allProbes().Name) {
		if e, ok := w.Edges[name]; ok {
			a, b = append(a, float64(e[0])), append(b, float64(e[1]))
		}
	}
	return meanOf(a), meanOf(b)
}

//go:embed probes.md
var probesPreamble string

func percents(v value) string { return fmt.Sprintf("%.2f ± %.2f %%", 100*v.mean, 100*v.half) }

func probeReport(w io.Writer, got counted, all plan) {
	p := *all.Probes
	fmt.Fprint(w, probesPreamble)
	fmt.Fprintf(w, "\nKernel %s, udp_stream of %d bytes inter-host on %s, %d blocks of windows of %d packets; intervals are of %.0f %%.\n\n",
		got.kernel, messageBytes, p.Network, p.Blocks, p.Packets, 100*confidence)
	fmt.Fprint(w, "| probe | first edge, instructions | second edge, instructions | first edge in a window of 1 s |\n|---|---:|---:|---:|\n")
	for _, name := range []string{probe.CPUName, probe.ProcessName, probe.StacksName} {
		first, second := got.edges(name)
		fmt.Fprintf(w, "| `%s` | %s | %s | %.3f %% |\n", name, first, second, 100*first.mean/1e9)
	}
	fmt.Fprint(w, "\n| throughput lost | in these windows | while the window lasts | in a window of 1 s | at 2·10⁹ instructions a second | goal |\n|---|---:|---:|---:|---:|---|\n")
	for _, one := range []struct {
		what, set, base string
		most            float64
	}{
		{"all but sampling", counting().Name, noProbes().Name, mostCost},
		{"sampling, beside these", allProbes().Name, counting().Name, mostSamplingCost},
		{"all that are on by default", allProbes().Name, noProbes().Name, mostCost},
	} {
		c, err := got.cost(one.set, one.base)
		if err != nil {
			fmt.Fprintf(w, "| %s | %v | | | | |\n", one.what, err)
			continue
		}
		verdict := "held"
		if c.Second.mean+c.Second.half > one.most {
			verdict = "**not held**"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %.2f %% | under %.0f %%: %s |\n",
			one.what, percents(c.Lost), percents(c.During), percents(c.Second), 100*c.Second.mean/2, 100*one.most, verdict)
	}
	if c, err := got.cost(allProbes().Name, counting().Name); err == nil {
		fmt.Fprintf(w, "\nOne sampled stack takes %s instructions: the timer's interrupt, walking the stack, writing the record, and reading it.\n", c.PerSample)
	}
	if r := got.reading; r != nil {
		readingReport(w, *r)
	}
}

func readingReport(w io.Writer, r ruleReading) {
	var read []float64
	for _, n := range r.ReadNanoseconds {
		read = append(read, float64(n))
	}
	fmt.Fprintf(w, "\n## Reading rules\n\n`netfilter` lists a node's rules before and after the traffic. %d rules of nf_tables take %s instructions, %s a rule, each time. "+
		"No packet waits for that. If a base chain does not count, the probe enables its counter for the rest of the campaign: a packet that passes one takes %s instructions, compared with %s before (%s more).\n",
		r.Rules, meanOf(read), meanOf(read).times(1/float64(r.Rules)), meanOf(r.Counted), meanOf(r.Plain), difference(r.Plain, r.Counted))
}
