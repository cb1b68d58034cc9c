package main

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

// TestRows: a pair is divided inside blocks, traffic and CPU time each, and a network
// without its counterpart has no row.
func TestRows(t *testing.T) {
	collector, cells := stat.NewCollector(dataset.Options{}), map[result.Cell]bool{}
	add := func(network string, rate, cpu float64) {
		cell := result.Cell{Network: network, Path: result.PathPodToPod, Placement: result.InterHost, Workload: "tcp_rr", MessageBytes: 64}
		cells[cell] = true
		for block := 1; block <= 6; block++ {
			speed, seconds := 1+0.3*float64(block%2), 1.0 // of the machine, in this block
			collector.Add(&result.Sample{
				Schema: result.Schema, ID: network, Block: block, Cell: cell, Status: result.StatusOK, MeasuredSeconds: &seconds,
				Metrics: map[string]float64{
					"transactions_per_second": rate * speed * (1 + 0.001*float64(block)), "transactions": rate * speed * (1 + 0.001*float64(block)),
					"client_cpu_seconds": cpu / 2, "server_cpu_seconds": cpu / 2,
				},
			})
		}
	}
	add("macvlan", 1000, 0.5)
	add("docker/macvlan", 1010, 0.5)
	add("podman/macvlan", 800, 0.5)
	add("docker/bridge", 1000, 0.5)
	collector.Analyse()
	rows := strings.Join(rowsOf(collector, cells), "\n")
	for _, want := range []string{"`macvlan` (real) | `docker/macvlan` (real) | inter-host | tcp_rr 64 B | 1.010 [1.010, 1.010] | agree |", "| 0.800 [0.800, 0.800] | differ |"} {
		if !strings.Contains(rows, want) {
			t.Errorf("no %q in\n%s", want, rows)
		}
	}
	if strings.Contains(rows, "docker/bridge") {
		t.Errorf("a pair with one side:\n%s", rows)
	}
}
