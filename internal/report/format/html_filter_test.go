package format

import (
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/flame"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// TestClusterIsAFactor: networks of several clusters can be filtered by cluster,
// each with its own baseline, in tables, charts and flame graphs.
func TestClusterIsAFactor(t *testing.T) {
	in := reporttest.Keep(reporttest.Normal(), "host", "macvlan", "bridge")
	clusters := map[string]string{"macvlan": "east", "bridge": "west"}
	var cells []summary.Cell
	for _, s := range in.Analysis.Cells {
		for _, cluster := range []string{"east", "west"} {
			if own := clusters[s.Cell.Network]; own != "" && own != cluster {
				continue
			}
			x := s
			x.Cell.Cluster = cluster
			if s.Baseline != nil {
				b := x.Cell.Baseline()
				x.Baseline = &b
			}
			cells = append(cells, x)
		}
	}
	in.Analysis.Cells = cells
	reporttest.SortCells(&in)
	in = reporttest.Burnt(in, "")
	data := dataOf(t, render(t, "html", in, screen.Options{}))
	at := slices.IndexFunc(data.Factors, func(f struct {
		Name   string
		Values []string
	}) bool {
		return f.Name == "cluster"
	})
	if at < 0 || !slices.Equal(data.Factors[at].Values, []string{"east", "west"}) {
		t.Fatalf("the factors are %+v", data.Factors)
	}
	of := func(about int) string {
		for i := 0; about >= 0 && i < len(data.Abouts[about]); i += 2 {
			if data.Abouts[about][i] == at {
				return data.Factors[at].Values[data.Abouts[about][i+1]]
			}
		}
		return ""
	}
	tables, charts := 0, 0
	for _, b := range data.Blocks {
		for i, row := range b.Rows {
			name, _ := readCell(t, row[0])
			if want, known := map[string]string{"macvlan": "east", "bridge": "west", "host of east (baseline)": "east", "host of west (baseline)": "west"}[name]; known && len(b.RowOf) > 0 {
				if tables++; of(b.RowOf[i]) != want {
					t.Errorf("%s, %s is of cluster %q", b.Caption, name, of(b.RowOf[i]))
				}
			}
		}
		if b.Kind == page.DrawnFlame {
			if charts++; len(b.Series) != 4 {
				t.Errorf("%s has %d networks, want both and both hosts", b.Title, len(b.Series))
			}
		}
	}
	if tables == 0 || charts != 3 {
		t.Errorf("%d rows and %d flame graphs", tables, charts)
	}
	// Many cells share graphs, but never those of two clusters.
	var many []result.Cell
	for mtu := range 50 {
		for _, cluster := range []string{"east", "west"} {
			many = append(many, result.Cell{Network: "host", Cluster: cluster, MTU: mtu, MessageBytes: mtu, Workload: "tcp_rr"})
		}
	}
	g := flame.NewGraphs(many, reporttest.ComponentOf)
	for _, c := range many {
		g.Sample(c)
		g.Add(c, result.Stack{Frames: []string{"a"}, Microseconds: 1})
	}
	if all := g.All(); len(all) != 2 || all[0].Cell.Cluster == all[1].Cell.Cluster {
		t.Errorf("got %+v", all)
	}
}
