// Package report renders what a campaign found, for people and for programs.
// It computes no statistic and reads no file: every figure comes from stat.
//
// A report is sections made of blocks that know no format; each format writes
// the blocks in its own way, so that all say the same. One section is one file
// and one line of sections.
package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// Input is what a report is made from. Only Analysis is needed; what else is
// absent is said to be.
type Input struct {
	Campaign campaign.Campaign
	Plan     plan.Plan
	// Environment is nil where the run ended before its testbed stood.
	Environment *result.Environment
	// Tally is what is told of the records beside their analysis.
	Tally    Tally
	Analysis stat.Analysis
	Flames   Flames
	// Dir is the result directory, for the places and commands that the report
	// names; "" leaves them out.
	Dir string
	// Version is that of this program.
	Version string
}

// Options are what the terminal format may use. The zero value is 80 columns
// of plain ASCII.
type Options struct {
	Width   int // in columns; 0 means 80, and less than 40 is laid out as 40
	Color   bool
	Unicode bool
	// Long asks for the tables and remarks in full, in place of one screen.
	Long bool
}

// format is one way to write a report. An added one is a file and an entry of formats.
type format struct {
	name string
	// content and readers are its row in docs/exports.md.
	content, readers string
	write            func(io.Writer, *document, Options) error
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
		{"json", "everything; [its schema](../internal/report/report.schema.json)", "programs", writeJSON, Needs{}},
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

// Formats lists the formats that Write knows.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// Write renders in in a format of Formats.
func Write(w io.Writer, format string, in Input, opt Options) error {
	for _, f := range formats() {
		if f.name != format {
			continue
		}
		if err := f.write(w, newDocument(in), opt); err != nil {
			return fmt.Errorf("%s report: %w", format, err)
		}
		return nil
	}
	return fmt.Errorf("unknown report format %q (known: %s)", format, strings.Join(Formats(), ", "))
}

// section is one part of a report.
type section struct {
	// ID names the section in links.
	ID, Title string
	// Build gives its blocks; none leave the section out.
	Build func(*document) []block
	// Folded sections are shown in Markdown only when opened.
	Folded bool
	// Drawn sections have nothing but charts, and words about them: they are
	// left out where nothing can be drawn.
	Drawn bool
}

// sections is every section, in the order of the report.
func sections() []section {
	return []section{
		{ID: "noise", Title: "What this machine calls different by itself", Build: noise},
		{ID: "goals", Title: "In short", Build: goals},
		{ID: "answer", Title: "The answer", Build: answer},
		{ID: "mesh", Title: "Pairs of nodes", Build: mesh},
		{ID: "efficiency", Title: "Efficiency against the bare network", Build: efficiency},
		{ID: "figures", Title: "Networks beside the physical one", Build: beside, Drawn: true},
		{ID: "absolute", Title: "Absolute values", Build: absolute, Folded: true},
		{ID: "latency", Title: "Latency percentiles", Build: latency, Folded: true},
		{ID: "time", Title: "Over time", Build: overTime, Drawn: true},
		{ID: "scaling", Title: "Scaling with streams", Build: scaling, Drawn: true},
		{ID: "cpu", Title: "CPU cost", Build: cpu, Folded: true},
		{ID: "where", Title: "Where the CPU time goes", Build: where, Folded: true},
		{ID: "ladder", Title: "Step by step from the bare network", Build: ladder, Folded: true},
		{ID: "flame", Title: "Flame graphs", Build: flames, Drawn: true},
		{ID: "setup", Title: "Set-up time of pods", Build: setup, Drawn: true},
		{ID: "cross-check", Title: "Cross-checks", Build: crossCheck, Folded: true},
		{ID: "warnings", Title: "Warnings", Build: warnings},
		{ID: "failures", Title: "Failed, unsupported and not measured", Build: failures},
		{ID: "environment", Title: "Environment", Build: environment, Folded: true},
		{ID: "method", Title: "Method", Build: method, Folded: true},
		{ID: "repeat", Title: "How to repeat this", Build: repeat, Folded: true},
	}
}
