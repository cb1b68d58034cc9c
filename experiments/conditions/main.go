// Command conditions measures the same cells under several conditions of the
// experiment, one after the other: as the machine is, with each remedy alone, and
// with all. For each it prints how long a campaign would take until every
// efficiency is known to ± 2 %.
//
//	go run ./experiments/conditions        # about six minutes; needs root and a quiet machine
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/scratch"
	"github.com/cnibench/cnibench/internal/stat"
)

// target is the relative half-width that is asked for.
const target = 0.02

// condition is a way to measure.
type condition struct {
	name string
	// workload are the keys of a workload except its name and size, sampling those
	// of sampling except its budget.
	workload, sampling string
}

// long is one long window for each sample, as before there were slices.
const long = "seconds: 1, warmup_seconds: 0.2, slice_seconds: 0, explain_seconds: 0"

// sliced is the default without explaining windows.
const sliced = "explain_seconds: 0"

func conditions() []condition {
	return []condition{
		{"as the machine is, one long window", "cpus: [free], congestion_control: [as-is]", long},
		{"cubic alone", "cpus: [free], congestion_control: [cubic]", long},
		{"one CPU alone", "cpus: [same], congestion_control: [as-is]", long},
		{"slices alone", "cpus: [free], congestion_control: [as-is]", sliced},
		{"all three", "cpus: [same], congestion_control: [cubic]", sliced},
	}
}

// workloads are measured in campaigns of their own, so that each has its own time.
func workloads() []string {
	return []string{"tcp_rr, message_bytes: [64]", "tcp_stream, message_bytes: [1472]"}
}

func main() {
	seconds := flag.Int("seconds", 30, "time of each campaign, seconds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *seconds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conditions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, seconds int) (err error) {
	dir, remove, err := scratch.Fresh("cnb-conditions-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r := exec.NewRunner()
	defer r.Close()
	program := filepath.Join(dir, "cnibench")
	if _, err := r.Run(ctx, exec.Cmd{Argv: []string{"go", "build", "-o", program, "."}}); err != nil {
		return err
	}
	fmt.Fprintln(w, "| workload | conditions | blocks | efficiencies (bridge, flannel/vxlan) | widest interval | to ± 2 % |")
	fmt.Fprintln(w, "|---|---|---:|---|---:|---:|")
	for i, load := range workloads() {
		for j, c := range conditions() {
			out := filepath.Join(dir, fmt.Sprintf("%d-%d", i, j))
			if err := one(ctx, w, r, program, out, load, c, seconds); err != nil {
				return err
			}
		}
	}
	return nil
}

// one runs a campaign and prints its line.
func one(ctx context.Context, w io.Writer, r *exec.Runner, program, out, load string, c condition, seconds int) error {
	file := out + ".yaml"
	text := fmt.Sprintf("name: conditions\nnetworks: [host, bridge, flannel/vxlan]\nworkloads: [{name: %s, %s}]\nprobes: [cpu]\nsampling: {%s, min_blocks: 3, max_blocks: 1000, max_seconds: %d, target_relative_halfwidth: 0.0001}\n", load, c.workload, c.sampling, seconds)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	res, err := r.Run(ctx, exec.Cmd{Argv: []string{program, "run", file, "--json", "--out", out}})
	if err != nil {
		return err
	}
	var report struct {
		Analysis stat.Analysis `json:"analysis"`
	}
	if err := json.Unmarshal(res.Stdout, &report); err != nil {
		return err
	}
	widest, blocks := 0.0, 0
	var efficiencies []string
	for _, s := range report.Analysis.Cells {
		if s.Efficiency == nil {
			continue
		}
		h, ok := s.Efficiency.RelativeHalfwidth()
		if !ok {
			return fmt.Errorf("%s has no interval after %d s", s.Cell.Network, seconds)
		}
		widest, blocks = max(widest, h), max(blocks, s.OK)
		efficiencies = append(efficiencies, fmt.Sprintf("%.1f %% ± %.1f", 100*s.Efficiency.Value, 100*s.Efficiency.Value*h))
	}
	slices.Sort(efficiencies)
	slices.Reverse(efficiencies)
	// The half-width falls with the square root of the time.
	need := time.Duration(float64(seconds) * math.Pow(widest/target, 2) * float64(time.Second))
	fmt.Fprintf(w, "| %s | %s | %d | %s, %s | ± %.1f %% | %.3g s |\n", strings.SplitN(load, ",", 2)[0], c.name, blocks, efficiencies[0], efficiencies[1], 100*widest, need.Seconds())
	return nil
}
