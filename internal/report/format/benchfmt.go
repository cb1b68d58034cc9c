package format

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/unit"
)

// writeBenchfmt writes Go's benchmark format: a line for each block of each
// cell, with every metric that has a better side, so that benchstat's median is
// the report's. A metric's name is its unit. benchstat -col /network reads it.
//
// Source: golang.org/design/14313-benchmark-format.
func writeBenchfmt(w io.Writer, d *report.Document, _ screen.Options) error {
	b := bufio.NewWriter(w)
	for _, m := range section.Missing(d) {
		fmt.Fprintf(b, "# %s\n", page.Clean(m))
	}
	if far := d.Distances(); far != "" {
		fmt.Fprintf(b, "# %s\n", page.Clean(far))
	}
	config := func(key, value string) {
		if value = strings.TrimSpace(page.Clean(value)); value != "" {
			fmt.Fprintf(b, "%s: %s\n", key, value)
		}
	}
	config("campaign", d.Title())
	if e := d.Environment; e != nil {
		config("testbed", e.Testbed)
		config("kernel", e.Host.Kernel)
		config("cpu", e.Host.CPUModel)
	}
	var shown []unit.Metric
	for _, m := range report.Metrics() {
		if m.Better != unit.Neither && hasBlocks(d, m.Name) {
			shown = append(shown, m)
			fmt.Fprintf(b, "Unit %s better=%s\n", m.Name, map[unit.Better]string{unit.Higher: "higher", unit.Lower: "lower"}[m.Better])
		}
	}
	for _, s := range d.Analysis.Cells {
		if s.OK > 0 && s.Blocks == nil {
			return errors.New("the values of each block were not kept: stat.Options.Blocks asks for them")
		}
		if why := section.WhyMissing(s); s.OK == 0 && why != "" {
			fmt.Fprintf(b, "# %s: %s: %s\n", BenchName(s.Cell), report.StateOf(s), page.Clean(why))
		}
		name := BenchName(s.Cell)
		for _, values := range byBlock(s, shown) {
			fmt.Fprintf(b, "%s 1%s\n", name, values)
		}
	}
	for _, c := range d.Unmeasured {
		fmt.Fprintf(b, "# %s: %s\n", BenchName(c), section.NoRecord)
	}
	return b.Flush()
}

func hasBlocks(d *report.Document, metric string) bool {
	return slices.ContainsFunc(d.Analysis.Cells, func(s summary.Cell) bool { return len(s.Blocks[metric]) > 0 })
}

// byBlock is what was measured in each block, in their order: " VALUE UNIT"s.
func byBlock(s summary.Cell, shown []unit.Metric) []string {
	lines := map[int]string{}
	for _, m := range shown {
		for _, v := range s.Blocks[m.Name] {
			lines[v.Block] += " " + Exact(v.Value) + " " + m.Name
		}
	}
	var blocks []int
	for b := range lines {
		blocks = append(blocks, b)
	}
	slices.Sort(blocks)
	var out []string
	for _, b := range blocks {
		out = append(out, lines[b])
	}
	return out
}

// BenchName is a cell as a benchmark's name, all factors as key=value. The
// MTU is last: a name that ends with -2 would be taken for GOMAXPROCS.
func BenchName(c result.Cell) string {
	word := func(s string) string {
		return strings.Map(func(r rune) rune {
			switch {
			case r == '/':
				return ':'
			case unicode.IsSpace(r), unicode.IsControl(r):
				return '_'
			}
			return r
		}, page.Clean(s))
	}
	name := "BenchmarkCNI"
	for _, f := range csvFactors() {
		if v := f.value(c); v != "" && f.name != "mtu_bytes" {
			name += "/" + f.name + "=" + word(v)
		}
	}
	return fmt.Sprintf("%s/mtu_bytes=%d", name, c.MTU)
}
