// Command variance says what the noise of a recorded run consists of: for each cell, what
// slices of one connection differ by, what blocks differ by, and what is left when a cell
// is divided by its baseline inside blocks.
//
//	go run ./experiments/variance results/latest
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/cnibench/cnibench/experiments/recorded"
	"github.com/cnibench/cnibench/internal/result"
)

func main() { os.Exit(recorded.Main("variance", run)) }

// block is one cell in one block: the mean of its slices, the variance of one slice
// around it, both of logs, and their number.
type block struct {
	mean, slice float64
	n           int
}

func run(w io.Writer, dir string) error {
	cells := map[result.Cell]map[int]block{}
	if _, err := result.Each(dir, func(s *result.Sample) {
		if s.Status != result.StatusOK || s.Slices == nil || len(s.Slices.PerSecond) < 2 {
			return
		}
		if cells[s.Cell] == nil {
			cells[s.Cell] = map[int]block{}
		}
		cells[s.Cell][s.Block] = blockOf(s.Slices.PerSecond)
	}); err != nil {
		return err
	}
	var order []result.Cell
	for c := range cells {
		if _, ok := cells[c.Baseline()]; ok && !c.IsBaseline() {
			order = append(order, c)
		}
	}
	if len(order) == 0 {
		return errors.New("no cell of the run was measured in slices beside its baseline")
	}
	slices.SortFunc(order, func(a, b result.Cell) int { return cmp.Or(cmp.Compare(a.Traffic(), b.Traffic()), a.Compare(b)) })
	fmt.Fprintln(w, "| traffic | network | blocks | slices of one connection | the machine, between blocks | connections, inside a block | one block's efficiency |")
	fmt.Fprintln(w, "|---|---|---:|---:|---:|---:|---:|")
	for _, c := range order {
		printCell(w, c, cells[c], cells[c.Baseline()])
	}
	return nil
}

func blockOf(perSecond []float64) block {
	b := block{n: len(perSecond)}
	for _, v := range perSecond {
		b.mean += math.Log(v) / float64(b.n)
	}
	for _, v := range perSecond {
		d := math.Log(v) - b.mean
		b.slice += d * d / float64(b.n-1)
	}
	return b
}

// printCell prints standard deviations as shares. Two connections differ, the cell's and
// its baseline's, so a single one has half of the variance that slices do not explain.
func printCell(w io.Writer, c result.Cell, own, base map[int]block) {
	var ratios, machine []float64
	var slice, explained float64
	for n, a := range own {
		b, ok := base[n]
		if !ok {
			continue
		}
		ratios, machine = append(ratios, a.mean-b.mean), append(machine, b.mean)
		slice += a.slice
		explained += a.slice/float64(a.n) + b.slice/float64(b.n)
	}
	if len(ratios) < 2 {
		return
	}
	blocks := float64(len(ratios))
	ratio := variance(ratios)
	fmt.Fprintf(w, "| %s | %s | %d | %s | %s | %s | %s |\n", c.Traffic(), c.Network, len(ratios), share(slice/blocks),
		share(variance(machine)), share(max(0, ratio-explained/blocks)/2), share(ratio))
}

func variance(xs []float64) float64 {
	var mean, ss float64
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	for _, x := range xs {
		ss += (x - mean) * (x - mean)
	}
	return ss / float64(len(xs)-1)
}

func share(variance float64) string { return fmt.Sprintf("%.1f %%", 100*math.Sqrt(variance)) }
