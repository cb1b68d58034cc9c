package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab"
)

// probePlan says how the cost of the probes is counted: the same traffic with none of
// them and with each set, in blocks.
type probePlan struct {
	Network string
	Blocks  int
	Packets int // of each window
	Sets    []probeSet
	// Rules is how many rules are read of a node, as the probe netfilter does; 0: none.
	Rules int
}

// probeSet is a set of probes that is compared with none.
type probeSet struct {
	Name    string
	Without []string
}

// noProbes is the set that all others are compared with.
func noProbes() probeSet { return probeSet{"none", probe.Names()} }

// allProbes is what an end reads where a campaign says nothing of probes.
func allProbes() probeSet { return probeSet{"all together", nil} }

// counting is all of these but the sampling.
func counting() probeSet { return probeSet{"counting", []string{probe.StacksName}} }

// probeSets are those that take turns.
func probeSets() []probeSet { return []probeSet{noProbes(), counting(), allProbes()} }

// probed is a window with a set of probes, by the clock of instructions.
type probed struct {
	Set string
	// Nanoseconds is the window, from before the first edges to after the packets,
	// without what the CPU was idle.
	Nanoseconds int64
	// Edges are what each probe's two edges took: the first inside the window, the
	// second after it.
	Edges        map[string][2]int64 `json:",omitempty"`
	Packets      int64
	StackSamples int64 `json:",omitempty"`
}

// throughput is packets in a second of the clock.
func (p probed) throughput() float64 { return float64(p.Packets) * 1e9 / float64(p.Nanoseconds) }

// first is what the first edges took together.
func (p probed) first() (sum int64) {
	for _, e := range p.Edges {
		sum += e[0]
	}
	return sum
}

// countProbes carries a plan out in a lab of this kernel.
func countProbes(ctx context.Context, p probePlan, say func(line) error) (err error) {
	r := exec.NewRunner()
	defer r.Close()
	l := lab.New(lab.Options{Runner: r, CNIPath: cni.SearchPath(""), Verb: "bench-instructions"})
	cell := ladderTraffic().cell(setting{Network: p.Network})
	unsupported, err := l.Build(ctx, []result.Cell{cell})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close(context.WithoutCancel(ctx))) }()
	if reason, not := unsupported[cell]; not {
		return errors.New(reason)
	}
	sites, err := l.Sites(cell)
	if err != nil {
		return err
	}
	pair, err := ends(sites).datagrams()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pair.close()) }()
	roots := probe.Roots{Proc: "/proc", Sys: "/sys"}
	roots.Symbols = probe.NewSymbols(roots) // read once, as an agent does
	for block := range 1 + p.Blocks {
		n := p.Packets
		if block == 0 {
			n = min(n, 1000) // fills neighbours and caches, and is not reported
		}
		for _, i := range rand.New(rand.NewPCG(1, uint64(block))).Perm(len(p.Sets)) {
			got, err := probedWindow(pair, roots, p.Sets[i], n)
			if err != nil && block > 0 {
				return fmt.Errorf("probes %s: %w", p.Sets[i].Name, err)
			}
			if block == 0 {
				continue
			}
			if err := say(line{Probed: &got}); err != nil {
				return err
			}
		}
	}
	if p.Rules == 0 {
		return nil
	}
	read, err := countReading(ctx, r, l, p, pair)
	if err != nil {
		return err
	}
	return say(line{Reading: &read})
}

// othersRun is how long the traffic waits at the end of a window, so that what the
// probes do in threads of their own meanwhile gets the CPU, and is counted.
const othersRun = time.Millisecond

// probedWindow passes packets while a set of probes runs, as an agent reads them.
// As else only the kernel's interrupts run meanwhile, the samples' among them.
func probedWindow(pair pair, roots probe.Roots, set probeSet, packets int) (got probed, err error) {
	list := probe.List(roots, set.Without)
	defer func() {
		for _, p := range list {
			if c, ok := p.(io.Closer); ok {
				err = errors.Join(err, c.Close())
			}
		}
	}()
	got = probed{Set: set.Name, Packets: int64(packets), Edges: map[string][2]int64{}}
	var started []probe.Probe
	idle, err := idleNanoseconds()
	if err != nil {
		return got, err
	}
	got.Nanoseconds, err = clocked(true, func() error {
		for _, p := range list {
			begin := monotonic()
			err := p.Start()
			if _, wrong := probe.Reasons(err); len(wrong) > 0 {
				return fmt.Errorf("%s: %w", p.Name(), errors.Join(wrong...))
			}
			if err == nil { // else this machine has none of what it reads
				started = append(started, p)
				got.Edges[p.Name()] = [2]int64{monotonic() - begin}
			}
		}
		err := pair.run(ladderTraffic().Workload, packets, 0)
		time.Sleep(othersRun)
		return err
	})
	if err != nil {
		return got, err
	}
	after, err := idleNanoseconds()
	if err != nil {
		return got, err
	}
	got.Nanoseconds -= after - idle
	for _, p := range started {
		begin := monotonic()
		values, err := p.Stop()
		if _, wrong := probe.Reasons(err); len(wrong) > 0 {
			return got, fmt.Errorf("%s: %w", p.Name(), errors.Join(wrong...))
		}
		got.Edges[p.Name()] = [2]int64{got.Edges[p.Name()][0], monotonic() - begin}
		got.StackSamples += int64(values["stack_samples"])
	}
	return got, nil
}
