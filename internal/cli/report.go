package cli

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/workload"
)

func reportCommand(stdout io.Writer) *cobra.Command {
	var format, output string
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "show what a result directory holds; measures and changes nothing",
		Example: `  cnibench report results/quickstart
  cnibench report results/quickstart --format html -o report.html`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneOf("format", format, report.Formats()); err != nil {
				return err
			}
			in, err := readInput(args[0])
			if err != nil {
				return usageError{err}
			}
			if output != "" {
				return writeReport(output, format, in)
			}
			return report.Write(stdout, format, in, reportOptions(stdout))
		},
	}
	cmd.Flags().StringVar(&format, "format", "terminal", strings.Join(report.Formats(), ", "))
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file, whole or not at all")
	return cmd
}

// recordedKnown is known for the copy of a campaign in a result directory.
func recordedKnown() campaign.Known {
	k := known()
	k.Recorded = true
	return k
}

// readInput reads a result directory and analyses it.
func readInput(dir string) (report.Input, error) {
	rec, err := result.Read(dir)
	if err != nil {
		return report.Input{}, err
	}
	c, err := campaign.Parse(filepath.Join(dir, result.CampaignFile), rec.Campaign, recordedKnown())
	if err != nil {
		return report.Input{}, err
	}
	p, err := plan.Parse(rec.Plan)
	if err != nil {
		return report.Input{}, fmt.Errorf("%s: %w", filepath.Join(dir, result.PlanFile), err)
	}
	var env result.Environment
	if rec.Environment != nil {
		env = *rec.Environment
	}
	return report.Input{
		Dir: dir, Campaign: c, Plan: p, Samples: rec.Samples, Environment: rec.Environment, Version: version(),
		Analysis: stat.Analyse(rec.Samples, analysisOptions(c, env)),
	}, nil
}

// analysisOptions says to the statistics what only other packages know: the
// rates of links, the primary metric of workloads.
func analysisOptions(c campaign.Campaign, env result.Environment) stat.Options {
	return stat.Options{
		Confidence: c.Sampling.Confidence, TargetRelativeHalfwidth: c.Sampling.TargetRelativeHalfwidth,
		MinBlocks: c.Sampling.MinBlocks, MaxBlocks: c.Sampling.MaxBlocks,
		LinkRate: linkRate, Primary: primary, Environment: env,
	}
}

// primary is the metric that a cell's efficiency is about.
func primary(cell result.Cell) string {
	w, err := workload.Find(cell.Workload)
	if err != nil {
		return ""
	}
	return w.Spec().PrimaryFor(cell.Test)
}

// settled is the stopping rule of a campaign.
func settled(c campaign.Campaign) func([]result.Sample) map[result.Cell]bool {
	opt := analysisOptions(c, result.Environment{})
	return func(samples []result.Sample) map[result.Cell]bool {
		done := map[result.Cell]bool{}
		for cell, p := range stat.Look(samples, opt) {
			done[cell] = p.Done
		}
		return done
	}
}

func reportOptions(w io.Writer) report.Options {
	t := terminalOf(w)
	return report.Options{Width: t.width, Color: t.color, Unicode: t.unicode}
}

func writeReport(path, format string, in report.Input) error {
	var buf bytes.Buffer
	if err := report.Write(&buf, format, in, report.Options{Width: 80}); err != nil {
		return err
	}
	return result.WriteFile(path, buf.Bytes())
}
