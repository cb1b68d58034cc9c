package compare

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/cnibench/cnibench/internal/report/format"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/comparison"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// oddComparisons are of campaigns that lack something; each is stat's own.
func oddComparisons() map[string]comparison.Comparison {
	_, all := reporttest.AnalysedSamples()
	only := func(ok func(result.Sample) bool) []result.Sample {
		return slices.DeleteFunc(slices.Clone(all), func(s result.Sample) bool {
			small := s.Cell.Workload == "tcp_rr" && (s.Cell.Network == "bridge" || s.Cell.Network == "macvlan" || s.Cell.IsBaseline())
			return !small || !ok(s)
		})
	}
	failed := only(func(result.Sample) bool { return true })
	for i := range failed {
		failed[i].Status, failed[i].Metrics, failed[i].Reason = result.StatusFailed, nil, "connection refused"
	}
	whole := only(func(result.Sample) bool { return true })
	env := *reporttest.FixtureEnvironment()
	other := env
	other.Host.Kernel = "6.1.0"
	compare := func(base, next []result.Sample, to result.Environment) comparison.Comparison {
		return comparison.Compare(comparison.Side{Samples: base, Environment: env}, comparison.Side{Samples: next, Environment: to}, comparison.Options{Threshold: 0.03})
	}
	one := only(func(s result.Sample) bool { return s.Block == 1 })
	return map[string]comparison.Comparison{
		"compare-all-failed":   compare(whole, failed, env),
		"compare-one-sample":   compare(whole, one, env),
		"compare-one-network":  compare(whole, only(func(s result.Sample) bool { return s.Cell.Network != "macvlan" }), env),
		"compare-no-baseline":  compare(whole, only(func(s result.Sample) bool { return !s.Cell.IsBaseline() }), env),
		"compare-mixed-kernel": compare(whole, whole, other),
	}
}

// TestComparisonHTMLAgrees reads the page back: every value, change and verdict
// of the JSON is in its row, and there are no other rows.
func TestComparisonHTMLAgrees(t *testing.T) {
	cases := comparisons()
	for name, c := range oddComparisons() {
		cases[name] = c
	}
	for name, c := range cases {
		var back jsonComparison
		if err := json.Unmarshal([]byte(renderComparison(t, "json", c, screen.Options{})), &back); err != nil {
			t.Fatal(err)
		}
		text := renderComparison(t, "html", c, screen.Options{})
		rows := comparedRows(t, text)
		if len(rows) != len(back.Comparison.Cells) {
			t.Errorf("%s: %d rows, JSON has %d cells", name, len(rows), len(back.Comparison.Cells))
		}
		for _, x := range back.Comparison.Cells {
			row, ok := rows[x.Cell.Network+"|"+x.Cell.Traffic()]
			if !ok {
				t.Errorf("%s: no row for %s %s", name, x.Cell.Network, x.Cell.Traffic())
				continue
			}
			value := func(e *estimate.Estimate) string {
				if e == nil {
					return ""
				}
				return format.Exact(e.Value)
			}
			if row.values[0] != value(x.Base) || row.values[1] != value(x.New) || row.values[2] != value(x.Change) {
				t.Errorf("%s, %s: page has %v, JSON %s, %s, %s", name, x.Cell.Network, row.values, value(x.Base), value(x.New), value(x.Change))
			}
			for _, want := range []string{changeWords(x), verdictWords(x)} {
				if !strings.Contains(row.text, spacedText(want)) {
					t.Errorf("%s, %s: page lacks %q: %s", name, x.Cell.Network, want, row.text)
				}
			}
		}
		if m := reporttest.Loads.FindString(text); m != "" {
			t.Errorf("%s: the page has %q", name, m)
		}
		for _, w := range append([]string{back.Summary}, back.Words...) {
			if !strings.Contains(spacedText(html.UnescapeString(text)), spacedText(w)) {
				t.Errorf("%s: the page lacks %q", name, w)
			}
		}
	}
}

func spacedText(s string) string { return strings.Join(strings.Fields(s), " ") }

type comparedRow struct {
	text   string
	values [3]string // base, new, change
}

// comparedRows reads the rows of a comparison by network and traffic.
func comparedRows(t *testing.T, text string) map[string]comparedRow {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	plain := func(n *html.Node) string {
		var b strings.Builder
		for c := range n.Descendants() {
			if c.Type == html.TextNode {
				b.WriteString(c.Data + " ")
			}
		}
		return spacedText(b.String())
	}
	out := map[string]comparedRow{}
	for n := range root.Descendants() {
		if n.Data != "tr" || n.Parent.Data != "tbody" {
			continue
		}
		var cells []*html.Node
		for c := range n.ChildNodes() {
			if c.Type == html.ElementNode {
				cells = append(cells, c)
			}
		}
		row := comparedRow{text: plain(n)}
		for i := range row.values {
			if f := cells[3+i].FirstChild; f != nil && f.Data == "data" {
				row.values[i] = f.Attr[0].Val
			}
		}
		out[plain(cells[0])+"|"+plain(cells[1])] = row
	}
	return out
}

// TestDrawnChange: a change is drawn where it is on the scale, and one beyond it
// at the edge.
func TestDrawnChange(t *testing.T) {
	e := reporttest.Estimated(1.05, 0.02, 6, estimate.WelchRatio)
	d := drawChange(e, 0.03, math.Log(1.1), "")
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	at := func(v float64) float64 { return 100 + 100*math.Log(v)/math.Log(1.1) }
	for what, pair := range map[string][2]float64{
		"middle": {number(d.Mid) + 1, at(1.05)}, "low": {number(d.Low), at(1.05 * 0.98)}, "high": {number(d.Low) + number(d.Width), at(1.05 * 1.02)},
		"band": {number(d.BandLow) + number(d.BandWidth), at(1.03)},
	} {
		if math.Abs(pair[0]-pair[1]) > 0.11 {
			t.Errorf("%s is drawn at %.1f, want %.1f", what, pair[0], pair[1])
		}
	}
	if d := drawChange(reporttest.Estimated(9, 0.01, 6, estimate.WelchRatio), 0.03, math.Log(1.1), ""); number(d.Mid) != 198 || number(d.Low) != 200 {
		t.Errorf("beyond the scale: %+v", d)
	}
	if drawChange(e, 0.03, 0, "") != nil {
		t.Error("drawn without a scale")
	}
}
