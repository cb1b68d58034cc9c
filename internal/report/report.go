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

// format is one way to write a report.
type format struct {
	name  string
	write func(io.Writer, *document, Options) error
}

func formats() []format {
	return []format{
		{"terminal", writeTerminal},
		{"html", writeHTML},
		{"markdown", writeMarkdown},
		{"csv", writeCSV},
		{"json", writeJSON},
		{"parquet", writeParquet},
		{"benchfmt", writeBenchfmt},
		{"prometheus", writePrometheus},
	}
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
