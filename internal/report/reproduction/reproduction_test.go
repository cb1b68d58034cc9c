package reproduction

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/paper"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/warning"
)

var update = flag.Bool("update", false, "write the golden files")

func ptr(v float64) *float64 { return &v }

func interval(low, value, high float64) estimate.Estimate {
	return estimate.Estimate{Value: value, Low: &low, High: &high, N: 5, Confidence: 0.95, Method: estimate.GeometricMean}
}

// reproduction has every verdict, a table with a row that cannot be right, a
// figure that nothing regenerates and a drawing.
func reproduction() paper.Reproduction {
	left := result.Cell{Network: "calico/direct", Path: "pod-to-pod", Placement: "inter-host", Workload: "tcp_rr", MessageBytes: 64}
	right := left.Baseline()
	claim := func(id, published string) paper.Claim {
		return paper.Claim{ID: id, Kind: "finding", Quote: "as it is printed", Where: "Table 1", Published: published, Metric: "latency_mean_seconds", Relation: "greater"}
	}
	pair := func(w paper.Outcome, e estimate.Estimate) paper.Pair {
		return paper.Pair{Left: left, Right: &right, Metric: "latency_mean_seconds", Value: e, Outcome: w}
	}
	known := claim("faster", "It is faster.")
	known.Known = "One machine."
	ours := func(v float64) *estimate.Estimate { e := interval(v*0.98, v, v*1.02); return &e }
	return paper.Reproduction{
		Publication: paper.Publication{ID: "made", Title: "A <study>", Authors: []string{"A", "B"}, Year: 2026, PublishedIn: "a journal"},
		Cut:         true, Confidence: 0.95, Blocks: 5, Dir: "results/made", Version: "test",
		Verdicts: []paper.Verdict{
			{Claim: claim("slower", "It is slower."), Outcome: paper.Reproduced, Pairs: []paper.Pair{pair(paper.Reproduced, interval(1.4, 1.5, 1.6)), pair(paper.Reproduced, interval(1.1, 1.2, 1.3))}, Deciding: 1},
			{Claim: known, Outcome: paper.Contradicted, Pairs: []paper.Pair{pair(paper.Reproduced, interval(1.4, 1.5, 1.6)), pair(paper.Contradicted, interval(0.7, 0.8, 0.9))}, Deciding: 1},
			{Claim: claim("surprising", "It surprises."), Outcome: paper.Contradicted, Pairs: []paper.Pair{pair(paper.Contradicted, interval(0.7, 0.8, 0.9))}},
			{Claim: claim("open", "It is open."), Outcome: paper.Undecided, Pairs: []paper.Pair{pair(paper.Undecided, interval(0.9, 1.1, 1.3))}, MoreBlocks: 7},
			{Claim: claim("absent", "It is elsewhere."), Outcome: paper.NotMeasurable, Missing: []paper.Missing{{What: "weave", Why: "this cnibench has no network weave"}, {What: "x", Why: "unsupported here: kernel has no x"}}},
		},
		Tables: []paper.Comparison{
			{Table: paper.Table{ID: "t", Kind: "table", Where: "Table 1", Title: "Latency", Note: "half a round trip",
				Ours:    &paper.Ours{Metric: "latency_mean_seconds", Unit: "µs", BasePerUnit: 1e-6},
				Columns: []paper.Column{{Name: "mean"}},
				Rows:    []paper.Row{{Name: "Calico"}, {Name: "Weave"}, {Name: "node", Baseline: true}, {Name: "odd", Inconsistent: "it cannot be"}}},
				Reference: 2, Order: paper.Order{Same: 1, Tied: 2},
				Cells: [][]paper.Entry{
					{{Published: ptr(51.3), PublishedShare: ptr(1.59), Ours: ours(40), OurShare: ours(1.3)}},
					{{Published: ptr(60), UpTo: ptr(70), Why: "this cnibench has no network weave"}},
					{{Published: ptr(32.2), PublishedShare: ptr(1), Ours: ours(30.5)}},
					{{Published: ptr(3)}},
				}},
			{Table: paper.Table{ID: "f", Kind: "figure", Where: "Figure 2", Title: "Energy", NotYet: "cnibench measures none"}, Reference: -1},
			{Table: paper.Table{ID: "g", Kind: "figure", Where: "Figure 3", Title: "The rack", NoData: "a photograph"}, Reference: -1},
		},
		Recorded: paper.Recording{Started: "2026-11-22", Version: "v0", Kernel: "6.18"},
		Agents: &paper.Agents{Claims: []string{"open", "absent"}, Recorded: paper.Recording{Started: "2026-11-23", Version: "v1", Kernel: "6.19"}, Blocks: 3, Cut: true,
			Clusters: map[string]string{"one": "flannel/vxlan v0.27 on Kubernetes v1.34, 2 nodes"}, Dir: "results/made-kubernetes",
			Untaken:  map[string][]string{"agents": {"net.core.wmem_max is 3, not 4"}},
			Warnings: []warning.Warning{{Code: "agents-noise", Message: "the clusters vary", Cure: "measure for longer"}}},
		Models:  map[string]string{"calico/direct": "Felix's chains"},
		Untaken: map[string][]string{"tuned": {"net.core.rmem_max is 1, not 2"}},
		Setup:   []paper.Difference{{What: "kernel", Published: "5.9", Ours: "6.18"}, {What: "NIC", Published: "25 Gbit/s", Ours: "none"}},
	}
}

func TestReproductionFormats(t *testing.T) {
	for format, suffix := range map[string]string{"terminal": "txt", "html": "html", "markdown": "md", "json": "json"} {
		var buf bytes.Buffer
		if err := Write(&buf, format, reproduction(), screen.Options{Width: 80}); err != nil {
			t.Fatal(err)
		}
		got := buf.String()
		if format == "html" {
			got = reporttest.Bare(t, got)
		}
		reporttest.Golden(t, *update, "reproduction."+suffix, got)
		// What must be in each of them.
		for _, want := range []string{"made", "surprising", "not measurable here", "kernel has no x", "51.3", "a photograph", "6.18", "7",
			// Of the records of a Kubernetes: what they judge, when and where they were made.
			"open", "absent", "2026-11-23", "6.19", "results/made-kubernetes", "flannel/vxlan v0.27", "net.core.wmem_max is 3", "agents-noise"} {
			if !strings.Contains(strings.ReplaceAll(buf.String(), "\n", " "), want) {
				t.Errorf("%s lacks %q", format, want)
			}
		}
		if strings.Contains(buf.String(), "<study>") && format != "terminal" && format != "json" {
			t.Errorf("%s: a title is markup", format)
		}
	}
	if err := Write(&bytes.Buffer{}, "braille", reproduction(), screen.Options{}); err == nil {
		t.Error("an unknown format is taken")
	}
}
