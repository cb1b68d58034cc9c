package cli

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/buildable"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/format"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stopping"
	"github.com/cnibench/cnibench/internal/workload"
)

func reportCommand(stdout io.Writer) *cobra.Command {
	var out outputFlags
	var long bool
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "show the results in a directory; measures and changes nothing",
		Long: `report shows the results on one screen, or with -o wide in all tables. The other
formats are always complete.

csv and parquet have one row for each cell, metric and statistic; benchfmt has
every block, for benchstat; prometheus is for node_exporter's textfile collector,
and dashboards/grafana.json reads it.`,
		Example: `  cnibench report results/latest
  cnibench report results/latest -o wide
  cnibench report results/latest -o html --to report.html`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, file, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			if long && name != formatTerminal && name != formatWide {
				return usageError{fmt.Errorf("--long is for the terminal: %s is always complete", name)}
			}
			in, err := readInput(args[0], format.NeedsOf(name))
			if err != nil {
				return usageError{err}
			}
			opt := reportOptions(stdout)
			if file != "" {
				opt = screen.Options{Width: 80}
			}
			opt.Long = long
			return printTo(stdout, file, func(w io.Writer) error { return printReport(w, name, in, opt) })
		},
	}
	out.add(cmd.Flags(), reportFormats())
	out.addFile(cmd.Flags(), "", "write to this file, atomically")
	out.addFormat(cmd.Flags())
	cmd.Flags().BoolVar(&long, "long", false, "the same as -o wide: all tables and warnings instead of one screen")
	return cmd
}

// reportFormats are those of a report: two more than package format has.
func reportFormats() []string {
	rest := slices.DeleteFunc(format.Names(), func(f string) bool { return f == formatTerminal || f == formatJSON })
	return append([]string{formatTerminal, formatWide, formatJSON, formatYAML}, rest...)
}

// printReport writes a report in one of reportFormats.
func printReport(w io.Writer, name string, in report.Input, opt screen.Options) error {
	if name == formatWide {
		name, opt.Long = formatTerminal, true
	}
	return inFormat(w, name, func(w io.Writer, name string) error { return format.Write(w, name, in, opt) })
}

// recordedKnown is known for the copy of a campaign in a result directory.
func recordedKnown() campaign.Known {
	k := known()
	k.Recorded = true
	return k
}

// reportGCPercent keeps the garbage of reading small compared with what is kept.
const reportGCPercent = 25

// readInput reads a result directory and analyses it. The records are not held:
// what an analysis needs of them is a tenth.
func readInput(dir string, want format.Needs) (report.Input, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(reportGCPercent))
	rec, c, err := describe(dir)
	if err != nil {
		return report.Input{}, err
	}
	p, err := plan.Parse(rec.Plan)
	if err != nil {
		return report.Input{}, fmt.Errorf("%s: %w", filepath.Join(dir, result.PlanFile), err)
	}
	in := report.Input{Dir: dir, Campaign: c, Plan: p, Environment: rec.Environment, Version: version()}
	opt := analysisOptions(c, environmentOf(rec))
	opt.Blocks = want.Blocks
	collector := stat.NewCollector(opt)
	burning := newFlames(dir, p.Cells)
	_, err = result.Each(dir, func(s *result.Sample) {
		collector.Add(s)
		in.Tally.Add(s)
		if want.Stacks {
			burning.add(s)
		}
	})
	if err != nil {
		return report.Input{}, err
	}
	in.Analysis, in.Flames = collector.Analyse(), burning.all()
	return in, nil
}

// describe reads what a result directory has in addition to its records.
func describe(dir string) (result.Recorded, campaign.Campaign, error) {
	rec, err := result.Describe(dir)
	if err != nil {
		return rec, campaign.Campaign{}, err
	}
	c, err := campaign.Parse(filepath.Join(dir, result.CampaignFile), rec.Campaign, recordedKnown())
	return rec, c, err
}

// environmentOf is the environment of a result directory, empty where there is
// none.
func environmentOf(rec result.Recorded) result.Environment {
	if rec.Environment == nil {
		return result.Environment{}
	}
	return *rec.Environment
}

// analysisOptions says to the statistics what only other packages know: the
// rates of links, the primary metric of workloads.
func analysisOptions(c campaign.Campaign, env result.Environment) dataset.Options {
	return dataset.Options{
		Confidence: c.Sampling.Confidence, TargetRelativeHalfwidth: c.Sampling.TargetRelativeHalfwidth,
		UntilRanked: c.Sampling.Until == campaign.UntilRanks,
		MinBlocks:   c.Sampling.MinBlocks, MaxBlocks: c.Sampling.MaxBlocks,
		LinkRate: buildable.LinkRate, Primary: primary, Ladder: ladderOf, Instructions: instructionsOf(env), Environment: env,
	}
}

// smallMessage is the size that instructions were counted with, bytes.
const smallMessage = 64

// instructionsOf is how many a cell takes per packet or transaction, where that was
// counted: in a lab, with messages of 64 bytes, one stream and nothing else to do. A switch
// that ran in user space was not counted: its packets take another path.
func instructionsOf(env result.Environment) func(result.Cell) (float64, bool) {
	return func(cell result.Cell) (float64, bool) {
		counting := result.Cell{
			Network: cell.Network, Path: cell.Path, Placement: cell.Placement, Link: cell.Link, Profile: cell.Profile, MTU: 1500,
			Workload: cell.Workload, MessageBytes: smallMessage, CongestionControl: cell.CongestionControl, CPUs: cell.CPUs,
		}
		if cell.Streams == 1 {
			counting.Streams = 1
		}
		if cell != counting || env.Networks[cell.Network].InUserSpace() {
			return 0, false
		}
		return counted(cell.Network, cell.Workload, cell.Placement)
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

// stoppingRule is the stopping rule of a campaign.
type stoppingRule struct {
	*stopping.Watch
	// from is how many blocks are measured of all cells.
	from int
}

func newStoppingRule(c campaign.Campaign) stoppingRule {
	return stoppingRule{stopping.NewWatch(analysisOptions(c, result.Environment{})), c.Sampling.MinBlocks}
}

// Done gives the cells whose efficiencies are known well enough.
func (j stoppingRule) Done(n int) map[result.Cell]bool {
	done := map[result.Cell]bool{}
	if n < j.from {
		return done
	}
	for cell, p := range j.Look(n) {
		if p.Done { // for good: a cell is not known worse by what others bring
			done[cell] = true
		}
	}
	return done
}

func reportOptions(w io.Writer) screen.Options {
	t := terminalOf(w)
	return screen.Options{Width: t.width, Color: t.color, Unicode: t.unicode}
}

func writeReport(path, name string, in report.Input, opt screen.Options) error {
	var buf bytes.Buffer
	if err := format.Write(&buf, name, in, opt); err != nil {
		return err
	}
	return result.WriteFile(path, buf.Bytes())
}
