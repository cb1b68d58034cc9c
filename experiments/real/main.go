// Command real compares the networks that cnibench rebuilt with the real ones, from a
// recorded run of examples/real.yaml: real ÷ model inside blocks, with intervals, in the
// traffic that gets through and in the CPU time of both ends' own processes for it.
//
//	cnibench run examples/real.yaml && go run ./experiments/real results/latest
package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/cnibench/cnibench/experiments/recorded"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

const (
	confidence = 0.95
	// margin is the distance that the document explains, if a pair has it.
	margin = 0.05
	// own is what the CPU time of the ends alone begins with: it is read in the slices.
	own = "own_"
)

// pair is a model and a real network that carries packets in the same way.
type pair struct{ model, real string }

// pairs are all of which both can be in one lab. The last three are not models of each
// other: two real networks that should differ in nothing but who made their devices.
func pairs() []pair {
	return []pair{
		{"docker/bridge", "docker/bridge-real"},
		{"docker/overlay", "docker/overlay-real"},
		{"macvlan", "docker/macvlan"},
		{"macvlan", "podman/macvlan"},
		{"bridge", "podman/bridge"},
	}
}

func main() { os.Exit(recorded.Main("real", run)) }

func run(w io.Writer, dir string) error {
	collector, cells, err := recorded.Analysed(dir)
	if err != nil {
		return err
	}
	rows := rowsOf(collector, cells)
	if len(rows) == 0 {
		return errors.New("the run has no pair of a model and its real network: measure examples/real.yaml")
	}
	fmt.Fprintln(w, "| model | real | path | traffic | traffic: real ÷ model | | CPU time: real ÷ model | |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | ---: | --- | ---: | --- |")
	for _, r := range rows {
		fmt.Fprintln(w, r)
	}
	return nil
}

// rowsOf are the lines of the table, in the order of pairs, then of cells.
func rowsOf(collector *stat.Collector, cells map[result.Cell]bool) []string {
	var rows []string
	for _, p := range pairs() {
		var models []result.Cell
		for c := range cells {
			if c.Network == p.model {
				models = append(models, c)
			}
		}
		slices.SortFunc(models, result.Cell.Compare)
		for _, model := range models {
			real := model
			real.Network = p.real
			if !cells[real] {
				continue
			}
			bits, _ := collector.Contrast("throughput_bits_per_second", []result.Cell{real}, []result.Cell{model})
			transactions, _ := collector.Contrast("transactions_per_second", []result.Cell{real}, []result.Cell{model})
			if bits.N+transactions.N == 0 {
				continue // one of them is unsupported on this path
			}
			rate, cost := "throughput_bits_per_second", own+dataset.CPUPerByte
			if collector.Values("transactions_per_second", model).N > 0 {
				rate, cost = "transactions_per_second", own+dataset.CPUPerTransaction
			}
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", named(p.model), named(p.real), model.Placement, model.Traffic(),
				ratio(collector, rate, real, model), ratio(collector, cost, real, model)))
		}
	}
	return rows
}

// named is a network with its kind.
func named(network string) string {
	for _, n := range catalog.List() {
		if n.Name == network {
			return fmt.Sprintf("`%s` (%s)", network, n.Kind)
		}
	}
	return "`" + network + "`"
}

// ratio is one quotient with its interval, and whether it is one within the margin.
func ratio(k *stat.Collector, metric string, over, under result.Cell) string {
	m, _ := k.Contrast(metric, []result.Cell{over}, []result.Cell{under})
	low, high, ok := m.Interval(confidence)
	if !ok {
		return "– | not measured"
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f] | %s", math.Exp(m.Mean), math.Exp(low), math.Exp(high), verdict(low, high))
}

// verdict compares an interval of a log with the margin.
func verdict(low, high float64) string {
	least, most := math.Log(1-margin), math.Log(1+margin)
	switch {
	case low >= least && high <= most:
		return "agree"
	case high < least || low > most:
		return "differ"
	}
	return "undecided"
}
