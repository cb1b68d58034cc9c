package summary_test

import (
	"fmt"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

// TestPluginSeconds: the median over blocks, by verb and plugin; a block without
// one counts in none.
func TestPluginSeconds(t *testing.T) {
	var samples []result.Sample
	for block := 1; block <= 7; block++ {
		one := 1.0
		s := result.Sample{Schema: 1, ID: fmt.Sprint(block), Block: block, Attempt: 1, Status: result.StatusOK, MeasuredSeconds: &one,
			Cell: result.Cell{Network: "bridge", Workload: "pod_setup"}, Metrics: map[string]float64{"pod_ready_mean_seconds": 1},
			PluginSeconds: map[string]map[string]float64{"ADD": {"bridge": float64(block)}}}
		if block%2 == 0 {
			s.PluginSeconds["DEL"] = map[string]float64{"bridge": 10 * float64(block)}
		}
		samples = append(samples, s)
	}
	got := stat.Analyse(samples, dataset.Options{}).Cells[0].Shape.PluginSeconds
	if len(got) != 2 || got["ADD"]["bridge"].Value != 4 || got["ADD"]["bridge"].N != 7 || got["DEL"]["bridge"].Value != 40 || got["DEL"]["bridge"].N != 3 {
		t.Errorf("got %+v", got)
	}
}
