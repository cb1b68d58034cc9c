package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/report/compare"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/comparison"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

const compareLong = `compare compares a new result directory with a base, cell by cell. A cell is
worse or better only where the difference is beyond the threshold and beyond
chance, over all cells together. Efficiencies are compared where both sides have
them: a change of the machine itself cancels out.

The exit status is 3 when a cell got worse or every new sample of it failed. With
--fail-on undecided it is 5 when no cell got worse but some cannot be decided; the
output states how long the next run must be to decide them.

When kernel, CPU, MTU, versions or settings differ between the sides and a compared
cell depends on them, each is named with these cells and the comparison is refused,
unless --anyway is given. Differences that no compared cell depends on are only
listed: the version of a tool or CNI plugin that no compared cell uses, or nodes with
new names and the same hardware, software and settings.

With --baseline latest-of, BASE_DIR is a folder of results, and the newest complete
result in it is the base.`

func compareCommand(stdout, stderr io.Writer) *cobra.Command {
	var out outputFlags
	var threshold, baseline string
	var failOn []string
	var force bool
	cmd := &cobra.Command{
		Use:   "compare BASE_DIR NEW_DIR",
		Short: "compare two results: what got worse or better, beyond chance",
		Long:  compareLong,
		Example: `  cnibench compare results/main results/branch --threshold 3%
  cnibench compare --baseline latest-of results/main results/branch --fail-on worse,broken,undecided
  cnibench compare results/main results/branch -o markdown`,
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, file, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			share, err := parseShare(threshold)
			if err != nil {
				return usageError{fmt.Errorf("--threshold: %w", err)}
			}
			status, err := failStatus(failOn)
			if err != nil {
				return err
			}
			base, err := baseOf(baseline, args[0], args[1], stderr)
			if err != nil {
				return usageError{err}
			}
			c, err := compareDirs(base, args[1], share)
			if err != nil {
				return usageError{err}
			}
			if err := sayDifferences(c, force, stderr); err != nil {
				return err
			}
			if err := writeComparison(stdout, file, format, c); err != nil {
				return err
			}
			if s := status(c); s != exitOK {
				return silentError{s}
			}
			return nil
		},
	}
	out.add(cmd.Flags(), comparisonFormats())
	out.addFile(cmd.Flags(), "", "write to this file, atomically")
	out.addFormat(cmd.Flags())
	cmd.Flags().StringVar(&threshold, "threshold", "3%", "relative difference that matters")
	cmd.Flags().BoolVar(&force, "anyway", false, "compare although kernel, CPU, MTU, versions or settings differ")
	cmd.Flags().StringSliceVar(&failOn, "fail-on", []string{failWorse, failBroken}, "what ends with an exit status other than 0: a list of worse, broken, undecided")
	cmd.Flags().StringVar(&baseline, "baseline", baseResult, "what BASE_DIR is: result (a result directory) or latest-of (a folder of results, of which the newest complete one is the base)")
	return cmd
}

// comparisonFormats are those of a comparison: one more than package compare has.
func comparisonFormats() []string {
	rest := slices.DeleteFunc(compare.Formats(), func(f string) bool { return f == formatTerminal || f == formatJSON })
	return append([]string{formatTerminal, formatJSON, formatYAML}, rest...)
}

func writeComparison(stdout io.Writer, file, format string, c comparison.Comparison) error {
	opt := reportOptions(stdout)
	opt.Color = opt.Color && file == ""
	return printTo(stdout, file, func(w io.Writer) error {
		return inFormat(w, format, func(w io.Writer, format string) error { return compare.Write(w, format, c, opt) })
	})
}

// sayDifferences refuses sides that were not measured alike; forced, it warns.
func sayDifferences(c comparison.Comparison, forced bool, stderr io.Writer) error {
	if len(c.Differences) > 0 && !forced {
		return usageError{fmt.Errorf("the two sides were not measured alike:\n  %s\nmeasure the base again, or accept the differences with --anyway", strings.Join(c.Differences, "\n  "))}
	}
	for _, d := range c.Differences {
		fmt.Fprintln(stderr, "warning: the sides differ: "+d)
	}
	return nil
}

func compareDirs(baseDir, newDir string, threshold float64) (comparison.Comparison, error) {
	var sides [2]comparison.Side
	var opt dataset.Options
	for i, dir := range []string{baseDir, newDir} {
		rec, c, err := describe(dir)
		if err != nil {
			return comparison.Comparison{}, err
		}
		sides[i].Environment = environmentOf(rec)
		if i == 0 {
			opt = analysisOptions(c, sides[i].Environment)
		}
		if _, err := result.Each(dir, func(s *result.Sample) { sides[i].Samples = append(sides[i].Samples, *s) }); err != nil {
			return comparison.Comparison{}, err
		}
	}
	return comparison.Compare(sides[0], sides[1], comparison.Options{Options: opt, Threshold: threshold, Tools: toolsOf, KnownTools: allTools(), Plugins: pluginsOf}), nil
}

// parseShare reads "3%" or "0.03".
func parseShare(s string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0 && v < 1) {
		return 0, fmt.Errorf("%q: want a share between 0 and 100 %%, such as 3%%", s)
	}
	return v, nil
}
