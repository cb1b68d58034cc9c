// Command orders compares the order in which a recorded run has its networks with the order
// by counted instructions (docs/instructions.md), for each pair of networks whose counts
// differ by more than 5 %. It lists the pairs in the other order, with the ratio of their
// rates inside blocks.
//
//	cnibench run experiments/orders/campaign.yaml && go run ./experiments/orders results/latest
//
// Networks whose packets a program carries, because the kernel lacks the switch that was
// counted, are left out and named.
package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/cnibench/cnibench/experiments/recorded"
	"github.com/cnibench/cnibench/internal/network/instructions"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

const (
	// apart is how much the counts of a pair must differ.
	apart = 0.05
	// confidence is that of the ratios.
	confidence = 0.95
)

func main() { os.Exit(recorded.Main("orders", run)) }

func run(w io.Writer, dir string) error {
	rec, err := result.Describe(dir)
	if err != nil {
		return err
	}
	collector, cells, err := recorded.Analysed(dir)
	if err != nil {
		return err
	}
	var other []string
	for c := range cells {
		if rec.Environment != nil && rec.Environment.Networks[c.Network].InUserSpace() {
			if !slices.Contains(other, c.Network) {
				other = append(other, c.Network)
			}
			delete(cells, c)
		}
	}
	tables := tablesOf(collector, cells)
	if len(tables) == 0 {
		return errors.New("no two networks of the run were counted: measure experiments/orders/campaign.yaml")
	}
	write(w, tables)
	slices.Sort(other)
	for _, network := range other {
		fmt.Fprintf(w, "\n%s is left out: its switch ran in user space, and the kernel's was counted.\n", network)
	}
	return nil
}

// pair is two networks whose counts differ: by count, fewer comes first.
type pair struct {
	fewer, more result.Cell
	// counts is more ÷ fewer in instructions; rate is fewer ÷ more in what gets through,
	// inside blocks. Below 1 it is in the other order.
	counts float64
	rate   estimate.Moments
}

// table is the pairs of one traffic.
type table struct {
	traffic string
	pairs   []pair
}

// tablesOf has a table for each traffic whose networks were counted, sorted by its name.
func tablesOf(collector *stat.Collector, cells map[result.Cell]bool) []table {
	byTraffic := map[string][]result.Cell{}
	for c := range cells {
		if _, ok := instructions.Of(c.Network, c.Workload, c.Placement); ok {
			byTraffic[c.Traffic()] = append(byTraffic[c.Traffic()], c)
		}
	}
	var out []table
	for traffic, list := range byTraffic {
		slices.SortFunc(list, func(a, b result.Cell) int { return a.Compare(b) })
		if pairs := pairsOf(collector, list); len(pairs) > 0 {
			out = append(out, table{traffic, pairs})
		}
	}
	slices.SortFunc(out, func(a, b table) int { return len(a.traffic) - len(b.traffic) })
	return out
}

func pairsOf(collector *stat.Collector, cells []result.Cell) []pair {
	var out []pair
	for _, a := range cells {
		for _, b := range cells {
			fewer, _ := instructions.Of(a.Network, a.Workload, a.Placement)
			more, _ := instructions.Of(b.Network, b.Workload, b.Placement)
			if more <= fewer*(1+apart) {
				continue
			}
			metric := "packets_per_second"
			if a.Workload == "tcp_rr" {
				metric = "transactions_per_second"
			}
			if m, _ := collector.Contrast(metric, []result.Cell{a}, []result.Cell{b}); m.N >= 2 {
				out = append(out, pair{fewer: a, more: b, counts: more / fewer, rate: m})
			}
		}
	}
	return out
}

// write prints how many pairs are in the other order, then each of them.
func write(w io.Writer, tables []table) {
	fmt.Fprintln(w, "| traffic | pairs | in the other order | shown to be |")
	fmt.Fprintln(w, "|---|---:|---:|---:|")
	for _, t := range tables {
		other, shown := 0, 0
		for _, p := range t.pairs {
			if p.rate.Mean < 0 {
				other++
			}
			if _, high, ok := p.rate.Interval(confidence); ok && high < 0 {
				shown++
			}
		}
		fmt.Fprintf(w, "| %s | %d | %d | %d |\n", t.traffic, len(t.pairs), other, shown)
	}
	fmt.Fprintln(w, "\n| traffic | fewer instructions | more instructions | counts: more ÷ fewer | rate: fewer ÷ more |")
	fmt.Fprintln(w, "|---|---|---|---:|---:|")
	for _, t := range tables {
		for _, p := range t.pairs {
			if p.rate.Mean < 0 {
				low, high, _ := p.rate.Interval(confidence)
				fmt.Fprintf(w, "| %s | %s | %s | %.2f | %.3f [%.3f, %.3f] |\n", t.traffic, p.fewer.Network, p.more.Network, p.counts,
					math.Exp(p.rate.Mean), math.Exp(low), math.Exp(high))
			}
		}
	}
}
