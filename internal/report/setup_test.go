package report

import (
	"math"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// podCells are pods that were added: on one network every step was seen, on the
// other none inside the ADD.
func podCells() []stat.CellSummary {
	var out []stat.CellSummary
	for i, network := range []string{"bridge", "macvlan"} {
		c := cellOf(network, "pod_setup", 0)
		c.Streams, c.Pods = 0, 10
		about := func(v float64) stat.Estimate { return estimated(v*(1+0.1*float64(i)), 0.02, 4, stat.Median) }
		s := stat.CellSummary{Cell: c, OK: 4, Primary: "pod_ready_mean_seconds", NoEfficiency: "the campaign has no host cell", Absolute: map[string]stat.Estimate{
			"pod_ready_mean_seconds": about(0.24), "pod_added_mean_seconds": about(0.2), "pod_answer_mean_seconds": about(0.04), "pod_removed_mean_seconds": about(0.11)}}
		s.Shape.PluginSeconds = map[string]map[string]stat.Estimate{"ADD": {network: about(0.14), "portmap": about(0.05)}, "DEL": {network: about(0.1)}}
		if i == 0 {
			s.Absolute["pod_policy_mean_seconds"] = about(0.03)
			for k, name := range addSteps() {
				s.Absolute[name] = about(0.02 * float64(k+1))
			}
		}
		out = append(out, s)
	}
	return out
}

// TestSetup: where every step was seen they are drawn one by one, else the ADD
// whole; every plugin is in the chart of its verb.
func TestSetup(t *testing.T) {
	charts := map[string]*chart{}
	for _, b := range setup(newDocument(drawn())) {
		if b.Chart != nil {
			charts[b.Chart.Title] = b.Chart
		}
	}
	want := map[string]map[string][2]float64{ // bridge, macvlan
		"until a pod answers, by step": {
			"until its device is there": {0.02, 0}, "then until its address": {0.04, 0}, "then until its routes": {0.06, 0}, "then until the plugins end": {0.08, 0},
			"CNI ADD, not split into steps": {0, 0.22}, "then until the agent is through": {0.03, 0}, "then until it answers": {0.04, 0.044},
		},
		"CNI ADD by plugin": {"bridge": {0.14, 0}, "macvlan": {0, 0.154}, "portmap": {0.05, 0.055}},
		"CNI DEL by plugin": {"bridge": {0.1, 0}, "macvlan": {0, 0.11}},
	}
	if len(charts) != len(want) {
		t.Fatalf("%d charts", len(charts))
	}
	c := cellOf("", "pod_setup", 0)
	c.Streams, c.Pods = 0, 10
	for title, parts := range want {
		got := charts[c.Traffic()+": "+title]
		if got == nil || len(got.Series) != len(parts) || !slices.EqualFunc(got.Categories, []string{"bridge", "macvlan"}, func(c category, n string) bool { return c.Name == n }) {
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
	if c := setup(newDocument(normal()))[0].Chart; c == nil || c.Missing == "" {
		t.Error("a campaign without pod_setup does not say so")
	}
	if blocks := setup(newDocument(Input{Analysis: stat.Analysis{Cells: []stat.CellSummary{{Cell: result.Cell{Network: "bridge", Workload: "pod_setup"}, Failed: 1}}}})); blocks[0].Chart == nil || blocks[0].Chart.Missing == "" {
		t.Error("failed pods are drawn")
	}
}
