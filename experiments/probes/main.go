// Command probes measures what the probes themselves cost: the same traffic with
// those that count, with all of them and with none, in blocks, between two node namespaces of a lab; the
// time that reading both edges of a window takes; and how well the counters
// repeat. On a machine that others use as well that decides nothing: what they cost in
// counted instructions is `make bench-probe-cost` (docs/probes.md).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "agent" {
		os.Exit(agent.Serve(context.Background(), os.Stdin, os.Stdout))
	}
	blocks := flag.Int("blocks", 40, "how often each traffic is measured with probes and without")
	seconds := flag.Float64("seconds", 0.5, "how long each measurement is")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *blocks, time.Duration(*seconds*float64(time.Second)))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "experiments/probes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, blocks int, window time.Duration) (err error) {
	if err := errors.Join(edges(w), repeat(w)); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runner := exec.NewRunner()
	defer runner.Close()
	l := lab.New(lab.Options{Runner: runner, Agent: []string{self, "agent"}, CNIPath: cni.SearchPath(""), Verb: "bench-probes", SetsAlgorithm: workload.SetsCongestionControl})
	if _, err := l.Build(ctx, cells()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close(context.WithoutCancel(ctx))) }()
	var samples []result.Sample
	for block := range blocks {
		got, err := measure(ctx, l, block+1, window)
		if err != nil {
			return err
		}
		samples = append(samples, got...)
	}
	fmt.Fprintf(w, "\nwith probes against none, %d blocks of %v, 95 %% intervals:\n", blocks, window)
	a := stat.Analyse(samples, dataset.Options{})
	for _, s := range a.Cells {
		if s.Efficiency == nil {
			continue
		}
		fmt.Fprintf(w, "  %-21s  %-18s %s %s\n", s.Cell.Network, s.Cell.Traffic(), s.Primary, percent(*s.Efficiency))
		for _, work := range []string{"transaction", "packet", "byte"} {
			// CPU repeats where throughput does not. It has what is done after the
			// window too: naming functions, sharing the time out.
			if e, ok := s.EfficiencyByMetric["own_cpu_seconds_per_"+work]; ok {
				fmt.Fprintf(w, "  %-21s  %-18s work for the same CPU time %s\n", "", "", percent(e))
				break
			}
		}
	}
	return nil
}

func percent(e estimate.Estimate) string {
	half := math.NaN() // one block has no interval
	if low, high, ok := e.Interval(); ok {
		half = (high - low) / 2
	}
	return unit.Percent(e.Value, half)
}

// edges measures how long both edges of a window take, of each probe.
func edges(w io.Writer) error {
	const rounds = 200
	roots := probe.Roots{Proc: "/proc", Sys: "/sys"}
	fmt.Fprintf(w, "time for both edges of a window, median of %d, and its share of a window of one second on one core:\n", rounds)
	for _, name := range probe.Names() {
		if name == probe.NetfilterName || name == probe.MemoryName {
			continue // of nodes, and not inside a window (docs/nodes.md)
		}
		others := slices.DeleteFunc(probe.Names(), func(n string) bool { return n == name })
		p := probe.List(roots, others)[0]
		var took []time.Duration
		for range rounds {
			begin := time.Now()
			if err := p.Start(); err != nil {
				fmt.Fprintf(w, "  %-10s absent: %s\n", name, oneLine(err))
				break
			}
			// What it has to say of this machine is for doctor.
			_, _ = p.Stop()
			took = append(took, time.Since(begin))
		}
		if c, ok := p.(io.Closer); ok {
			if err := c.Close(); err != nil {
				return err
			}
		}
		if len(took) > 0 {
			slices.Sort(took)
			mid := took[len(took)/2]
			fmt.Fprintf(w, "  %-10s %v, %s\n", name, mid.Round(time.Microsecond), unit.Percent(mid.Seconds(), math.NaN()))
		}
	}
	return nil
}

// cells are the traffics, between nodes.
func cells() []result.Cell {
	var all []result.Cell
	for _, t := range []result.Cell{
		{Workload: "tcp_rr", MessageBytes: 64, Streams: 1},
		{Workload: "tcp_stream", MessageBytes: 9000, Streams: 1},
		{Workload: "udp_stream", MessageBytes: 64, Streams: 1},
	} {
		t.Network, t.Path, t.Placement, t.Link, t.Profile, t.MTU = result.HostNetwork, "host-to-host", result.InterHost, "unshaped", lab.DefaultProfile, 1500
		all = append(all, t)
	}
	return all
}

// kinds are the sets of probes that are compared with none.
func kinds() []struct {
	name    string
	without []string
} {
	return []struct {
		name    string
		without []string
	}{{"", probe.Names()}, {"counting", []string{probe.StacksName}}, {"counting and sampling", nil}}
}

// measure is one block: each traffic with each kind of probes, in random order.
func measure(ctx context.Context, l *lab.Lab, block int, window time.Duration) ([]result.Sample, error) {
	var out []result.Sample
	random := rand.New(rand.NewPCG(1, uint64(block)))
	all := cells()
	for _, i := range random.Perm(len(kinds()) * len(all)) {
		cell, kind := all[i/len(kinds())], kinds()[i%len(kinds())]
		s, err := sample(ctx, l, cell, window, kind.without)
		if err != nil {
			return nil, err
		}
		s.Block = block
		if kind.name != "" { // compared with the cell without, as a network is with host
			s.Cell.Network, s.Cell.Path = kind.name, result.PathPodToPod
		}
		out = append(out, s)
	}
	return out, nil
}

func sample(ctx context.Context, l *lab.Lab, cell result.Cell, window time.Duration, without []string) (result.Sample, error) {
	s := result.Sample{Schema: result.Schema, ID: "x", Attempt: 1, Cell: cell, Status: result.StatusOK, Started: time.Now()}
	wl, err := workload.Find(cell.Workload)
	if err != nil {
		return s, err
	}
	ends, err := l.Ends(ctx, cell)
	if err != nil {
		return s, err
	}
	params := workload.Params{Cell: cell, Warmup: 200 * time.Millisecond, Window: window, Token: fmt.Sprintf("%032x", rand.Uint64()), SharedClock: true}
	// This program and all that it started, both agents with their probes.
	own := probe.NewProcess(probe.Roots{Proc: "/proc", Sys: "/sys"})
	if err := own.Start(); err != nil {
		return s, err
	}
	server, client, err := traffic(ctx, wl, params, without, ends)
	if err != nil {
		return s, err
	}
	cpu, err := own.Stop()
	if err != nil {
		return s, err
	}
	m, err := wl.Parse(params, server, client)
	s.MeasuredSeconds, s.Metrics = &m.MeasuredSeconds, m.Metrics
	// Over the window, though it is of all that the sample took: what is done after
	// it counts, and must not make the time longer that it is divided by.
	cpu[probe.WindowSeconds] = m.MeasuredSeconds
	none := map[string]float64{probe.WindowSeconds: m.MeasuredSeconds, "process_cpu_seconds": 0, "ksoftirqd_cpu_seconds": cpu["ksoftirqd_cpu_seconds"]}
	s.Probes = map[string]map[string]float64{result.ServerNode: cpu, result.ClientNode: none} // cpu is of both
	s.Machines = map[string]string{result.ServerNode: "this", result.ClientNode: "this"}
	return s, err
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
