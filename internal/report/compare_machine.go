package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// jsonComparison is the JSON form of a comparison.
type jsonComparison struct {
	Schema     int             `json:"schema"`
	Summary    string          `json:"summary"`
	Words      []string        `json:"words"`
	Comparison stat.Comparison `json:"comparison"`
}

func writeComparisonJSON(w io.Writer, c stat.Comparison, _ Options) error {
	if c.Cells == nil {
		c.Cells = []stat.CellComparison{}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(jsonComparison{Schema: JSONSchema, Summary: comparisonSummary(c), Words: comparisonWords(c), Comparison: c})
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
// broken an error, and what cannot be told is skipped, for it is no success.
func writeComparisonJUnit(w io.Writer, c stat.Comparison, _ Options) error {
	s := junitSuite{Name: "cnibench compare", Tests: len(c.Cells)}
	for _, x := range c.Cells {
		m, _ := findMetric(x.Metric)
		words := fmt.Sprintf("%s: base %s, new %s, change %s: %s", m.Label, comparedCell(x.Metric, x.Base).Text, comparedCell(x.Metric, x.New).Text, changeWords(x), verdictWords(x))
		one := junitCase{Class: clean(placeOf(x.Cell).String()), Name: clean(x.Cell.Network + " " + x.Cell.Traffic()), Output: clean(words)}
		message := &junitMessage{Message: clean(words)}
		switch x.Verdict {
		case stat.Worse:
			one.Failure = message
			s.Failures++
		case stat.Broken:
			one.Error = message
			s.Errors++
		case stat.CannotTell:
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
func writeComparisonBenchfmt(w io.Writer, c stat.Comparison, _ Options) error {
	var b strings.Builder
	units := map[string]bool{}
	for _, x := range c.Cells {
		m, _ := findMetric(x.Metric)
		if u := benchUnit(m); !units[u] && m.Better != unit.Neither {
			units[u] = true
			fmt.Fprintf(&b, "Unit %s better=%s\n", u, map[unit.Better]string{unit.Higher: "higher", unit.Lower: "lower"}[m.Better])
		}
	}
	for _, side := range []struct {
		name   string
		values func(stat.CellComparison) []float64
	}{
		{"base", func(x stat.CellComparison) []float64 { return x.BaseValues }},
		{"new", func(x stat.CellComparison) []float64 { return x.NewValues }},
	} {
		fmt.Fprintf(&b, "side: %s\n", side.name)
		for _, x := range c.Cells {
			m, _ := findMetric(x.Metric)
			for _, v := range side.values(x) {
				fmt.Fprintf(&b, "%s 1 %s %s\n", benchName(x.Cell), exact(v), benchUnit(m))
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

// benchName is a cell as a benchmark's name, all factors as key=value. The
// MTU stands last: a name that ends with -2 would be taken for GOMAXPROCS.
func benchName(c result.Cell) string {
	word := func(s string) string {
		return strings.Map(func(r rune) rune {
			switch {
			case r == '/':
				return ':'
			case unicode.IsSpace(r), unicode.IsControl(r):
				return '_'
			}
			return r
		}, clean(s))
	}
	name := "BenchmarkCNI"
	for _, f := range csvFactors() {
		if v := f.value(c); v != "" && f.name != "mtu_bytes" {
			name += "/" + f.name + "=" + word(v)
		}
	}
	return fmt.Sprintf("%s/mtu_bytes=%d", name, c.MTU)
}
