// Package format writes the report of a campaign in each format, for people and for
// programs. One format is one file and one line of formats.
package format

import (
	"fmt"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/screen"
)

// format is one way to write a report. An added one is a file and an entry of formats.
type format struct {
	name string
	// content and readers are its row in docs/exports.md.
	content, readers string
	write            func(io.Writer, *report.Document, screen.Options) error
	needs            Needs
}

// Needs is what a format takes of a result directory beside what every one does: it
// takes room or time.
type Needs struct {
	// Blocks are the values of each block, Stacks the kernel's stacks.
	Blocks, Stacks bool
}

func formats() []format {
	return []format{
		{"terminal", "the answer on one screen; `--long` has every table", "people", writeTerminal, Needs{}},
		{"html", "one file that loads nothing from anywhere", "meetings, papers", writeHTML, Needs{Stacks: true}},
		{"markdown", "the answer, and the rest folded", "pull requests", writeMarkdown, Needs{}},
		{"csv", "one row for each cell, metric and statistic (below)", "spreadsheets, R", writeCSV, Needs{}},
		{"json", "everything; [its schema](../internal/report/format/report.schema.json)", "programs", writeJSON, Needs{}},
		{"parquet", "the same rows as csv: strings, doubles, booleans, null for what is absent", "DuckDB, pandas", writeParquet, Needs{}},
		{"benchfmt", "Go's benchmark format: a line for each block of each cell; a metric's name is its unit", "benchstat", writeBenchfmt, Needs{Blocks: true}},
		{"prometheus", "Prometheus' text format: gauges `cnibench_…`, without times", "dashboards", writePrometheus, Needs{}},
	}
}

// NeedsOf is what a format of Formats needs.
func NeedsOf(format string) Needs {
	for _, f := range formats() {
		if f.name == format {
			return f.needs
		}
	}
	return Needs{}
}

// Names lists the formats that Write knows.
func Names() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// Write renders in in a format of Formats.
func Write(w io.Writer, format string, in report.Input, opt screen.Options) error {
	for _, f := range formats() {
		if f.name != format {
			continue
		}
		if err := f.write(w, report.New(in), opt); err != nil {
			return fmt.Errorf("%s report: %w", format, err)
		}
		return nil
	}
	return fmt.Errorf("unknown report format %q (known: %s)", format, strings.Join(Names(), ", "))
}
