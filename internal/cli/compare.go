package cli

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

func compareCommand(stdout, stderr io.Writer) *cobra.Command {
	var format, output, threshold string
	var force, asJSON bool
	cmd := &cobra.Command{
		Use:   "compare BASE_DIR NEW_DIR",
		Short: "compare two results: which cells got worse or better, beyond a threshold and beyond chance",
		Long: `compare compares a new result directory with a base, cell by cell. A cell is
worse or better only where the difference is beyond the threshold and beyond
chance, over all cells together. Efficiencies are compared where both sides have
them: a change of the machine itself cancels out.

The exit status is 3 when a cell got worse. When kernel, CPU, MTU, versions or
settings differ between the sides, each is named and the comparison is refused,
unless --anyway is given.`,
		Example: `  cnibench compare results/main results/branch --threshold 3%
  cnibench compare results/main results/branch --format markdown`,
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if format, err = formatAsked(cmd, format, asJSON); err != nil {
				return err
			}
			if err := oneOf("format", format, report.ComparisonFormats()); err != nil {
				return err
			}
			share, err := parseShare(threshold)
			if err != nil {
				return usageError{fmt.Errorf("--threshold: %w", err)}
			}
			c, err := compareDirs(args[0], args[1], share)
			if err != nil {
				return usageError{err}
			}
			if err := sayDifferences(c, force, stderr); err != nil {
				return err
			}
			var buf bytes.Buffer
			opt := reportOptions(stdout)
			opt.Color = opt.Color && output == ""
			if err := report.WriteComparison(&buf, format, c, opt); err != nil {
				return err
			}
			if output != "" {
				err = result.WriteFile(output, buf.Bytes())
			} else {
				_, err = stdout.Write(buf.Bytes())
			}
			if err == nil && c.Regression {
				return silentError{exitRegression}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&format, "format", "terminal", strings.Join(report.ComparisonFormats(), ", "))
	jsonFlag(cmd, &asJSON)
	cmd.Flags().StringVar(&threshold, "threshold", "3%", "relative difference that matters")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file, atomically")
	cmd.Flags().BoolVar(&force, "anyway", false, "compare although kernel, CPU, MTU, versions or settings differ")
	return cmd
}

// sayDifferences refuses sides that were not measured alike; forced, it warns.
func sayDifferences(c stat.Comparison, forced bool, stderr io.Writer) error {
	if len(c.Differences) > 0 && !forced {
		return usageError{fmt.Errorf("the two sides were not measured alike:\n  %s\ncompare them all the same with --anyway", strings.Join(c.Differences, "\n  "))}
	}
	for _, d := range c.Differences {
		fmt.Fprintln(stderr, "warning: the sides differ: "+d)
	}
	return nil
}

func compareDirs(baseDir, newDir string, threshold float64) (stat.Comparison, error) {
	var sides [2]stat.Side
	var opt stat.Options
	for i, dir := range []string{baseDir, newDir} {
		rec, c, err := describe(dir)
		if err != nil {
			return stat.Comparison{}, err
		}
		sides[i].Environment = environmentOf(rec)
		if i == 0 {
			opt = analysisOptions(c, sides[i].Environment)
		}
		if _, err := result.Each(dir, func(s *result.Sample) { sides[i].Samples = append(sides[i].Samples, *s) }); err != nil {
			return stat.Comparison{}, err
		}
	}
	return stat.Compare(sides[0], sides[1], stat.CompareOptions{Options: opt, Threshold: threshold}), nil
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
