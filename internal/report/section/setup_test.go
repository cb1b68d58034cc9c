package section

import (
	"math"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// TestSetup: where every step was seen they are drawn one by one, else the ADD
// whole; every plugin is in the chart of its verb.
func TestSetup(t *testing.T) {
	charts := map[string]*page.Chart{}
	for _, b := range setup(report.New(reporttest.Drawn())) {
		if b.Chart != nil {
			charts[b.Chart.Title] = b.Chart
		}
	}
	want := map[string]map[string][2]float64{ // bridge, macvlan
		"until a pod answers, by step": {
			"until its device exists": {0.02, 0}, "then until its address": {0.04, 0}, "then until its routes": {0.06, 0}, "then until the plugins end": {0.08, 0},
			"CNI ADD, not split into steps": {0, 0.22}, "then until the agent is through": {0.03, 0}, "then until it answers": {0.04, 0.044},
		},
		"CNI ADD by plugin": {"bridge": {0.14, 0}, "macvlan": {0, 0.154}, "portmap": {0.05, 0.055}},
		"CNI DEL by plugin": {"bridge": {0.1, 0}, "macvlan": {0, 0.11}},
	}
	if len(charts) != len(want) {
		t.Fatalf("%d charts", len(charts))
	}
	c := reporttest.CellOf("", "pod_setup", 0)
	c.Streams, c.Pods = 0, 10
	for title, parts := range want {
		got := charts[c.Traffic()+": "+title]
		if got == nil || len(got.Series) != len(parts) || !slices.EqualFunc(got.Categories, []string{"bridge", "macvlan"}, func(c page.Category, n string) bool { return c.Name == n }) {
			t.Fatalf("%s is %+v", title, got)
		}
		for _, s := range got.Series {
			for i, v := range parts[s.Name] {
				if absent := math.IsNaN(s.Y[i]); absent != (v == 0) || !absent && math.Abs(s.Y[i]-v) > 1e-9 {
					t.Errorf("%s, %s: %v, want %v", title, s.Name, s.Y, parts[s.Name])
				}
			}
		}
	}
	if c := setup(report.New(reporttest.Normal()))[0].Chart; c == nil || c.Missing == "" {
		t.Error("a campaign without pod_setup does not say so")
	}
	if blocks := setup(report.New(report.Input{Analysis: stat.Analysis{Cells: []summary.Cell{{Cell: result.Cell{Network: "bridge", Workload: "pod_setup"}, Failed: 1}}}})); blocks[0].Chart == nil || blocks[0].Chart.Missing == "" {
		t.Error("failed pods are drawn")
	}
}
