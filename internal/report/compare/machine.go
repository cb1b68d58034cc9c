package compare

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/format"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/stat/comparison"
	"github.com/cnibench/cnibench/internal/unit"
)

// jsonComparison is the JSON form of a comparison.
type jsonComparison struct {
	Schema     int                   `json:"schema"`
	Summary    string                `json:"summary"`
	Words      []string              `json:"words"`
	Comparison comparison.Comparison `json:"comparison"`
}

func writeComparisonJSON(w io.Writer, c comparison.Comparison, _ screen.Options) error {
	if c.Cells == nil {
		c.Cells = []comparison.Cell{}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(jsonComparison{Schema: format.JSONSchema, Summary: comparisonSummary(c), Words: comparisonWords(c), Comparison: c})
}

// The elements of JUnit XML that continuous-integration servers read.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure"`
	Error   *junitMessage `xml:"error"`
	Skipped *junitMessage `xml:"skipped"`
	Output  string        `xml:"system-out"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
}

// writeComparisonJUnit writes one test case per cell: worse is a failure,
// broken an error, and what is undecided is skipped, for it is no success.
func writeComparisonJUnit(w io.Writer, c comparison.Comparison, _ screen.Options) error {
	s := junitSuite{Name: "cnibench compare", Tests: len(c.Cells)}
	for _, x := range c.Cells {
		m, _ := report.FindMetric(x.Metric)
		words := fmt.Sprintf("%s: base %s, new %s, change %s: %s", m.Label, comparedField(x.Metric, x.Base).Text, comparedField(x.Metric, x.New).Text, changeWords(x), verdictWords(x))
		one := junitCase{Class: page.Clean(report.SituationOf(x.Cell).String()), Name: page.Clean(x.Cell.Network + " " + x.Cell.Traffic()), Output: page.Clean(words)}
		message := &junitMessage{Message: page.Clean(words)}
		switch x.Verdict {
		case comparison.Worse:
			one.Failure = message
			s.Failures++
		case comparison.Broken:
			one.Error = message
			s.Errors++
		case comparison.CannotTell:
			one.Skipped = message
			s.Skipped++
		}
		s.Cases = append(s.Cases, one)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suites: []junitSuite{s}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// writeComparisonBenchfmt writes Go's benchmark format, a line for each block
// of each side; benchstat -col side reads it. Its own test compares the
// absolute values as two groups, so that it sees less than the blocks do.
//
// Source: golang.org/design/14313-benchmark-format.
func writeComparisonBenchfmt(w io.Writer, c comparison.Comparison, _ screen.Options) error {
	var b strings.Builder
	units := map[string]bool{}
	for _, x := range c.Cells {
		m, _ := report.FindMetric(x.Metric)
		if u := benchUnit(m); !units[u] && m.Better != unit.Neither {
			units[u] = true
			fmt.Fprintf(&b, "Unit %s better=%s\n", u, map[unit.Better]string{unit.Higher: "higher", unit.Lower: "lower"}[m.Better])
		}
	}
	for _, side := range []struct {
		name   string
		values func(comparison.Cell) []float64
	}{
		{"base", func(x comparison.Cell) []float64 { return x.BaseValues }},
		{"new", func(x comparison.Cell) []float64 { return x.NewValues }},
	} {
		fmt.Fprintf(&b, "side: %s\n", side.name)
		for _, x := range c.Cells {
			m, _ := report.FindMetric(x.Metric)
			for _, v := range side.values(x) {
				fmt.Fprintf(&b, "%s 1 %s %s\n", format.BenchName(x.Cell), format.Exact(v), benchUnit(m))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// benchUnit is a metric's unit as benchstat knows it.
func benchUnit(m unit.Metric) string {
	switch {
	case m.Unit == "s":
		return "sec"
	case m.Unit == "":
		return m.Name
	}
	return m.Unit
}
