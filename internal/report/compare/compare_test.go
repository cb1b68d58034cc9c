package compare

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/comparison"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

var update = flag.Bool("update", false, "write the golden files")

func renderComparison(t *testing.T, format string, c comparison.Comparison, opt screen.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, format, c, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func compared(c result.Cell, base, ratio, rel float64, v comparison.Verdict) comparison.Cell {
	m := "throughput_bits_per_second"
	if c.Workload == "tcp_rr" {
		m = "transactions_per_second"
	}
	b, n, change := reporttest.Estimated(base, 0.01, 6, estimate.GeometricMean), reporttest.Estimated(base*ratio, 0.01, 6, estimate.GeometricMean), reporttest.Estimated(ratio, rel, 6, estimate.WelchRatio)
	out := comparison.Cell{Cell: c, Metric: m, Base: &b, New: &n, Change: &change, ByEfficiency: !c.IsBaseline(), P: 0.001, Adjusted: 0.01, Verdict: v}
	for i := range 6 {
		out.BaseValues = append(out.BaseValues, base*(1+0.001*float64(i)))
		out.NewValues = append(out.NewValues, base*ratio*(1+0.001*float64(i)))
	}
	return out
}

// comparisons are the inputs of the golden files.
func comparisons() map[string]comparison.Comparison {
	broken := comparison.Cell{Cell: reporttest.CellOf("bridge", "tcp_rr", 64), Metric: "transactions_per_second", Verdict: comparison.Broken, Why: "new: every sample failed: connection refused", P: 1, Adjusted: 1}
	base := reporttest.Estimated(27300, 0.01, 6, estimate.GeometricMean)
	broken.Base, broken.BaseValues = &base, []float64{27300, 27301}
	few := compared(reporttest.CellOf("macvlan", "tcp_rr", 64), 29220, 0.98, 0, comparison.CannotTell)
	few.Why = "an interval takes 2 blocks on each side"
	return map[string]comparison.Comparison{
		"compare-regression": {Confidence: 0.95, Threshold: 0.03, Regression: true, Cells: []comparison.Cell{
			compared(reporttest.CellOf("host", "tcp_stream", 1472), 17.83e9, 1.002, 0.01, comparison.Same),
			broken, few,
			compared(reporttest.CellOf("flannel/host-gw", "tcp_stream", 1472), 16.9e9, 1.06, 0.012, comparison.Better),
			compared(reporttest.CellOf("flannel/vxlan", "tcp_stream", 1472), 8.06e9, 0.91, 0.011, comparison.Worse),
			compared(reporttest.CellOf("macvlan", "tcp_stream", 1472), 17e9, 1.001, 0.008, comparison.Same),
		}, OnlyBase: []result.Cell{reporttest.CellOf("calico/direct", "tcp_rr", 64)}, OnlyNew: []result.Cell{reporttest.CellOf("calico/ipip", "tcp_rr", 64)},
			Differences: []string{"kernel: 6.1 → 6.18"}},
		"compare-same":  {Confidence: 0.95, Threshold: 0.03, Cells: []comparison.Cell{compared(reporttest.CellOf("macvlan", "tcp_stream", 1472), 17e9, 1.001, 0.008, comparison.Same)}},
		"compare-empty": {Confidence: 0.95, Threshold: 0.03, OnlyNew: []result.Cell{reporttest.CellOf("macvlan", "tcp_rr", 64)}},
	}
}

func TestComparisonGolden(t *testing.T) {
	endings := map[string]string{"terminal": "txt", "html": "html", "markdown": "md", "json": "json", "junit": "xml", "benchfmt": "bench"}
	cases := comparisons()
	for name, c := range oddComparisons() {
		cases[name] = c
	}
	for name, c := range cases {
		for _, format := range Formats() {
			reporttest.Golden(t, *update, name+"."+endings[format], renderComparison(t, format, c, screen.Options{Unicode: true}))
		}
		for _, columns := range []int{40, 80, 120} {
			for i, line := range strings.Split(renderComparison(t, "terminal", c, screen.Options{Width: columns}), "\n") {
				if screen.Width(line) > columns {
					t.Errorf("%s, %d columns: line %d is %d wide: %s", name, columns, i+1, screen.Width(line), line)
				}
			}
		}
	}
	if err := Write(&bytes.Buffer{}, "pdf", comparison.Comparison{}, screen.Options{}); err == nil {
		t.Error("an unknown format was taken")
	}
}

// TestComparisonFormatsAgree takes stat's own comparison and counts verdicts
// and values in every format.
func TestComparisonFormatsAgree(t *testing.T) {
	_, base := reporttest.AnalysedSamples()
	_, next := reporttest.AnalysedSamples()
	random := rand.New(rand.NewPCG(7, 7))
	for i := range next {
		s := &next[i]
		for name, v := range s.Metrics {
			s.Metrics[name] = v * math.Exp(0.005*random.NormFloat64())
			if s.Cell.Network == "bridge" && s.Cell.MessageBytes == 1472 {
				s.Metrics[name] *= 0.8
			}
		}
	}
	c := comparison.Compare(comparison.Side{Samples: base}, comparison.Side{Samples: next}, comparison.Options{Threshold: 0.03})
	if !c.Regression {
		t.Fatal("a loss of 20 % is no regression")
	}
	var fromJSON jsonComparison
	if err := json.Unmarshal([]byte(renderComparison(t, "json", c, screen.Options{})), &fromJSON); err != nil {
		t.Fatal(err)
	}
	var junit junitSuites
	if err := xml.Unmarshal([]byte(renderComparison(t, "junit", c, screen.Options{})), &junit); err != nil {
		t.Fatal(err)
	}
	suite := junit.Suites[0]
	if suite.Tests != len(fromJSON.Comparison.Cells) || len(suite.Cases) != suite.Tests || suite.Failures == 0 {
		t.Errorf("JUnit has %d tests with %d failures, JSON %d cells", suite.Tests, suite.Failures, len(fromJSON.Comparison.Cells))
	}
	markdown, terminal := renderComparison(t, "markdown", c, screen.Options{}), renderComparison(t, "terminal", c, screen.Options{Width: 200, Unicode: true})
	for i, x := range fromJSON.Comparison.Cells {
		words := changeWords(x)
		if !strings.Contains(markdown, words) || !strings.Contains(suite.Cases[i].Output, words) {
			t.Errorf("%s %s: change %s is not in Markdown or JUnit", x.Cell.Network, x.Cell.Traffic(), words)
		}
		if x.Verdict != comparison.Same && !strings.Contains(terminal, words) {
			t.Errorf("%s %s: change %s is not on the terminal", x.Cell.Network, x.Cell.Traffic(), words)
		}
	}
	// Every line of the benchmark format is one that benchfmt takes.
	line := regexp.MustCompile(`^(Unit \S+ better=(higher|lower)|side: (base|new)|BenchmarkCNI/\S+/mtu_bytes=\d+ 1 [0-9.e+-]+ \S+)$`)
	lines := 0
	for _, l := range strings.Split(strings.TrimSpace(renderComparison(t, "benchfmt", c, screen.Options{})), "\n") {
		if !line.MatchString(l) {
			t.Errorf("not in the benchmark format: %s", l)
		}
		if strings.HasPrefix(l, "Benchmark") {
			lines++
		}
	}
	if lines != len(base)+len(next) {
		t.Errorf("%d values in the benchmark format, %d samples", lines, len(base)+len(next))
	}
}

func TestComparisonIsHarmless(t *testing.T) {
	c := comparisons()["compare-regression"]
	for i := range c.Cells {
		c.Cells[i].Cell.Network, c.Cells[i].Why = reporttest.Evil, reporttest.Evil
	}
	c.Differences = []string{reporttest.Evil}
	for _, format := range Formats() {
		out := renderComparison(t, format, c, screen.Options{})
		if format != "json" && strings.ContainsAny(out, "\x1b") {
			t.Errorf("%s: a control character came through", format)
		}
		if (format == "markdown" || format == "junit" || format == "html") && strings.Contains(out, "<script") {
			t.Errorf("%s: markup came through", format)
		}
	}
}

// TestComparisonSaysHowLongTheNextRunMustBe: the longest of the undecided cells counts.
func TestComparisonSaysHowLongTheNextRunMustBe(t *testing.T) {
	open := func(n *comparison.Needs) comparison.Cell {
		c := compared(reporttest.CellOf("macvlan", "tcp_rr", 64), 29220, 0.98, 0.05, comparison.CannotTell)
		c.Needs = n
		return c
	}
	for want, cells := range map[string][]comparison.Cell{
		"": {open(nil), compared(reporttest.CellOf("host", "tcp_rr", 64), 1, 1, 0.01, comparison.Same)},
		"To decide 2 undecided cells at 3 %, the next run must have about 40 blocks (about 160 s), if change and noise stay the same.":               {open(&comparison.Needs{Blocks: 12, Seconds: 48}), open(&comparison.Needs{Blocks: 40, Seconds: 160})},
		"To decide 1 of 2 undecided cells at 3 %, a new base and the next run must have about 1,200 blocks each, if change and noise stay the same.": {open(nil), open(&comparison.Needs{Blocks: 1200, BaseToo: true})},
	} {
		if got := needsWords(comparison.Comparison{Confidence: 0.95, Threshold: 0.03, Cells: cells}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
