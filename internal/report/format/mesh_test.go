package format

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

// meshed is a campaign on n nodes in which one pair is slow.
func meshed(n int) report.Input {
	var samples []result.Sample
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("node-%02d", i))
	}
	for block := range 5 {
		for i, pair := range campaign.EveryPair(names) {
			for _, network := range []string{"host", "bridge"} {
				c := reporttest.CellOf(network, "tcp_stream", 1472)
				c.ClientNode, c.ServerNode = pair[0], pair[1]
				v := 9.4e9 * (1 + 0.001*float64((i+block)%5))
				if network == "bridge" && pair == [2]string{"node-02", "node-00"} {
					v /= 3
				}
				seconds := 1.0
				samples = append(samples, result.Sample{ID: fmt.Sprint(block, i, network), Block: block + 1, Attempt: 1, Cell: c, Status: result.StatusOK,
					MeasuredSeconds: &seconds, Metrics: map[string]float64{"throughput_bits_per_second": v}})
			}
		}
	}
	return report.Input{Campaign: campaign.Campaign{Name: "mesh"}, Analysis: stat.Analyse(samples, dataset.Options{})}
}

// TestSlowPair: every format names the pair that is slow, and the tables have each
// pair in its place.
func TestSlowPair(t *testing.T) {
	for _, n := range []int{4, 41} {
		in := meshed(n)
		if len(in.Analysis.Rankings)+len(in.Analysis.Goals) > 0 || len(in.Analysis.Meshes) != 2 {
			t.Fatalf("%d meshes", len(in.Analysis.Meshes))
		}
		worst := in.Analysis.Meshes[0].Pairs[0]
		if worst.Client != "node-02" || worst.Server != "node-00" || worst.OfMedian > 0.34 || worst.OfMedian < 0.33 || worst.Efficiency == nil {
			t.Errorf("%+v", worst)
		}
		for _, m := range in.Analysis.Meshes {
			for _, p := range m.Pairs {
				if of := p.Client + p.Server + m.Cell.Network; p.Slow != (of == "node-02node-00bridge") {
					t.Errorf("%s is slow: %v", of, p.Slow)
				}
			}
		}
		for _, format := range []string{"terminal", "markdown", "html"} {
			out := strings.Join(strings.Fields(render(t, format, in, screen.Options{Unicode: true})), " ")
			if !strings.Contains(out, "Slower than the median: node-02 to node-00 3.1") {
				t.Errorf("%d nodes: %s does not name the pair:\n%.3000s", n, format, out)
			}
		}
		if short := render(t, "terminal", in, screen.Options{}); strings.Count(short, "\n") > shortLines {
			t.Errorf("the short form has more than %d lines:\n%s", shortLines, short)
		}
	}
	long := render(t, "terminal", meshed(4), screen.Options{Long: true})
	if !strings.Contains(strings.Join(strings.Fields(long), " "), `from \ to node-00 node-01 node-02 node-03`) {
		t.Errorf("no table of all pairs:\n%s", long)
	}
	row := ""
	for line := range strings.Lines(long) {
		if strings.HasPrefix(line, "node-02") && row == "" {
			row = line
		}
	}
	if fields := strings.Fields(row); len(fields) < 3 || !strings.HasPrefix(fields[1], "3.1") {
		t.Errorf("the first row of node-02 is %q in\n%s", row, long)
	}
	if csv := render(t, "csv", meshed(4), screen.Options{}); !strings.Contains(csv, "bridge,,node-02,node-00,pod-to-pod") {
		t.Errorf("the CSV has no pair:\n%.2000s", csv)
	}
}
