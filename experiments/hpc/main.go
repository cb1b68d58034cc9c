// Command hpc compares the native all_to_all with that of Open MPI on the same pods in one
// run, and Hockney's model with sizes that were held out of its fit. All are measured in
// blocks, in random order.
//
// No package has a program that times an alltoall alone, so a small one is compiled where
// mpicc.openmpi is installed (apt-get install libopenmpi-dev); the rest needs make tools.
//
//	go run ./experiments/hpc        # about four minutes; needs root
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
	"text/tabwriter"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// The goals of this project (docs/hpc.md).
const (
	goalRatio   = 1.05 // native all_to_all's time by Open MPI's
	goalHeldOut = 0.10 // a held-out size's distance from the model
)

// asked is what the flags ask for.
type asked struct {
	network        string
	ranks, perNode int
	blocks         int
	window         time.Duration
	cpus           string
	algorithm      string
	mpi            bool
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "agent" {
		os.Exit(agent.Serve(context.Background(), os.Stdin, os.Stdout))
	}
	if handled, exit := catalog.RunAsPlugin(os.Args[0], os.Environ()); handled {
		os.Exit(exit)
	}
	var a asked
	flag.StringVar(&a.network, "network", "bridge", "the pod network")
	flag.IntVar(&a.ranks, "ranks", 4, "ranks of each operation")
	flag.IntVar(&a.perNode, "ranks-per-node", 1, "how many of them are on one node")
	flag.IntVar(&a.blocks, "blocks", 12, "how often each is measured")
	flag.StringVar(&a.cpus, "cpus", result.CPUsApart, "where ranks run: apart, same or free")
	flag.StringVar(&a.algorithm, "algorithm", traffic.Pairwise, "of the native all_to_all: pairwise or linear")
	flag.BoolVar(&a.mpi, "mpi", true, "compare with Open MPI; false: Hockney's model only")
	seconds := flag.Float64("seconds", 0.5, "how long each measurement is")
	flag.Parse()
	a.window = time.Duration(*seconds * float64(time.Second))
	if a.cpus == "free" {
		a.cpus = result.CPUsFree
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, a)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "experiments/hpc:", err)
		os.Exit(1)
	}
}

// tripSizes are those of round trips, for the model, and jobSizes those of operations.
func tripSizes() []int { return []int{1, 256, 1024, 4096, 16384, 65536} }
func jobSizes() []int  { return []int{64, 1024, 16384, 65536} }

// measurement is what a block measures once.
type measurement struct {
	cell result.Cell
	mpi  bool
}

func measurements(a asked) []measurement {
	at := result.Cell{Network: a.network, Path: result.PathPodToPod, Placement: result.InterHost, Link: "unshaped", Profile: lab.DefaultProfile, MTU: 1500,
		CPUs: a.cpus, CongestionControl: "cubic"}
	var all []measurement
	for _, n := range tripSizes() {
		c := at
		c.Workload, c.MessageBytes, c.Streams = "tcp_rr", n, 1
		all = append(all, measurement{cell: c})
	}
	for _, n := range jobSizes() {
		c := at
		c.Workload, c.Algorithm, c.MessageBytes, c.Ranks, c.RanksPerNode = traffic.AllToAll, a.algorithm, n, a.ranks, a.perNode
		all = append(all, measurement{cell: c})
		if a.mpi {
			all = append(all, measurement{cell: c, mpi: true})
		}
	}
	return all
}

func run(ctx context.Context, w io.Writer, a asked) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runner := exec.NewRunner()
	defer runner.Close()
	program := ""
	if a.mpi {
		compiled, remove, err := compile(ctx, runner)
		if err != nil {
			return err
		}
		defer func() { _ = remove() }() // what stays, the next run removes
		program = compiled
	}
	l := lab.New(lab.Options{Runner: runner, Agent: []string{self, "agent"}, CNIPath: cni.SearchPath(""), Verb: "bench-hpc", SetsAlgorithm: workload.SetsCongestionControl})
	all := measurements(a)
	var cells []result.Cell
	for _, m := range all {
		if !m.mpi {
			cells = append(cells, m.cell)
		}
	}
	unsupported, err := l.Build(ctx, cells)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close(context.WithoutCancel(ctx))) }()
	for _, why := range unsupported {
		return errors.New(why)
	}
	var samples []result.Sample
	for block := 1; block <= a.blocks; block++ {
		for _, i := range rand.New(rand.NewPCG(5, uint64(block))).Perm(len(all)) {
			s, err := sample(ctx, l, all[i], a.window, program)
			if err != nil {
				return fmt.Errorf("block %d, %s: %w", block, all[i].cell.Traffic(), err)
			}
			s.Block = block
			samples = append(samples, s)
		}
		fmt.Fprintf(os.Stderr, "block %d of %d\n", block, a.blocks)
	}
	return report(w, a, stat.Analyse(samples, dataset.Options{}))
}

// sample measures once. What Open MPI took is recorded as the baseline of the native
// operation.
func sample(ctx context.Context, l *lab.Lab, m measurement, window time.Duration, program string) (result.Sample, error) {
	s := result.Sample{Schema: result.Schema, ID: "x", Attempt: 1, Cell: m.cell, Status: result.StatusOK, Started: time.Now()}
	p := workload.Params{Cell: m.cell, Warmup: window / 5, Window: window, Token: fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()), SharedClock: true}
	var got workload.Measurement
	var err error
	switch {
	case m.mpi:
		s.Cell = m.cell.Baseline()
		got, err = openMPI(ctx, l, p, program)
	case m.cell.HasManyEnds():
		got, err = native(ctx, l, p)
	default:
		got, err = roundTrips(ctx, l, p)
	}
	s.MeasuredSeconds, s.Metrics = &got.MeasuredSeconds, got.Metrics
	return s, err
}

// report prints both tables, and whether the goals are met.
func report(w io.Writer, a asked, analysis stat.Analysis) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if a.mpi {
		fmt.Fprintf(w, "native all_to_all (%s) and Open MPI's MPI_Alltoall, %d ranks on pods of %s, %d blocks of %v:\n", a.algorithm, a.ranks, a.network, a.blocks, a.window)
		fmt.Fprintln(t, "message\tnative\tOpen MPI\tnative by Open MPI\tgoal")
		for _, n := range jobSizes() {
			cell := measurements(a)[0].cell
			for _, m := range measurements(a) {
				if m.cell.Workload == traffic.AllToAll && m.cell.MessageBytes == n {
					cell = m.cell
				}
			}
			mine, ok := analysis.Cell(cell)
			theirs, ok2 := analysis.Cell(cell.Baseline())
			if !ok || !ok2 || mine.Efficiency == nil {
				return fmt.Errorf("%d B was not measured", n)
			}
			ratio, low, high := inverse(*mine.Efficiency)
			fmt.Fprintf(t, "%d B\t%s\t%s\t%.3f [%.3f, %.3f]\t%s\n", n, seconds(mine), seconds(theirs), ratio, low, high, verdict(ratio, low, high, goalRatio))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "\nHockney's model, each size predicted from the others:")
	fmt.Fprintln(t, "size\ttime of a message\tmeasured by predicted\tgoal")
	for _, h := range analysis.Hockneys {
		for i, s := range h.Sizes {
			if s.HeldOut == nil {
				continue
			}
			interval := "no interval"
			if low, high, ok := s.HeldOut.Interval(); ok {
				interval = fmt.Sprintf("[%.3f, %.3f]", low, high)
			}
			what := "outside of the others: not judged"
			if off := math.Abs(s.HeldOut.Value - 1); i > 0 && i < len(h.Sizes)-1 {
				what = "within 10 %: met"
				if off > goalHeldOut {
					what = "within 10 %: missed"
				}
			}
			fmt.Fprintf(t, "%d B\t%s\t%.3f %s\t%s\n", s.MessageBytes, unit.Value(s.Measured.Value, "s"), s.HeldOut.Value, interval, what)
		}
	}
	return t.Flush()
}

// inverse is 1 by an estimate, with its bounds.
func inverse(e estimate.Estimate) (value, low, high float64) {
	l, h, ok := e.Interval()
	if !ok {
		return 1 / e.Value, math.NaN(), math.NaN()
	}
	return 1 / e.Value, 1 / h, 1 / l
}

func verdict(ratio, low, high, goal float64) string {
	switch {
	case math.IsNaN(low):
		return fmt.Sprintf("at most %g: not judged, as one block has no interval", goal)
	case high <= goal:
		return fmt.Sprintf("at most %g: met", goal)
	case low > goal:
		return fmt.Sprintf("at most %g: missed", goal)
	}
	return fmt.Sprintf("at most %g: undecided (%.3f)", goal, ratio)
}

func seconds(c summary.Cell) string {
	if c.Mean == nil {
		return "not known"
	}
	return unit.Value(c.Mean.Value, "s")
}
