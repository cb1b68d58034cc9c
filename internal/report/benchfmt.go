package report

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// writeBenchfmt writes Go's benchmark format: a line for each block of each
// cell, with every metric that has a better side, so that benchstat's median is
// the report's. A metric's name is its unit. benchstat -col /network reads it.
//
// Source: golang.org/design/14313-benchmark-format.
func writeBenchfmt(w io.Writer, d *document, _ Options) error {
	b := bufio.NewWriter(w)
	for _, m := range d.missing() {
		fmt.Fprintf(b, "# %s\n", clean(m))
	}
	config := func(key, value string) {
		if value = strings.TrimSpace(clean(value)); value != "" {
			fmt.Fprintf(b, "%s: %s\n", key, value)
		}
	}
	config("campaign", d.title())
	if e := d.Environment; e != nil {
		config("testbed", e.Testbed)
		config("kernel", e.Host.Kernel)
		config("cpu", e.Host.CPUModel)
	}
	var shown []unit.Metric
	for _, m := range metrics() {
		if m.Better != unit.Neither && d.hasBlocks(m.Name) {
			shown = append(shown, m)
			fmt.Fprintf(b, "Unit %s better=%s\n", m.Name, map[unit.Better]string{unit.Higher: "higher", unit.Lower: "lower"}[m.Better])
		}
	}
	for _, s := range d.Analysis.Cells {
		if s.OK > 0 && s.Blocks == nil {
			return errors.New("the values of each block were not kept: stat.Options.Blocks asks for them")
		}
		if why := whyMissing(s); s.OK == 0 && why != "" {
			fmt.Fprintf(b, "# %s: %s: %s\n", benchName(s.Cell), state(s), clean(why))
		}
		name := benchName(s.Cell)
		for _, values := range byBlock(s, shown) {
			fmt.Fprintf(b, "%s 1%s\n", name, values)
		}
	}
	for _, c := range d.unmeasured {
		fmt.Fprintf(b, "# %s: %s\n", benchName(c), noRecord)
	}
	return b.Flush()
}

func (d *document) hasBlocks(metric string) bool {
	return slices.ContainsFunc(d.Analysis.Cells, func(s stat.CellSummary) bool { return len(s.Blocks[metric]) > 0 })
}

// byBlock is what was measured in each block, in their order: " VALUE UNIT"s.
func byBlock(s stat.CellSummary, shown []unit.Metric) []string {
	lines := map[int]string{}
	for _, m := range shown {
		for _, v := range s.Blocks[m.Name] {
			lines[v.Block] += " " + exact(v.Value) + " " + m.Name
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
