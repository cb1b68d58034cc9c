// Command traffic compares the native engine with iperf3, netperf and
// sockperf, in alternation on one path (veth, bridge, veth between two network
// namespaces), each through the same agents and parsers that a campaign uses.
// Nothing else is measured meanwhile: a campaign's probes would take their time
// from whichever tool runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/exec"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "agent" {
		os.Exit(agent.Serve(context.Background(), os.Stdin, os.Stdout))
	}
	rounds := flag.Int("rounds", 20, "how often each tool is measured in each comparison")
	seconds := flag.Float64("seconds", 1, "how long each measurement is")
	only := flag.String("only", "", "only comparisons whose name holds this")
	markdown := flag.String("markdown", "", "write the table as Markdown to this file, between its markers")
	congestion := flag.String("congestion-control", "reno", "TCP's congestion control at both ends, for every tool; \"\": as the machine has it")
	cpus := flag.String("cpus", "", "where both ends of every tool run: same, apart or free; \"\": apart for streams and datagrams, same for what waits for answers")
	own := flag.Bool("userspace", false, "instead of comparing, count the instructions that the engine itself executes for each packet or transaction")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, options{*rounds, *seconds, *only, *markdown, *congestion, *cpus, *own})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "experiments/traffic:", err)
		os.Exit(1)
	}
}

type options struct {
	rounds   int
	seconds  float64
	only     string
	markdown string
	// congestion is TCP's congestion control at both ends. A kernel that paces
	// (bbr without the qdisc fq) arms a timer for each small segment, and now and
	// then for many at once: then the figures are of its mood and not of tools.
	congestion string
	// cpus replaces where each comparison's ends run; "" keeps it.
	cpus string
	// userspace counts the engine's own instructions instead.
	userspace bool
}

func run(ctx context.Context, w io.Writer, o options) (err error) {
	runner := exec.NewRunner()
	defer runner.Close()
	if o.userspace {
		return userspace(ctx, w, runner, o.congestion)
	}
	p, err := buildPath(ctx, runner, o.congestion)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	var all []outcome
	for _, c := range comparisons() {
		if !strings.Contains(c.name, o.only) {
			continue
		}
		got, err := c.measure(ctx, w, p, o)
		if err != nil {
			return err
		}
		all = append(all, got)
	}
	fmt.Fprintln(w)
	table(w, all)
	if o.markdown != "" {
		return writeMarkdown(o.markdown, all, o)
	}
	return nil
}

// measure runs a comparison: in each round every contender once, in random order.
func (c comparison) measure(ctx context.Context, w io.Writer, p *path, o options) (outcome, error) {
	if o.cpus != "" {
		c.cpus = o.cpus
	}
	out := outcome{comparison: c, values: make([][]float64, len(c.contenders)), loss: make([][]float64, len(c.contenders)), failures: make([]int, len(c.contenders))}
	random := rand.New(rand.NewPCG(1, uint64(len(c.name))))
	length := time.Duration(o.seconds * float64(time.Second))
	for round := range o.rounds {
		values := make([]float64, len(c.contenders))
		loss := make([]float64, len(c.contenders))
		whole := true
		for _, i := range random.Perm(len(c.contenders)) {
			cell := c.contenders[i].cell
			cell.CPUs = c.cpus
			m, err := p.sample(ctx, cell, length)
			if ctx.Err() != nil {
				return out, ctx.Err()
			}
			v, ok := m.Metrics[c.metric]
			if err == nil && !ok {
				err = fmt.Errorf("no %s", c.metric)
			}
			if err != nil {
				// A block without one of its samples compares nothing.
				fmt.Fprintf(w, "%s, round %d, %s: failed: %v\n", c.name, round+1, c.contenders[i].label, err)
				out.failures[i]++
				whole = false
				continue
			}
			values[i], loss[i] = v*c.contenders[i].scale, m.Metrics["loss_ratio"]
			for _, warning := range m.Warnings {
				fmt.Fprintf(w, "%s, round %d, %s: %s\n", c.name, round+1, c.contenders[i].label, warning)
			}
		}
		if !whole {
			continue
		}
		for i, v := range values {
			out.values[i] = append(out.values[i], v)
			out.loss[i] = append(out.loss[i], loss[i])
		}
		fmt.Fprintf(w, "%-18s round %2d", c.name, round+1)
		for i, k := range c.contenders {
			fmt.Fprintf(w, "  %s %s", k.label, c.show(values[i]))
		}
		fmt.Fprintln(w)
	}
	return out, nil
}
