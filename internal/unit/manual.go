package unit

import (
	"fmt"
	"strings"
)

// Manual is docs/metrics.md: every metric, what the testbed reads of nodes, and the
// components of CPU time, as Markdown.
func Manual() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\nGenerated from `internal/unit`: do not edit. Values are in base units; a record also has what the probes read, by the names in [probes.md](probes.md).\nA value that was not measured is absent, never 0.\n\n## Metrics of a sample\n\n")
	writeMetrics(&b, Metrics())
	b.WriteString("\n## Values read from a lab's nodes\n\nThese are read around each sample, for the node of each end.\n\n")
	writeMetrics(&b, NodeMetrics())
	b.WriteString("\n## CPU time by component\n\nThe probe `stacks` attributes the CPU time of a window, all CPUs together, to these. The unit is s.\n\n| name | meaning | cost of the traffic |\n|---|---|---|\n")
	for _, c := range Components() {
		charged := "no"
		if c.Charged {
			charged = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", ComponentSeconds(c.Name), c.Label, charged)
	}
	return b.String()
}

// writeMetrics writes a table of metrics in their order.
func writeMetrics(b *strings.Builder, metrics []Metric) {
	b.WriteString("| name | meaning | unit | better |\n|---|---|---|---|\n")
	for _, m := range metrics {
		unit := m.Unit
		switch {
		case m.IsRatio():
			unit = "ratio, 1 is 100 %"
		case unit == "":
			unit = "count"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", m.Name, m.Label, unit, map[Better]string{Higher: "higher", Lower: "lower", Neither: "neither"}[m.Better])
	}
}
