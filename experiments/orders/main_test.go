package main

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

// TestOrders: a pair whose counts differ by more than 5 % is compared; one that is as the
// counts say is only counted, one in the other order is listed with its ratio.
func TestOrders(t *testing.T) {
	collector, cells := stat.NewCollector(dataset.Options{}), map[result.Cell]bool{}
	add := func(network string, rate float64) {
		cell := result.Cell{Network: network, Path: result.PathPodToPod, Placement: result.InterHost, Workload: "tcp_rr", MessageBytes: 64}
		cells[cell] = true
		for block := 1; block <= 6; block++ {
			seconds := 1.0
			collector.Add(&result.Sample{
				Schema: result.Schema, ID: network, Block: block, Cell: cell, Status: result.StatusOK, MeasuredSeconds: &seconds,
				Metrics: map[string]float64{"transactions_per_second": rate * (1 + 0.3*float64(block%2))},
			})
		}
	}
	add("macvlan", 1000)
	add("bridge", 700)        // 1.58 times the instructions of macvlan
	add("flannel/vxlan", 750) // 1.59 times those of bridge, and faster
	add("spiderpool/macvlan", 990)
	collector.Analyse()
	tables := tablesOf(collector, cells)
	if len(tables) != 1 || len(tables[0].pairs) != 5 {
		t.Fatalf("%d tables, want one of 5 pairs: %+v", len(tables), tables)
	}
	var out strings.Builder
	write(&out, tables)
	for _, want := range []string{"| tcp_rr 64 B | 5 | 1 | 1 |", "| tcp_rr 64 B | bridge | flannel/vxlan | 1.59 | 0.933 [0.933, 0.933] |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "macvlan |") {
		t.Errorf("a pair in the expected order is listed:\n%s", out.String())
	}
}
